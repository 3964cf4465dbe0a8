#include "space.h"

#include <algorithm>
#include <tuple>

namespace gopt::generator {
namespace {

constexpr size_t kBlockSize = 4096;    // scalars
constexpr size_t kMaxWords = 1 << 15;  // of a value
constexpr unsigned kUnnamed = 15;

}  // namespace

size_t hash_of(const Application& application) {
  uint64_t hash = mix(static_cast<uint64_t>(application.op) << 8 | application.output);
  for (size_t i = 0; i < application.arity; i++) {
    const Named& arg = application.args[i];
    hash = mix(hash ^ (static_cast<uint64_t>(arg.rep) << 32 | arg.naming));
  }
  return hash;
}

// ---- FingerprintTable ----

size_t FingerprintTable::place(const Fingerprint& fingerprint) const {
  const size_t mask = entries_.size() - 1;
  size_t at = fingerprint.low & mask;
  while (entries_[at].fingerprint != Fingerprint{} && entries_[at].fingerprint != fingerprint) at = (at + 1) & mask;
  return at;
}

void FingerprintTable::grow() {
  std::vector<Entry> old(std::max<size_t>(1024, 2 * entries_.size()));
  old.swap(entries_);
  for (const Entry& entry : old)
    if (entry.fingerprint != Fingerprint{}) entries_[place(entry.fingerprint)] = entry;
}

bool FingerprintTable::insert(const Fingerprint& fingerprint, Named named) {
  if (3 * (count_ + 1) > 2 * entries_.size()) grow();
  Entry& entry = entries_[place(fingerprint)];
  if (entry.fingerprint == fingerprint) return false;
  entry = {fingerprint, named};
  count_++;
  return true;
}

const Named* FingerprintTable::find(const Fingerprint& fingerprint) const {
  if (entries_.empty()) return nullptr;
  const Entry& entry = entries_[place(fingerprint)];
  return entry.fingerprint == fingerprint ? &entry.named : nullptr;
}

// ---- Space ----

Space::Space(TermStore& terms, Kernels& kernels, int max_variables, uint64_t seed)
    : terms_(terms),
      kernels_(kernels),
      max_variables_(std::min(std::max(max_variables, terms.family().max_variables), kMaxVariables)),
      seed_(seed) {
  for (const VariableClass& variables : terms.family().classes)
    pools_.push_back(static_cast<unsigned>(std::min(variables.count, max_variables_)));
  for (size_t i = 0; i < kMaxWords; i++) keys_.push_back({mix(seed + 2 * i) | 1, mix(~seed - 2 * i) | 1});
}

uint32_t Space::add(Representative rep) {
  reps_.push_back(std::move(rep));
  return rep_count() - 1;
}

size_t Space::big_argument(const Named* args, int arity) const {
  size_t big = 0;
  for (size_t i = 1; i < static_cast<size_t>(arity); i++)
    if (reps_[args[i].rep].total_ops() > reps_[args[big].rep].total_ops()) big = i;
  return big;
}

std::vector<uint8_t> Space::classes_of(const Application& application) const {
  std::vector<uint8_t> classes;
  std::array<uint8_t, kMaxClasses> used{};
  const size_t big = big_argument(application.args.data(), application.arity);
  const auto take = [&](const Named& named) {
    const Signature& own = signature_of(named.rep);
    for (unsigned i = 0; i < own.count; i++)
      if (nibble(named.naming, i) == used[own.classes[i]]) {
        used[own.classes[i]]++;
        classes.push_back(own.classes[i]);
      }
  };
  if (application.arity > 0) take(application.args[big]);
  for (size_t i = 0; i < application.arity; i++)
    if (i != big) take(application.args[i]);
  return classes;
}

Named Space::canonical(Named named) const {
  const Representative& rep = reps_[named.rep];
  Naming best = named.naming;
  const unsigned count = signatures_[rep.signature].count;
  for (const LocalPermutation& symmetry : rep.symmetries) {
    Naming other = 0;
    for (unsigned i = 0; i < count; i++) other = with_nibble(other, i, nibble(named.naming, symmetry[i]));
    best = std::min(best, other);
  }
  return {named.rep, best};
}

namespace {

// Names the variables of one argument after another.
struct Namer {
  NameMap to_own = NameMap::nothing();  // from the numbers given
  std::array<uint8_t, kMaxClasses> used{};

  // The argument's naming under own numbers; new variables get the next ones.
  Naming name(const Signature& signature, Naming given, const LocalPermutation* symmetry) {
    Naming result = 0;
    for (unsigned i = 0; i < signature.count; i++) {
      const uint8_t variable_class = signature.classes[i];
      const unsigned number = nibble(given, symmetry ? (*symmetry)[i] : i);
      uint32_t& map = to_own.of_class[variable_class];
      if (nibble(map, number) == kUnnamed) map = with_nibble(map, number, used[variable_class]++);
      result = with_nibble(result, i, nibble(map, number));
    }
    return result;
  }
};

NameMap inverted(const NameMap& map) {
  NameMap result = NameMap::nothing();
  for (size_t c = 0; c < kMaxClasses; c++)
    for (unsigned k = 0; k < kMaxVariables; k++)
      if (const unsigned to = nibble(map.of_class[c], k); to != kUnnamed)
        result.of_class[c] = with_nibble(result.of_class[c], to, k);
  return result;
}

}  // namespace

Space::Normal Space::normalized(int op, int output, const Named* args, int arity, std::vector<NameMap>* ways) const {
  Normal best;
  bool has_best = false;
  Application made;
  made.op = static_cast<int16_t>(op);
  made.output = static_cast<uint8_t>(output);
  made.arity = static_cast<uint8_t>(arity);
  if (arity == 0) return {made, NameMap::nothing()};
  const auto count = static_cast<size_t>(arity);
  const auto offer = [&](const Namer& namer) {
    if (has_best && best.application < made) return;
    const bool is_better = !has_best || made < best.application;
    if (!is_better && !ways) return;
    const NameMap back = inverted(namer.to_own);
    if (is_better) {
      best = {made, back};
      if (ways) ways->clear();
    }
    has_best = true;
    if (ways) ways->push_back(back);
  };
  const auto try_order = [&](const std::array<Named, kMaxArguments>& given) {
    const size_t big = big_argument(given.data(), arity);
    const Representative& rep = reps_[given[big].rep];
    for (size_t s = 0; s <= rep.symmetries.size(); s++) {
      Namer namer;
      made.args[big] = {given[big].rep, namer.name(signatures_[rep.signature], given[big].naming,
                                                   s == 0 ? nullptr : &rep.symmetries[s - 1])};
      for (size_t i = 0; i < count; i++) {
        if (i == big) continue;
        const Representative& other = reps_[given[i].rep];
        const Signature& signature = signatures_[other.signature];
        Namer named = namer;
        Naming least = named.name(signature, given[i].naming, nullptr);
        for (const LocalPermutation& symmetry : other.symmetries) {
          Namer trial = namer;
          if (const Naming naming = trial.name(signature, given[i].naming, &symmetry); naming < least) {
            least = naming;
            named = trial;
          }
        }
        namer = named;
        made.args[i] = {given[i].rep, least};
      }
      offer(namer);
    }
  };
  std::array<Named, kMaxArguments> given{};
  std::copy(args, args + count, given.begin());
  const bool commutes = arity == 2 && op_info(terms_.op(op).kind).has(kCommutative);
  if (!commutes || given[0].rep >= given[1].rep) try_order(given);
  if (commutes && given[0].rep <= given[1].rep) {
    std::swap(given[0], given[1]);
    try_order(given);
  }
  return best;
}

std::vector<Naming> Space::namings_of(uint32_t rep) const {
  const Signature& signature = signature_of(rep);
  std::vector<Naming> namings{0};
  for (unsigned i = 0; i < signature.count; i++) {
    std::vector<Naming> longer;
    for (Naming naming : namings)
      for (unsigned number = 0; number < pools_[signature.classes[i]]; number++) {
        bool is_taken = false;
        for (unsigned j = 0; j < i; j++)
          is_taken |= signature.classes[j] == signature.classes[i] && nibble(naming, j) == number;
        if (!is_taken) longer.push_back(with_nibble(naming, i, number));
      }
    namings = std::move(longer);
  }
  return namings;
}

size_t Space::image_number(const Signature& signature, Naming naming) const {
  size_t number = 0;
  for (unsigned i = 0; i < signature.count; i++) number = number * pools_[signature.classes[i]] + nibble(naming, i);
  return number;
}
size_t Space::image_count(const Signature& signature) const {
  size_t count = 1;
  for (unsigned i = 0; i < signature.count; i++) count *= pools_[signature.classes[i]];
  return count;
}

uint64_t Space::type_key(TypeId type) {
  uint64_t key = 1;
  for (int assignment : {0, 1}) {
    const TensorType own = substituted(terms_.type(type), sizes_of(terms_.family(), assignment));
    key = mix(key + own.shape->size());
    for (int64_t extent : own.static_shape()) key = mix(key ^ static_cast<uint64_t>(extent));
  }
  return key;
}

Fingerprint Space::fingerprint(uint64_t type_key, const Scalar* values, size_t size) const {
  uint64_t high = type_key, low = ~type_key;
  size_t at = 0;
  for (size_t i = 0; i < size; i++)
    for (uint64_t residue : values[i].residue) {
      const uint64_t word = residue ^ (residue >> 29);
      high += word * keys_[at][0];
      low += word * keys_[at][1];
      at = (at + 1) % kMaxWords;
    }
  return {mix(high ^ mix(low)), mix(low)};
}

TermId Space::term_of(Named named) {
  const Representative& own = reps_[named.rep];
  if (own.leaf_class >= 0) return terms_.variable(own.leaf_class, static_cast<int>(nibble(named.naming, 0)));
  if (own.application.op < 0) return terms_.constant(own.constant);
  return term_of(own.application, signature_of(named.rep).map_of(named.naming));
}

TermId Space::term_of(const Application& application, const NameMap& map) {
  std::vector<TermId> args;
  for (size_t i = 0; i < application.arity; i++) args.push_back(term_of(renamed(application.args[i], map)));
  const auto made = terms_.apply(application.op, application.output, args);
  GOPT_CHECK(made.has_value(), "an enumerated application has a type");
  return *made;
}

// ---- Evaluator ----

Scalar* Evaluator::room(size_t size) {
  while (block_ < blocks_.size() && used_ + size > blocks_[block_].size()) {
    block_++;
    used_ = 0;
  }
  if (block_ == blocks_.size()) blocks_.emplace_back(std::max(size, kBlockSize));
  used_ += size;
  return blocks_[block_].data() + used_ - size;
}

void Evaluator::reset() { block_ = used_ = 0; }

const Scalar* Evaluator::run(const TermKernel& kernel, size_t size, const Scalar* const* inputs) {
  Scalar* result = room(size);
  return kernel.run(inputs, result, registers_) ? result : nullptr;
}

const Scalar* Evaluator::apply(const TermKernel& kernel, size_t size, const Named* args, int arity) {
  std::array<const Scalar*, kMaxArguments> inputs{};
  for (size_t i = 0; i < static_cast<size_t>(arity); i++) {
    inputs[i] = value(args[i]);
    if (!inputs[i]) return nullptr;
  }
  return run(kernel, size, inputs.data());
}

const Scalar* Evaluator::value(Named named) {
  const Representative& rep = space_.rep(named.rep);
  const Signature& signature = space_.signature(rep.signature);
  if (!rep.images.empty()) {
    const Values& image = rep.images[space_.image_number(signature, named.naming)];
    return image.empty() ? nullptr : image.data();
  }
  const NameMap map = signature.map_of(named.naming);
  std::array<Named, kMaxArguments> args{};
  for (size_t i = 0; i < rep.application.arity; i++) args[i] = space_.renamed(rep.application.args[i], map);
  return apply(*rep.kernel, rep.size, args.data(), rep.application.arity);
}

}  // namespace gopt::generator
