#include "check_inputs.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

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
      case InputKind::Masked: break;
    }
  }
  return Tensor::from_values<double>(ordinary.type(), ordinary.dims(), values);
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
    differences.push_back(difference(output.name, reference[k], other[k], own));
    passed &= differences.back().passed;
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
  return kind != InputKind::NearConstants || !constants_.empty();
}

std::map<std::string, Tensor> InputDraws::of(InputKind kind) const {
  std::map<std::string, Tensor> inputs = ordinary_;
  if (kind == InputKind::Ordinary) return inputs;
  if (kind == InputKind::Given) {
    for (const auto& [name, tensor] : options_.inputs)
      if (const auto it = inputs.find(name); it != inputs.end()) it->second = tensor;
    return inputs;
  }
  std::mt19937_64 random(seed_ + 1);
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
