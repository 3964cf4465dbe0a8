#include "world.h"

#include <algorithm>

#include "gopt/leading_axes.h"

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

Values random_scalars(uint64_t name, size_t count) {
  Values values;
  for (size_t element = 0; element < count; element++) {
    std::array<int64_t, kLanes> numerators;
    for (size_t lane = 0; lane < kLanes; lane++)
      numerators[lane] = random_numerator(name + element * kLanes + lane, signs_of(name ^ (lane + 1)));
    values.push_back(scalar_from_ratio(numerators, 256));
  }
  return values;
}

Environment numbers_of(const Substitution& sizes) {
  Environment numbers;
  for (const auto& [symbol, value] : sizes) numbers[symbol] = value.constant();
  return numbers;
}

void assign(double value, Scalar& number) { number = scalar_from_double(value); }
void assign(double value, Reals& number) { number = reals_from_double(value); }

}  // namespace

World::World(const TermStore& terms, const Substitution& sizes, std::vector<int64_t> prefix, uint64_t seed,
             TapeCache& tapes)
    : WorldOf(terms, numbers_of(sizes), std::move(prefix), tapes, [seed](const Term& variable, size_t count) {
        const int name = variable.variable_class * 64 + variable.variable_number + 1;
        return random_scalars(mix(seed ^ mix(static_cast<uint64_t>(name))), count);
      }) {}

template <class Number>
auto WorldOf<Number>::variable(const Term& term) const -> std::shared_ptr<const Tensor> {
  const VariableClass& description = terms_.family().classes[static_cast<size_t>(term.variable_class)];
  auto tensor = std::make_shared<Tensor>();
  if (description.has_prefix) {
    tensor->dims = prefix_;
    tensor->has_prefix = !prefix_.empty();
  }
  for (const Index& symbolic : *description.type.shape) {
    const auto extent = evaluate(symbolic, sizes_);
    if (!extent || *extent < 0) return nullptr;
    tensor->dims.push_back(*extent);
  }
  tensor->values = draw_(term, static_cast<size_t>(element_count(tensor->dims)));
  return tensor;
}

size_t TapeCache::Hash::operator()(const Key& key) const {
  uint64_t hash = key.size();
  for (int64_t number : key) hash = mix(hash ^ static_cast<uint64_t>(number)) + 0x9e3779b97f4a7c15ULL;
  return hash;
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

// The operator at the world's sizes, below its leading axes where an argument has them.
template <class Number>
AlphabetOp WorldOf<Number>::description_of(int op, bool has_prefix) const {
  AlphabetOp description = substituted(terms_.op(op), Substitution(sizes_.begin(), sizes_.end()));
  if (!has_prefix) return description;
  const Shape prefix(prefix_.begin(), prefix_.end());
  description.attributes = below_leading_axes(description.kind, description.attributes, prefix);
  for (CompositeStep& step : description.steps)
    step.attributes = below_leading_axes(step.kind, step.attributes, prefix);
  return description;
}

template <class Number>
auto WorldOf<Number>::tape_for(int op, int output, const std::vector<std::shared_ptr<const Tensor>>& args)
    -> std::shared_ptr<const Tape> {
  const AlphabetOp& description = terms_.op(op);
  const bool has_prefix = std::any_of(args.begin(), args.end(), [](const auto& arg) { return arg->has_prefix; });
  TapeCache::Key key{op, output, has_prefix ? static_cast<int64_t>(prefix_.size()) : 0};
  for (const auto& arg : args) {
    key.push_back(static_cast<int64_t>(arg->dims.size()));
    key.insert(key.end(), arg->dims.begin(), arg->dims.end());
  }
  bool has_values = true;
  const auto add = [&](const Index& index) {
    const auto number = evaluate(index, sizes_);
    has_values = has_values && number;
    key.push_back(number.value_or(0));
  };
  const auto add_all = [&](const Attributes& attributes) {
    for (const auto& [name, value] : attributes) {
      if (const auto* index = std::get_if<Index>(&value)) add(*index);
      if (const auto* list = std::get_if<std::vector<Index>>(&value)) std::for_each(list->begin(), list->end(), add);
    }
  };
  add_all(description.attributes);
  for (const CompositeStep& step : description.steps) add_all(step.attributes);
  if (!has_values) return nullptr;
  return tapes_.find(key, [&]() -> std::shared_ptr<const Tape> {
    std::vector<TensorType> types;
    for (const auto& arg : args) types.push_back(static_type(arg->dims));
    auto tape = Tape::make(description_of(op, has_prefix), types, output, terms_.family().has_exponentials);
    return tape.ok() ? std::make_shared<const Tape>(*std::move(tape)) : nullptr;
  });
}

template <class Number>
auto WorldOf<Number>::application(const Term& term) -> std::shared_ptr<const Tensor> {
  std::vector<std::shared_ptr<const Tensor>> args;
  std::vector<const std::vector<Number>*> values;
  for (TermId arg : term.args) {
    args.push_back(value(arg, true));
    if (!args.back()) return nullptr;
    values.push_back(&args.back()->values);
  }
  const auto tape = tape_for(term.op, term.output, args);
  if (!tape) return nullptr;
  auto result = tape->run(values);
  if (!result) return nullptr;
  const bool has_prefix = std::any_of(args.begin(), args.end(), [](const auto& arg) { return arg->has_prefix; });
  return std::make_shared<Tensor>(Tensor{tape->dims(), *std::move(result), has_prefix});
}

template <class Number>
auto WorldOf<Number>::value(TermId id, bool keep) -> std::shared_ptr<const Tensor> {
  if (const auto known = kept_.find(static_cast<uint32_t>(id)); known != kept_.end()) return known->second;
  const Term& term = terms_.term(id);
  std::shared_ptr<const Tensor> result;
  if (term.is_variable()) {
    result = variable(term);
  } else if (term.is_application()) {
    result = application(term);
  } else {
    auto constant = std::make_shared<Tensor>(Tensor{{}, std::vector<Number>(1)});
    assign(term.constant, constant->values.front());
    result = std::move(constant);
  }
  if (keep) kept_[static_cast<uint32_t>(id)] = result;
  return result;
}

template class WorldOf<Scalar>;
template class WorldOf<Reals>;

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
