// Operators of a family as definitions: those of the table as they are, composites step by step.
#include "alphabet.h"

namespace gopt::generator {
namespace {

TensorExpr scalar(double value) {
  return {ElementType::Float32, {}, [value](const std::vector<Index>&) { return constant(value); }};
}

}  // namespace

Attributes substituted(const Attributes& attributes, const Substitution& sizes) {
  Attributes result = attributes;
  for (auto& [name, value] : result) {
    if (auto* index = std::get_if<Index>(&value)) *index = substitute(*index, sizes);
    if (auto* list = std::get_if<std::vector<Index>>(&value))
      for (Index& index : *list) index = substitute(index, sizes);
    if (std::holds_alternative<FloatVariable>(value)) value = kFloatVariable;
  }
  return result;
}

AlphabetOp substituted(const AlphabetOp& op, const Substitution& sizes) {
  AlphabetOp result = op;
  result.attributes = substituted(op.attributes, sizes);
  for (CompositeStep& step : result.steps) step.attributes = substituted(step.attributes, sizes);
  return result;
}

Result<Definition> define(const AlphabetOp& op, const std::vector<TensorExpr>& inputs) {
  if (op.steps.empty()) return gopt::define(op.kind, inputs, op.attributes, op.outputs);
  std::vector<TensorExpr> made;
  Definition all;
  for (const CompositeStep& step : op.steps) {
    std::vector<TensorExpr> args;
    for (const CompositeStep::Argument& arg : step.args)
      args.push_back(arg.from == CompositeStep::From::Input  ? inputs[arg.number]
                     : arg.from == CompositeStep::From::Step ? made[arg.number]
                                                             : scalar(arg.constant));
    GOPT_ASSIGN_OR_RETURN(Definition own, gopt::define(step.kind, args, step.attributes, 1));
    std::move(own.requirements.begin(), own.requirements.end(), std::back_inserter(all.requirements));
    made.push_back(std::move(own.outputs.front()));
  }
  all.outputs = {std::move(made.back())};
  return all;
}

Result<InferredTypes> infer_types(const AlphabetOp& op, const std::vector<TensorType>& inputs) {
  if (op.steps.empty()) return gopt::infer_types(op.kind, inputs, op.attributes, op.outputs);
  std::vector<TensorExpr> tensors;
  for (size_t i = 0; i < inputs.size(); i++) tensors.push_back(input_tensor(static_cast<int>(i), inputs[i]));
  GOPT_ASSIGN_OR_RETURN(Definition all, define(op, tensors));
  return InferredTypes{{{all.outputs.front().element, all.outputs.front().shape}}, std::move(all.requirements)};
}

}  // namespace gopt::generator
