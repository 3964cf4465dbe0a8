// Phase one of a level, on one thread: emits the applications of one operator to one big argument after another. See
// enumerate.h.
#pragma once

#include <algorithm>

#include "enumerate.h"

namespace gopt::generator {

inline bool is_commutative(const AlphabetOp& op) { return op.inputs == 2 && op_info(op.kind).has(kCommutative); }

class Enumerator::Worker {
 public:
  Worker(const Enumerator& owner, Findings& findings)
      : owner_(owner), space_(owner.space_), findings_(findings), small_(space_), big_values_(space_) {}

  void run(const Job& job, size_t begin, size_t end) {
    job_ = &job;
    const AlphabetOp& op = space_.terms().op(job.op);
    commutes_ = is_commutative(op);
    for (size_t i = begin; i < end; i++) {
      const uint32_t rep = owner_.groups_[job.groups[job.big]].reps[i];
      big_values_.reset();
      big_images_.clear();
      const Signature& signature = space_.signature_of(rep);
      args_[job.big] = {rep, signature.identity};
      subterms_.clear();
      owner_.collect_subterms(args_[job.big], subterms_);
      choose(0, signature.used, signature.count, is_more_than_scalar(rep));
    }
  }

  // A binary operator on a representative and each part of it.
  void run_shared(int op, uint32_t rep, const SharedKernels& kernels) {
    const AlphabetOp& description = space_.terms().op(op);
    big_values_.reset();
    big_images_.clear();
    const Named whole{rep, space_.signature_of(rep).identity};
    std::vector<Named> parts;
    owner_.collect_subterms(whole, parts);
    Job job{op, 0, {0, 0}, {}};
    job_ = &job;
    commutes_ = is_commutative(description);
    for (const Named& part : parts)
      for (bool is_second : {true, false}) {
        if (!is_second && (commutes_ || part == whole)) continue;
        job.big = is_second ? 0 : 1;
        args_[job.big] = whole;
        args_[1 - job.big] = part;
        const std::pair<TypeId, TypeId> types{space_.rep(args_[0].rep).type, space_.rep(args_[1].rep).type};
        const auto kernel = kernels.find({op, types});
        if (kernel == kernels.end()) continue;
        job.outputs = {kernel->second};
        candidate();
      }
    job_ = nullptr;
  }

 private:
  bool is_more_than_scalar(uint32_t rep) const {
    return space_.rep(rep).leaf_class >= 0 || space_.rep(rep).application.op >= 0;
  }

  // Fills argument `at` and those after it.
  void choose(size_t at, const std::array<uint8_t, kMaxClasses>& used, int variables, bool has_tensor) {
    if (at == job_->groups.size()) {
      // What scalar constants alone give is one. What shares an argument comes where it is counted once.
      if (has_tensor && !has_shared()) candidate();
      return;
    }
    if (at == job_->big) return choose(at + 1, used, variables, has_tensor);
    for (uint32_t rep : owner_.groups_[job_->groups[at]].reps) {
      if (commutes_ && (at == 1 ? args_[0].rep < rep : rep < args_[1].rep)) continue;
      args_[at] = {rep, 0};
      name(at, 0, used, variables, has_tensor || is_more_than_scalar(rep));
    }
  }

  // Names variable `local` of argument `at` and those after it: one in use, or the next new one.
  void name(size_t at, unsigned local, const std::array<uint8_t, kMaxClasses>& used, int variables, bool has_tensor) {
    const Signature& signature = space_.signature_of(args_[at].rep);
    if (local == signature.count) return choose(at + 1, used, variables, has_tensor);
    const uint8_t variable_class = signature.classes[local];
    const unsigned in_use = used[variable_class];
    for (unsigned number = 0; number <= in_use && number < space_.pool(variable_class); number++) {
      if (number == in_use && variables == space_.max_variables()) break;
      bool is_taken = false;
      for (unsigned j = 0; j < local; j++)
        is_taken |= signature.classes[j] == variable_class && nibble(args_[at].naming, j) == number;
      if (is_taken) continue;
      args_[at].naming = with_nibble(args_[at].naming, local, number);
      if (number < in_use) {
        name(at, local + 1, used, variables, has_tensor);
      } else {
        auto more = used;
        more[variable_class]++;
        name(at, local + 1, more, variables + 1, has_tensor);
      }
    }
    args_[at].naming = with_nibble(args_[at].naming, local, 0);
  }

  bool has_shared() const {
    for (size_t i = 0; i < job_->groups.size(); i++)
      if (i != job_->big && std::find(subterms_.begin(), subterms_.end(), args_[i]) != subterms_.end()) return true;
    return false;
  }

  void candidate() {
    const auto arity = static_cast<int>(job_->groups.size());
    Space::Normal normal = space_.normalized(job_->op, 0, args_.data(), arity);
    if (!std::equal(args_.begin(), args_.begin() + arity, normal.application.args.begin())) return;
    const Signature& signature = signatures_[signatures_.intern(space_.classes_of(normal.application))];
    small_.reset();
    for (size_t output = 0; output < job_->outputs.size(); output++) {
      findings_.candidates++;
      normal.application.output = static_cast<uint8_t>(output);
      add(normal.application, job_->outputs[output], signature);
    }
  }

  void add(const Application& application, const Output& output, const Signature& signature) {
    const auto identity = fingerprint(output, signature.permutations[0]);
    if (!identity) return;
    if (const Named* known = space_.table().find(*identity)) {
      findings_.equal.push_back({application, *known});
      return;
    }
    Record record{*identity, application, 0, 0, output.number};
    for (size_t i = 1; i < signature.permutations.size(); i++) {
      const auto own = fingerprint(output, signature.permutations[i]);
      if (!own) return;
      if (*own == *identity && i < 32) record.symmetries |= 1U << i;
      if (*own < record.least) {
        record.least = *own;
        record.permutation = static_cast<uint32_t>(i);
      }
    }
    findings_.records.push_back(record);
  }

  std::optional<Fingerprint> fingerprint(const Output& output, const NameMap& map) {
    std::array<const Scalar*, kMaxArguments> inputs{};
    for (size_t i = 0; i < job_->groups.size(); i++) {
      const Named named = space_.renamed(args_[i], map);
      inputs[i] = i == job_->big ? big_value(named) : small_.value(named);
      if (!inputs[i]) return std::nullopt;
    }
    const Scalar* values = small_.run(*output.kernel, output.size, inputs.data());
    if (!values) return std::nullopt;
    return space_.fingerprint(output.type_key, values, output.size);
  }

  const Scalar* big_value(Named named) {
    for (const auto& [naming, value] : big_images_)
      if (naming == named.naming) return value;
    return big_images_.emplace_back(named.naming, big_values_.value(named)).second;
  }

  const Enumerator& owner_;
  const Space& space_;
  Findings& findings_;
  const Job* job_ = nullptr;
  bool commutes_ = false;
  std::array<Named, kMaxArguments> args_{};
  std::vector<Named> subterms_;  // of the big argument
  Signatures signatures_;
  Evaluator small_, big_values_;
  std::vector<std::pair<Naming, const Scalar*>> big_images_;
};

}  // namespace gopt::generator
