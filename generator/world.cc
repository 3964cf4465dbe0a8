#include "world.h"

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

const Tape* World::tape_for(int op, int output, const std::vector<std::shared_ptr<const Tensor>>& args) {
  std::vector<std::vector<int64_t>> dims;
  for (const auto& arg : args) dims.push_back(arg->dims);
  const auto [entry, is_new] = tapes_.try_emplace({{op, output}, dims});
  if (is_new) {
    std::vector<TensorType> types;
    for (const auto& own : dims) types.push_back(static_type(own));
    const AlphabetOp& description = terms_.op(op);
    auto tape = Tape::make(substituted(description, sizes_), types, output);
    if (tape.ok()) entry->second = *std::move(tape);
  }
  return entry->second ? &*entry->second : nullptr;
}

std::shared_ptr<const World::Tensor> World::application(const Term& term) {
  std::vector<std::shared_ptr<const Tensor>> args;
  std::vector<const Values*> values;
  for (TermId arg : term.args) {
    args.push_back(value(arg, true));
    if (!args.back()) return nullptr;
    values.push_back(&args.back()->values);
  }
  const Tape* tape = tape_for(term.op, term.output, args);
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
