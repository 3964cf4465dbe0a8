#include "check_inputs.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "draw_inputs.h"
#include "gopt/wide_integers.h"
#include "quantization_step.h"

namespace gopt::driver {
namespace {

void collect_constants(const Graph& graph, std::set<double>& out) {
  constexpr int64_t kFew = 16;
  const auto add = [&](double value) {
    if (std::isfinite(value) && value != 0) out.insert(value);
  };
  for (const NodePtr& node : graph.nodes()) {
    if (node->is(OpKind::Constant) && is_floating(node->tensor.type()) && is_computable(node->tensor.type()) &&
        node->tensor.count() <= kFew)
      for (double value : node->tensor.to_doubles()) add(value);
    for (const auto& [name, value] : node->attributes)
      if (const auto* number = std::get_if<double>(&value)) add(*number);
  }
}

void mask_rows(std::vector<double>& values, const std::vector<int64_t>& dims, std::mt19937_64& random) {
  constexpr double kMask = -1e4;  // as models have it; half precision holds it
  const auto row = static_cast<size_t>(dims.empty() ? 1 : std::max<int64_t>(dims.back(), 1));
  for (size_t begin = 0; begin < values.size(); begin += row) {
    const bool is_whole = random() % 8 == 0;
    for (size_t k = begin; k < std::min(begin + row, values.size()); k++)
      if (is_whole || random() % 4 == 0) values[k] = kMask;
  }
}

Tensor tensor_of_kind(const Tensor& ordinary, InputKind kind, const std::vector<double>& constants,
                      std::mt19937_64& random) {
  std::vector<double> values = ordinary.to_doubles();
  const bool is_half = ordinary.type() == ElementType::Float16;
  if (kind == InputKind::Masked) mask_rows(values, ordinary.dims(), random);
  for (double& value : values) {
    switch (kind) {
      case InputKind::Large: value *= is_half ? 10 : 100; break;
      case InputKind::Tiny: value *= is_half ? 1e-3 : 1e-6; break;
      case InputKind::Shifted: value += is_half ? 100 : 1000; break;
      case InputKind::NearConstants: value = constants[random() % constants.size()] * (1 + 0.1 * value); break;
      case InputKind::Ordinary:
      case InputKind::Given:
      case InputKind::Masked:
      case InputKind::Integers: break;
    }
  }
  return Tensor::from_values<double>(ordinary.type(), ordinary.dims(), values);
}

void collect_ancestors(const Value& value, std::set<const Node*>& seen) {
  std::vector<const Node*> open{value.node.get()};
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    for (const Value& input : node->inputs)
      if (input) open.push_back(input.node.get());
  }
}

bool is_of_integers(const Value& value) {
  std::set<const Node*> nodes;
  collect_ancestors(value, nodes);
  return std::ranges::all_of(nodes, [](const Node* node) {
    return std::ranges::none_of(node->outputs, [](const TensorType& type) { return is_floating(type.element); });
  });
}

// The ends of a type and what lies beside them, small numbers, and the graph's own with their neighbours.
std::vector<int64_t> extreme_integers(ElementType type, const std::set<int64_t>& constants) {
  const size_t bits = size_bytes(type) * 8;
  const auto top = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);  // of a type with a sign
  // Bits are kept as they are by types of 64 bits without a sign.
  const int64_t last = !has_no_sign(type) ? top : bits == 64 ? -1 : static_cast<int64_t>((uint64_t{1} << bits) - 1);
  const int64_t first = has_no_sign(type) ? 0 : -top - 1;
  std::vector<int64_t> numbers{first, first + 1, last, last - 1, top, 0, 1, 2, 3};
  if (!has_no_sign(type)) numbers.insert(numbers.end(), {-1, -2});
  for (const int64_t c : constants)
    for (const int64_t near : {-1, 0, 1}) {
      const auto number = static_cast<int64_t>(static_cast<uint64_t>(c) + static_cast<uint64_t>(near));
      const bool fits = bits == 64 || (number >= first && number <= last);
      if (fits) numbers.push_back(number);
    }
  return numbers;
}

// Dealt out, so that a tensor has all of them before it has one twice; `round` goes on where the one before ended.
Tensor extreme_tensor(const Tensor& ordinary, const std::set<int64_t>& constants, uint64_t seed, int round) {
  std::vector<int64_t> choices = extreme_integers(ordinary.type(), constants);
  std::mt19937_64 random(seed);
  std::shuffle(choices.begin(), choices.end(), random);
  std::vector<int64_t> values = ordinary.to_ints();
  size_t next = static_cast<size_t>(round) * values.size();
  for (int64_t& value : values) {
    // Others meet them in another order each time.
    if (next % choices.size() == 0) std::shuffle(choices.begin(), choices.end(), random);
    value = choices[next++ % choices.size()];
  }
  return Tensor::from_values<int64_t>(ordinary.type(), ordinary.dims(), values);
}

}  // namespace

std::string_view to_string(InputKind kind) {
  switch (kind) {
    case InputKind::Ordinary: return "ordinary";
    case InputKind::Given: return "given";
    case InputKind::Large: return "large";
    case InputKind::Tiny: return "tiny";
    case InputKind::Shifted: return "shifted";
    case InputKind::Masked: return "masked";
    case InputKind::NearConstants: return "near removed constants";
    case InputKind::Integers: return "extreme integer";
  }
  return "";
}

// Numbers far from ordinary ones lose digits in both models. What a rewrite must not do to them is to overflow, or to
// leave nothing of a result; where the original does that itself, nothing is asked.
Tolerance tolerance_for(InputKind kind, Tolerance tolerance) {
  constexpr double kLooser = 100;
  if (kind == InputKind::Ordinary || kind == InputKind::Given) return tolerance;
  return {tolerance.relative * kLooser, tolerance.absolute, true, tolerance.step};
}

void add_draw(CheckReport& report, const Graph& original, InputKind kind, const std::vector<Tensor>& reference,
              const std::vector<Tensor>& other, const Tolerance& tolerance, const std::vector<Tensor>* nudged) {
  std::vector<Difference> differences;
  bool passed = true;
  for (size_t k = 0; k < reference.size(); k++) {
    const GraphOutput& output = original.outputs()[k];
    Tolerance own = tolerance_of_output(output.value, tolerance_for(kind, tolerance));
    if (nudged) own.step += difference(output.name, reference[k], (*nudged)[k], own).max_absolute;
    const bool is_asked = kind != InputKind::Integers || is_of_integers(output.value);
    differences.push_back(difference(output.name, reference[k], is_asked ? other[k] : reference[k], own));
    passed &= differences.back().passed;
  }
  if (kind == InputKind::Integers && report.draws.back() == to_string(kind)) {  // one kind is told once
    report.draws.pop_back();
    report.differences_of_draw.pop_back();
  }
  report.draws.emplace_back(to_string(kind));
  if (kind == InputKind::Ordinary || !passed) report.differences = differences;
  report.differences_of_draw.push_back(std::move(differences));
  report.checked = true;
  report.passed = passed;
}

std::vector<double> removed_constants(const Graph& original, const Graph& optimized) {
  std::set<double> before, after;
  collect_constants(original, before);
  collect_constants(optimized, after);
  std::vector<double> removed;
  for (double value : before)
    if (!after.count(value)) removed.push_back(value);
  return removed;
}

IntegerDraws integer_draws(const Graph& graph) {
  constexpr int64_t kFew = 16;
  IntegerDraws draws;
  std::set<const Node*> needed;
  for (const GraphOutput& output : graph.outputs())
    if (is_of_integers(output.value)) collect_ancestors(output.value, needed);
  for (const Value& input : graph.inputs()) {
    const ElementType type = input.type().element;
    if (needed.contains(input.node.get()) && is_integer(type) && is_computable(type) && !names_places(graph, input))
      draws.inputs.insert(input.node->name);
  }
  const auto add = [&](const Index& number) {
    if (number.is_constant()) draws.constants.insert(number.constant());
  };
  for (const NodePtr& node : graph.nodes()) {
    if (node->is(OpKind::Constant) && is_integer(node->tensor.type()) && is_computable(node->tensor.type()) &&
        node->tensor.count() <= kFew)
      for (const int64_t number : node->tensor.to_ints()) add(Index(number));
    for (const auto& [name, value] : node->attributes)  // bounds of Clip and the like are numbers of any type
      if (const auto* number = std::get_if<double>(&value); number && std::abs(*number) < 0x1p62)
        add(Index(static_cast<int64_t>(*number)));
  }
  return draws;
}

}  // namespace gopt::driver

namespace gopt {

std::string last_inputs(const CheckReport& report) {
  const std::string& draw = report.draws.back();
  return draw + (draw == driver::to_string(driver::InputKind::Given) ? " inputs" : " random inputs");
}

}  // namespace gopt

namespace gopt::driver {

bool InputDraws::has(InputKind kind) const {
  if (kind == InputKind::Given) return !options_.inputs.empty();
  if (kind == InputKind::Integers) return !integers_.inputs.empty();
  return kind != InputKind::NearConstants || !constants_.empty();
}

int InputDraws::rounds(InputKind kind) const {
  constexpr int64_t kEnough = 256, kMost = 16;
  if (kind != InputKind::Integers) return 1;
  int64_t rounds = 1;
  for (const auto& [name, tensor] : ordinary_)
    if (integers_.inputs.contains(name) && tensor.count() > 0)
      rounds = std::max(rounds, std::min(kMost, kEnough / tensor.count()));
  return static_cast<int>(rounds);
}

std::map<std::string, Tensor> InputDraws::of(InputKind kind, int round) const {
  std::map<std::string, Tensor> inputs = ordinary_;
  if (kind == InputKind::Ordinary) return inputs;
  if (kind == InputKind::Given) {
    for (const auto& [name, tensor] : options_.inputs)
      if (const auto it = inputs.find(name); it != inputs.end()) it->second = tensor;
    return inputs;
  }
  std::mt19937_64 random(seed_ + 1);
  if (kind == InputKind::Integers) {
    for (auto& [name, tensor] : inputs)
      if (integers_.inputs.contains(name)) tensor = extreme_tensor(tensor, integers_.constants, random(), round);
    return inputs;
  }
  for (auto& [name, tensor] : inputs)
    if (is_floating(tensor.type()) && is_computable(tensor.type()))
      tensor = tensor_of_kind(tensor, kind, constants_, random);
  return inputs;
}

Result<std::vector<Tensor>> expected_outputs(const Graph& original, InputKind kind, std::vector<Tensor> reference,
                                             const CheckOptions& options) {
  if (kind != InputKind::Given) return reference;
  for (const auto& [name, tensor] : options.expected) {
    const auto output = std::ranges::find(original.outputs(), name, &GraphOutput::name);
    if (output == original.outputs().end()) return Error{"output " + name + ", which is expected, cannot be run here"};
    reference[static_cast<size_t>(output - original.outputs().begin())] = tensor;
  }
  return reference;
}

}  // namespace gopt::driver
