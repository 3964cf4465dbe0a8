#include "side_evaluator.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "gopt/definition.h"

namespace gopt::verifier {
namespace {

double rounded(double value, ElementType type, bool is_unlimited) {
  if (!is_unlimited || !std::isfinite(value)) return rounded_to(type, value);
  int exponent = 0;
  const double digits = std::frexp(value, &exponent);
  return std::ldexp(rounded_to(type, digits), exponent);
}

bool is_comfortable(double value, const RealRange& range) {
  const double magnitude = std::fabs(value);
  return magnitude == 0 || (magnitude <= range.largest / range.margin && magnitude >= range.smallest_normal);
}

// Moves to the next position of a tensor, row by row; false after the last.
bool advance(const std::vector<AtomId>& axes, const std::vector<int64_t>& dims, Environment& at) {
  for (size_t axis = axes.size(); axis-- > 0;) {
    if (++at[axes[axis]] < dims[axis]) return true;
    at[axes[axis]] = 0;
  }
  return false;
}

}  // namespace

SideEvaluator::Step SideEvaluator::step_of(const TensorExpr& output, int slot) {
  Step step{slot, output.element, output.shape, {}, std::nullopt, false, {}};
  std::vector<Index> subscripts;
  for (size_t axis = 0; axis < output.shape.size(); axis++) {
    step.position.push_back(symbol_atom("%p" + std::to_string(axis)));
    subscripts.push_back(Index::from_atom(step.position.back()));
  }
  step.value.emplace(output.at(subscripts));
  return step;
}

Result<SideEvaluator> SideEvaluator::compile(const Graph& side) {
  SideEvaluator made;
  std::map<Value, TensorExpr> tensors;
  int next = 0;
  for (const Value& input : side.inputs()) {
    tensors[input] = input_tensor(next, input.type());
    made.inputs_.emplace_back(next++, input.type().element);
  }
  std::map<Value, int> slots;
  for (size_t i = 0; i < side.inputs().size(); i++) slots[side.inputs()[i]] = static_cast<int>(i);
  for (const NodePtr& node : side.nodes()) {
    if (node->is(OpKind::Input)) continue;
    if (node->is(OpKind::Opaque)) return Error{"operator " + node->opaque->op_type + " has no definition"};
    if (node->is(OpKind::Constant)) {
      const Tensor& tensor = node->tensor;
      if (!is_computable(tensor.type())) return Error{"a constant is not numeric"};
      Step step{next,         tensor.type(), *tensor.tensor_type().shape,         {},
                std::nullopt, false,         {tensor.dims(), tensor.to_doubles()}};
      tensors[{node, 0}] = input_tensor(next, tensor.tensor_type());
      tensors[{node, 0}].data = &tensor;
      slots[{node, 0}] = next++;
      made.steps_.push_back(std::move(step));
      continue;
    }
    std::vector<TensorExpr> inputs;
    for (const Value& v : node->inputs) inputs.push_back(v ? tensors.at(v) : TensorExpr{});
    GOPT_ASSIGN_OR_RETURN(const Definition definition,
                          define(node->op, inputs, node->attributes, static_cast<int>(node->outputs.size())));
    for (size_t k = 0; k < node->outputs.size(); k++) {
      const Value value{node, static_cast<int>(k)};
      made.steps_.push_back(step_of(definition.outputs[k], next));
      made.steps_.back().is_conversion = node->is(OpKind::Cast);
      tensors[value] = input_tensor(next, {definition.outputs[k].element, definition.outputs[k].shape});
      slots[value] = next++;
    }
  }
  for (const GraphOutput& output : side.outputs()) made.outputs_.push_back(slots.at(output.value));
  return made;
}

int SideEvaluator::wide_operators(ElementType real) const {
  return static_cast<int>(std::count_if(steps_.begin(), steps_.end(), [&](const Step& step) {
    return step.value && !step.is_conversion && is_floating(step.element) &&
           range_of(step.element).unit < range_of(real).unit;
  }));
}

std::optional<SideEvaluator::Values> SideEvaluator::run(const Environment& sizes, const SampleInputs& inputs,
                                                        const Rounding& rounding, int64_t most_elements) const {
  Values values;
  SampleInputs known = inputs;
  for (const auto& [slot, element] : inputs_)
    if (is_floating(element)) {
      const RealRange range = range_of(element);
      for (double value : known.at(slot).values) values.is_comfortable &= is_comfortable(value, range);
    }
  for (const Step& step : steps_) {
    SampleTensor result = step.constant;
    if (step.value) {
      for (const Index& extent : step.shape) {
        const auto own = evaluate(extent, sizes);
        if (!own || *own < 0) return std::nullopt;
        result.dims.push_back(*own);
      }
      const int64_t count = element_count(result.dims);
      if (count > most_elements) return std::nullopt;
      Environment at = sizes;
      for (AtomId axis : step.position) at[axis] = 0;
      for (int64_t k = 0; k < count; k++, advance(step.position, result.dims, at))
        result.values.push_back((*step.value)(at, known, {}));
    }
    if (is_floating(step.element)) {
      const RealRange range = range_of(step.element);
      bool was_rounded = false;
      for (double& value : result.values) {
        const double exact = value;
        value = rounded(value, step.element, rounding.is_unlimited);
        was_rounded |= value != exact;
        values.is_comfortable &= is_comfortable(value, range);
      }
      if (was_rounded && !step.is_conversion && range.unit >= range_of(rounding.real).unit) values.narrow_roundings++;
    }
    known[step.slot] = std::move(result);
  }
  for (int slot : outputs_) values.outputs.push_back(known.at(slot));
  return values;
}

}  // namespace gopt::verifier
