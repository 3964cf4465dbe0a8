#include "enumerate.h"

#include <algorithm>
#include <set>

#include "parallel.h"

namespace gopt::generator {
namespace {

constexpr size_t kBigsAtOnce = 16;
constexpr int kKeptOps = 1;  // values of representatives of so many operators are kept

bool is_commutative(const AlphabetOp& op) { return op.inputs == 2 && op_info(op.kind).has(kCommutative); }

NameMap inverse(const NameMap& map) {
  NameMap result = NameMap::nothing();
  for (size_t c = 0; c < kMaxClasses; c++)
    for (unsigned k = 0; k < kMaxVariables; k++)
      if (const unsigned to = nibble(map.of_class[c], k); to < kMaxVariables)
        result.of_class[c] = with_nibble(result.of_class[c], to, k);
  return result;
}

// `first`, then `second` for what that names; a variable that `second` lacks keeps the name.
NameMap then(const NameMap& first, const NameMap& second) {
  NameMap result = first;
  for (size_t c = 0; c < kMaxClasses; c++)
    for (unsigned k = 0; k < kMaxVariables; k++) {
      const unsigned middle = nibble(first.of_class[c], k);
      if (middle >= kMaxVariables) continue;
      const unsigned to = nibble(second.of_class[c], middle);
      result.of_class[c] = with_nibble(result.of_class[c], k, to < kMaxVariables ? to : middle);
    }
  return result;
}

}  // namespace

int EnumerationLimits::weight_ops_beside(int activation_ops) const {
  if (activation_ops > max_ops) return -1;
  const int total = std::max(std::min(max_ops, 3) + 1, max_weight_ops + 1);
  // With as many applications as a left side may have, a right side gains little from weights.
  const int most = activation_ops == max_ops ? std::min(max_weight_ops, 1) : max_weight_ops;
  return std::min(most, std::max(total - activation_ops, 0));
}

// Emits the applications of one job to one big argument after another.
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
    Record record{*identity, application, 0, 0, output};
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

Enumerator::Enumerator(Space& space, const EnumerationLimits& limits, int threads)
    : space_(space), limits_(limits), threads_(threads) {
  for (const AlphabetOp& op : space.terms().family().ops) ops_.push_back(space.terms().add_op(op));
}

void Enumerator::add_to_group(uint32_t id) {
  const Representative& rep = space_.rep(id);
  for (Group& group : groups_)
    if (group.activation_ops == rep.activation_ops && group.weight_ops == rep.weight_ops && group.type == rep.type &&
        group.is_weight == rep.is_weight)
      return group.reps.push_back(id);
  groups_.push_back({rep.activation_ops, rep.weight_ops, rep.type, rep.is_weight, {id}});
}

Level Enumerator::leaves() {
  Level level;
  World first(space_.terms(), sizes_of(space_.terms().family(), 0), {}, mix(space_.seed())),
      second(space_.terms(), sizes_of(space_.terms().family(), 1), {}, mix(space_.seed() + 1));
  const auto value_of = [&](TermId id) {
    Values both;
    for (World* world : {&first, &second}) {
      const auto own = world->value(id, false);
      both.insert(both.end(), own->values.begin(), own->values.end());
    }
    return both;
  };
  const auto add = [&](Representative rep) {
    rep.size = static_cast<uint32_t>(space_.kernels().size(rep.type));
    const uint64_t key = space_.type_key(rep.type);
    const uint32_t id = space_.add(rep);
    for (size_t number = 0; number < rep.images.size(); number++)
      space_.table().insert(space_.fingerprint(key, rep.images[number].data(), rep.size),
                            {id, static_cast<Naming>(number)});
    add_to_group(id);
    level.representatives.push_back(id);
  };
  const auto& classes = space_.terms().family().classes;
  for (size_t c = 0; c < classes.size(); c++) {
    Representative rep;
    rep.leaf_class = static_cast<int>(c);
    rep.is_weight = classes[c].kind == VariableKind::Weight;
    rep.signature = space_.intern_signature({static_cast<uint8_t>(c)});
    for (unsigned number = 0; number < space_.pool(c); number++) {
      const TermId id = space_.terms().variable(static_cast<int>(c), static_cast<int>(number));
      rep.type = space_.terms().term(id).type;
      rep.images.push_back(value_of(id));
    }
    add(std::move(rep));
  }
  for (double constant : space_.terms().family().constants) {
    Representative rep;
    rep.constant = constant;
    rep.signature = space_.intern_signature({});
    const TermId id = space_.terms().constant(constant);
    rep.type = space_.terms().term(id).type;
    rep.images.push_back(value_of(id));
    add(std::move(rep));
  }
  // Operators of no input are constants too.
  Values registers;
  for (int op : ops_) {
    if (space_.terms().op(op).inputs != 0) continue;
    const Kernel* kernel = space_.kernels().find(op, 0, {});
    if (!kernel) continue;
    Representative rep;
    rep.application.op = static_cast<int16_t>(op);
    rep.kernel = kernel;
    rep.type = kernel->type;
    rep.signature = space_.intern_signature({});
    rep.images.emplace_back(kernel->tapes[0].size() + kernel->tapes[1].size());
    if (kernel->run(nullptr, rep.images[0].data(), registers)) add(std::move(rep));
  }
  return level;
}

std::vector<Enumerator::Job> Enumerator::jobs(int activation_ops, int weight_ops) {
  std::vector<Job> jobs;
  const bool weights_only = activation_ops == 0;
  for (int op : ops_) {
    if (space_.terms().op(op).inputs == 0 || (space_.terms().op(op).on_weights_only && !weights_only)) continue;
    Job job{op, 0, {}, {}};
    // What is left for the arguments once the application itself is counted.
    choose_groups(job, weights_only ? 0 : activation_ops - 1, weights_only ? weight_ops - 1 : weight_ops, weights_only,
                  jobs);
  }
  return jobs;
}

void Enumerator::choose_groups(Job& job, int activation_ops, int weight_ops, bool weights_only,
                               std::vector<Job>& jobs) {
  const auto inputs = static_cast<size_t>(space_.terms().op(job.op).inputs);
  if (job.groups.size() == inputs) {
    if (activation_ops == 0 && weight_ops == 0) complete(job, weights_only, jobs);
    return;
  }
  for (size_t g = 0; g < groups_.size(); g++) {
    const Group& group = groups_[g];
    if (group.activation_ops > activation_ops || group.weight_ops > weight_ops) continue;
    const bool is_weight_input = static_cast<int>(job.groups.size()) >= space_.terms().op(job.op).weights_from;
    if ((weights_only || is_weight_input) && !group.is_weight) continue;
    job.groups.push_back(g);
    choose_groups(job, activation_ops - group.activation_ops, weight_ops - group.weight_ops, weights_only, jobs);
    job.groups.pop_back();
  }
}

void Enumerator::complete(Job& job, bool weights_only, std::vector<Job>& jobs) {
  const auto total = [&](size_t g) { return groups_[g].activation_ops + groups_[g].weight_ops; };
  std::vector<TypeId> types;
  bool all_weights = true;
  job.big = 0;
  for (size_t i = 0; i < job.groups.size(); i++) {
    const Group& group = groups_[job.groups[i]];
    types.push_back(group.type);
    all_weights = all_weights && group.is_weight;
    if (total(job.groups[i]) > total(job.groups[job.big])) job.big = i;
  }
  if (all_weights != weights_only) return;
  const AlphabetOp& op = space_.terms().op(job.op);
  if (is_commutative(op) && total(job.groups[0]) < total(job.groups[1])) return;  // the other order comes too
  job.outputs.clear();
  for (int output = 0; output < op.outputs; output++) {
    const Kernel* kernel = space_.kernels().find(job.op, output, types);
    if (!kernel) return;
    job.outputs.push_back({kernel, space_.type_key(kernel->type),
                           static_cast<uint32_t>(kernel->tapes[0].size() + kernel->tapes[1].size())});
  }
  jobs.push_back(job);
}

// Kernels of binary operators on whatever has one application less, and on its parts.
Enumerator::SharedKernels Enumerator::shared_kernels(int activation_ops, int weight_ops) {
  SharedKernels kernels;
  std::set<TypeId> wholes, parts;
  for (const Group& group : groups_) {
    if (group.is_weight || group.activation_ops == 0) continue;
    if (group.activation_ops == activation_ops - 1 && group.weight_ops == weight_ops) wholes.insert(group.type);
    parts.insert(group.type);
  }
  for (int op : ops_) {
    const AlphabetOp& description = space_.terms().op(op);
    if (description.inputs != 2 || description.outputs != 1 || description.on_weights_only ||
        description.weights_from < 2)
      continue;
    for (TypeId whole : wholes)
      for (TypeId part : parts)
        for (const auto& types : {std::pair{whole, part}, std::pair{part, whole}})
          if (const Kernel* kernel = space_.kernels().find(op, 0, {types.first, types.second}))
            kernels[{op, types}] = {kernel, space_.type_key(kernel->type),
                                    static_cast<uint32_t>(kernel->tapes[0].size() + kernel->tapes[1].size())};
  }
  return kernels;
}

// Applications that depend on an activation, each once, and other outputs of the same ones.
void Enumerator::collect_subterms(Named named, std::vector<Named>& out) const {
  named = space_.canonical(named);
  const Representative& rep = space_.rep(named.rep);
  if (rep.is_weight || rep.application.op < 0 || std::find(out.begin(), out.end(), named) != out.end()) return;
  out.push_back(named);
  const NameMap map = space_.signature_of(named.rep).map_of(named.naming);
  Application other = rep.application;
  for (int output = 0; output < space_.terms().op(other.op).outputs; output++) {
    other.output = static_cast<uint8_t>(output);
    if (output == rep.application.output) continue;
    if (const auto known = parts_.find(other); known != parts_.end()) {
      const Named part = space_.canonical(space_.renamed(known->second, map));
      if (std::find(out.begin(), out.end(), part) == out.end()) out.push_back(part);
    }
  }
  for (size_t i = 0; i < rep.application.arity; i++)
    collect_subterms(space_.renamed(rep.application.args[i], map), out);
}

void Enumerator::learn_parts(const Level& level) {
  const auto learn = [&](const Application& application, Named equal) {
    if (application.op >= 0 && space_.terms().op(application.op).outputs > 1) parts_[application] = equal;
  };
  for (uint32_t rep : level.representatives)
    learn(space_.rep(rep).application, {rep, space_.signature_of(rep).identity});
  for (const EqualApplication& equal : level.equal) learn(equal.application, equal.equal);
}

Level Enumerator::build(int activation_ops, int weight_ops) {
  const std::vector<Job> all = jobs(activation_ops, weight_ops);
  struct Chunk {
    const Job* job;
    size_t begin, end;
  };
  std::vector<Chunk> chunks;
  for (const Job& job : all) {
    const size_t count = groups_[job.groups[job.big]].reps.size();
    for (size_t begin = 0; begin < count; begin += kBigsAtOnce)
      chunks.push_back({&job, begin, std::min(count, begin + kBigsAtOnce)});
  }
  std::vector<uint32_t> wholes;
  for (const Group& group : groups_)
    if (!group.is_weight && group.activation_ops > 0 && group.activation_ops == activation_ops - 1 &&
        group.weight_ops == weight_ops)
      wholes.insert(wholes.end(), group.reps.begin(), group.reps.end());
  const SharedKernels shared = wholes.empty() ? SharedKernels() : shared_kernels(activation_ops, weight_ops);
  std::vector<Findings> findings(static_cast<size_t>(threads_));
  std::vector<Worker> workers;
  for (Findings& own : findings) workers.emplace_back(*this, own);
  parallel_for(threads_, chunks.size(), [&](int thread, size_t item) {
    const Chunk& chunk = chunks[item];
    workers[static_cast<size_t>(thread)].run(*chunk.job, chunk.begin, chunk.end);
  });
  parallel_for(threads_, shared.empty() ? 0 : wholes.size(), [&](int thread, size_t item) {
    for (int op : ops_)
      if (space_.terms().op(op).inputs == 2) workers[static_cast<size_t>(thread)].run_shared(op, wholes[item], shared);
  });
  Level level;
  std::vector<Record> records;
  for (Findings& own : findings) {
    level.candidates += own.candidates;
    level.equal.insert(level.equal.end(), own.equal.begin(), own.equal.end());
    records.insert(records.end(), own.records.begin(), own.records.end());
    own = {};
  }
  add_classes(records, level, activation_ops, weight_ops);
  std::sort(level.equal.begin(), level.equal.end(),
            [](const auto& a, const auto& b) { return a.application < b.application; });
  learn_parts(level);
  return level;
}

Representative Enumerator::representative_of(const Record& record) {
  Representative rep;
  rep.application = record.application;
  rep.kernel = record.output.kernel;
  rep.type = record.output.kernel->type;
  rep.size = record.output.size;
  rep.signature = space_.intern_signature(space_.classes_of(record.application));
  for (size_t i = 0; i < record.application.arity; i++) {
    const Representative& arg = space_.rep(record.application.args[i].rep);
    rep.is_weight = rep.is_weight && arg.is_weight;
  }
  const Signature& signature = space_.signature(rep.signature);
  for (size_t p = 1; p < signature.permutations.size() && p < 32; p++) {
    if (!(record.symmetries >> p & 1)) continue;
    const Naming naming = signature.renamed(signature.identity, signature.permutations[p]);
    LocalPermutation symmetry{};
    for (unsigned i = 0; i < signature.count; i++)
      for (unsigned j = 0; j < signature.count; j++)
        if (signature.classes[i] == signature.classes[j] && nibble(signature.identity, j) == nibble(naming, i))
          symmetry[i] = static_cast<uint8_t>(j);
    rep.symmetries.push_back(symmetry);
  }
  return rep;
}

void Enumerator::compute_images(Representative& rep, const Record& record, Evaluator& evaluator,
                                std::vector<std::pair<Naming, Fingerprint>>& images) const {
  const Signature& signature = space_.signature(rep.signature);
  const bool is_kept = rep.total_ops() <= kKeptOps;
  if (is_kept) rep.images.resize(space_.image_count(signature));
  // The representative is not in the space yet, so its arguments are named here.
  std::vector<Naming> namings{0};
  for (unsigned i = 0; i < signature.count; i++) {
    std::vector<Naming> longer;
    for (Naming naming : namings)
      for (unsigned number = 0; number < space_.pool(signature.classes[i]); number++) {
        bool is_taken = false;
        for (unsigned j = 0; j < i; j++)
          is_taken |= signature.classes[j] == signature.classes[i] && nibble(naming, j) == number;
        if (!is_taken) longer.push_back(with_nibble(naming, i, number));
      }
    namings = std::move(longer);
  }
  for (Naming naming : namings) {
    evaluator.reset();
    const NameMap map = signature.map_of(naming);
    std::array<Named, kMaxArguments> args{};
    for (size_t i = 0; i < rep.application.arity; i++) args[i] = space_.renamed(rep.application.args[i], map);
    const Scalar* value = evaluator.apply(*rep.kernel, rep.size, args.data(), rep.application.arity);
    if (!value) continue;
    images.emplace_back(naming, space_.fingerprint(record.output.type_key, value, rep.size));
    if (is_kept) rep.images[space_.image_number(signature, naming)].assign(value, value + rep.size);
  }
}

void Enumerator::add_class(const Record* begin, const Record* end,
                           const std::vector<std::pair<Naming, Fingerprint>>& images, Representative rep,
                           Level& level) {
  const uint32_t id = space_.rep_count();
  const Signature& signature = space_.signature(rep.signature);
  const NameMap to_least = signature.permutations[begin->permutation];
  Named first{id, signature.identity};
  const bool final = rep.is_final;
  // A class with fewer variables may have come just before.
  const Named* known = nullptr;
  if (final) known = space_.table().find(begin->least);
  if (!final)
    for (const auto& [naming, fingerprint] : images)
      if (naming == signature.identity) known = space_.table().find(fingerprint);
  if (known && !final) first = *known;
  if (known && final) first = space_.renamed(*known, inverse(to_least));
  if (!known) {
    if (final) {
      space_.table().insert(begin->least, {id, signature.renamed(signature.identity, to_least)});
    } else {
      for (const auto& [naming, fingerprint] : images) space_.table().insert(fingerprint, {id, naming});
    }
    space_.add(std::move(rep));
    if (!final) add_to_group(id);
    level.representatives.push_back(id);
    add_symmetries(*begin, id, level);
  } else {
    level.equal.push_back({begin->application, first});
  }
  for (const Record* record = begin + 1; record < end; record++) {
    // first under to_least = record under its own permutation
    const Signature& theirs = space_.signature(space_.intern_signature(space_.classes_of(record->application)));
    const NameMap map = then(to_least, inverse(theirs.permutations[record->permutation]));
    level.equal.push_back({record->application, space_.renamed(first, map)});
  }
}

// Exchanges of variables that change nothing, other than those that commuting and arguments' own explain:
// (x+y)+z = (x+z)+y.
void Enumerator::add_symmetries(const Record& record, uint32_t id, Level& level) {
  if (record.symmetries == 0) return;
  const Application& application = record.application;
  std::vector<NameMap> plain;
  space_.normalized(application.op, application.output, application.args.data(), application.arity, &plain);
  const Signature& signature = space_.signature_of(id);
  for (size_t p = 1; p < signature.permutations.size() && p < 32; p++) {
    const Naming naming = signature.renamed(signature.identity, signature.permutations[p]);
    const bool is_plain = std::any_of(plain.begin(), plain.end(), [&](const NameMap& map) {
      return signature.renamed(signature.identity, map) == naming;
    });
    if (record.symmetries >> p & 1 && !is_plain) level.equal.push_back({application, {id, naming}});
  }
}

void Enumerator::add_classes(std::vector<Record>& records, Level& level, int activation_ops, int weight_ops) {
  std::sort(records.begin(), records.end(), [](const Record& a, const Record& b) {
    return a.least != b.least ? a.least < b.least : a.application < b.application;
  });
  struct Class {
    const Record *begin, *end;
    int variables;
  };
  std::vector<Class> classes;
  for (size_t i = 0; i < records.size();) {
    size_t end = i + 1;
    while (end < records.size() && records[end].least == records[i].least) end++;
    classes.push_back(
        {&records[i], records.data() + end, static_cast<int>(space_.classes_of(records[i].application).size())});
    i = end;
  }
  std::sort(classes.begin(), classes.end(), [](const Class& a, const Class& b) {
    return a.variables != b.variables ? a.variables < b.variables : a.begin->application < b.begin->application;
  });
  const bool final = is_final(activation_ops);
  constexpr size_t kAtOnce = 4096;
  std::vector<Representative> reps(kAtOnce);
  std::vector<std::vector<std::pair<Naming, Fingerprint>>> images(kAtOnce);
  std::vector<Evaluator> evaluators(static_cast<size_t>(threads_), Evaluator(space_));
  for (size_t start = 0; start < classes.size(); start += kAtOnce) {
    const size_t count = std::min(kAtOnce, classes.size() - start);
    for (size_t i = 0; i < count; i++) {
      reps[i] = representative_of(*classes[start + i].begin);
      reps[i].activation_ops = static_cast<uint8_t>(activation_ops);
      reps[i].weight_ops = static_cast<uint8_t>(weight_ops);
      reps[i].is_final = final;
      images[i].clear();
    }
    if (!final)
      parallel_for(threads_, count, [&](int thread, size_t i) {
        compute_images(reps[i], *classes[start + i].begin, evaluators[static_cast<size_t>(thread)], images[i]);
      });
    for (size_t i = 0; i < count; i++)
      add_class(classes[start + i].begin, classes[start + i].end, images[i], std::move(reps[i]), level);
  }
}

}  // namespace gopt::generator
