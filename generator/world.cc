#include "world.h"

#include <algorithm>

namespace gopt::generator {
namespace {

TensorType static_type(const std::vector<int64_t>& dims) {
  return {ElementType::Float32, Shape(dims.begin(), dims.end())};
}

enum class Signs { Mixed, Positive, Negative };

// Half of the lanes of a variable have one sign throughout: the largest of many mixed numbers is never negative.
Signs signs_of(uint64_t key) {
  const uint64_t bits = mix(key) & 3;
  return bits == 0 ? Signs::Positive : bits == 1 ? Signs::Negative : Signs::Mixed;
}

// An integer over 256, not 0, of mixed magnitude, so that no term dominates a sum's sign.
int64_t random_numerator(uint64_t key, Signs signs) {
  const uint64_t bits = mix(key);
  const int magnitude = static_cast<int>(bits % 11) + 5;
  const auto value = static_cast<int64_t>((bits >> 12) & ((uint64_t{1} << magnitude) - 1)) + 1;
  const bool is_negative = signs == Signs::Negative || (signs == Signs::Mixed && ((bits >> 11) & 1));
  return is_negative ? -value : value;
}

}  // namespace

std::shared_ptr<const World::Tensor> World::variable(const Term& term) const {
  const VariableClass& description = terms_.family().classes[static_cast<size_t>(term.variable_class)];
  auto tensor = std::make_shared<Tensor>();
  if (description.has_prefix) tensor->dims = prefix_;
  const TensorType type = substituted(description.type, sizes_);
  for (const Index& extent : *type.shape) {
    if (!extent.as_constant() || *extent.as_constant() < 0) return nullptr;
    tensor->dims.push_back(*extent.as_constant());
  }
  const int64_t count = element_count(tensor->dims);
  const uint64_t name = mix(seed_ ^ mix(static_cast<uint64_t>(term.variable_class * 64 + term.variable_number + 1)));
  for (int64_t element = 0; element < count; element++) {
    std::array<int64_t, kLanes> numerators;
    for (int lane = 0; lane < kLanes; lane++)
      numerators[static_cast<size_t>(lane)] = random_numerator(name + static_cast<uint64_t>(element * kLanes + lane),
                                                               signs_of(name ^ static_cast<uint64_t>(lane + 1)));
    tensor->values.push_back(scalar_from_ratio(numerators, 256));
  }
  return tensor;
}

std::shared_ptr<const Tape> TapeCache::find(const Key& key, const std::function<std::shared_ptr<const Tape>()>& make) {
  constexpr size_t kMaxTapes = 20000;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = tapes_.find(key); known != tapes_.end()) return known->second;
  }
  auto made = make();
  const std::lock_guard lock(mutex_);
  if (tapes_.size() > kMaxTapes) tapes_.clear();
  tapes_.emplace(key, made);
  return made;
}

std::shared_ptr<const Tape> World::tape_for(int op, int output,
                                            const std::vector<std::shared_ptr<const Tensor>>& args) {
  const AlphabetOp description = substituted(terms_.op(op), sizes_);
  TapeCache::Key key{op, output};
  for (const auto& arg : args) {
    key.push_back(static_cast<int64_t>(arg->dims.size()));
    key.insert(key.end(), arg->dims.begin(), arg->dims.end());
  }
  const auto add = [&](const Index& index) { key.push_back(index.constant()); };  // every size has a number
  const auto add_all = [&](const Attributes& attributes) {
    for (const auto& [name, value] : attributes) {
      if (const auto* index = std::get_if<Index>(&value)) add(*index);
      if (const auto* list = std::get_if<std::vector<Index>>(&value)) std::for_each(list->begin(), list->end(), add);
    }
  };
  add_all(description.attributes);
  for (const CompositeStep& step : description.steps) add_all(step.attributes);
  return tapes_.find(key, [&]() -> std::shared_ptr<const Tape> {
    std::vector<TensorType> types;
    for (const auto& arg : args) types.push_back(static_type(arg->dims));
    auto tape = Tape::make(description, types, output);
    return tape.ok() ? std::make_shared<const Tape>(*std::move(tape)) : nullptr;
  });
}

std::shared_ptr<const World::Tensor> World::application(const Term& term) {
  std::vector<std::shared_ptr<const Tensor>> args;
  std::vector<const Values*> values;
  for (TermId arg : term.args) {
    args.push_back(value(arg, true));
    if (!args.back()) return nullptr;
    values.push_back(&args.back()->values);
  }
  const auto tape = tape_for(term.op, term.output, args);
  if (!tape) return nullptr;
  auto result = tape->run(values);
  if (!result) return nullptr;
  return std::make_shared<Tensor>(Tensor{tape->dims(), *std::move(result)});
}

std::shared_ptr<const World::Tensor> World::value(TermId id, bool keep) {
  if (const auto known = kept_.find(static_cast<uint32_t>(id)); known != kept_.end()) return known->second;
  const Term term = terms_.term(id);
  std::shared_ptr<const Tensor> result;
  if (term.is_variable())
    result = variable(term);
  else if (term.is_application())
    result = application(term);
  else
    result = std::make_shared<Tensor>(Tensor{{}, {scalar_from_double(term.constant)}});
  if (keep) kept_[static_cast<uint32_t>(id)] = result;
  return result;
}

void World::add_to(Fingerprint& fingerprint, const Tensor& tensor) const {
  const auto absorb = [&](uint64_t word) {
    fingerprint.high = mix(fingerprint.high ^ word) + 0x9e3779b97f4a7c15ULL;
    fingerprint.low = mix(fingerprint.low + mix(word ^ 0xc2b2ae3d27d4eb4fULL));
  };
  absorb(tensor.dims.size());
  for (int64_t dim : tensor.dims) absorb(static_cast<uint64_t>(dim));
  for (const Scalar& scalar : tensor.values)
    for (uint64_t residue : scalar.residue) absorb(residue);
}

}  // namespace gopt::generator
