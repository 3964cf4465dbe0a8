#include "rule_sides.h"

#include <map>

namespace gopt::checker {
namespace {

// The last element that is not where its condition says is the first one.
TensorExpr constant_tensor(const Tensor& tensor) {
  TensorExpr t{tensor.type(), *tensor.tensor_type().shape, {}};
  t.data = &tensor;
  t.at = [values = tensor.to_doubles(), dims = tensor.dims()](const std::vector<Index>& subscripts) {
    Expr chain = constant(values.empty() ? 0 : values[0]);
    for (size_t k = 1; k < values.size(); k++) {
      auto rest = static_cast<int64_t>(k);
      Cond here;
      for (size_t axis = dims.size(); axis-- > 0; rest /= dims[axis])
        here = here && equal(subscripts[axis], Index(rest % dims[axis]));
      chain = select(here, constant(values[k]), chain);
    }
    return chain;
  };
  return t;
}

TensorType with_sizes(const TensorType& type, const Substitution& sizes) {
  Shape shape;
  for (const Index& extent : *type.shape) shape.push_back(substitute(extent, sizes));
  return {type.element, std::move(shape)};
}

AttributeValue with_sizes(const AttributeValue& value, const Substitution& sizes) {
  if (const auto* index = std::get_if<Index>(&value)) return substitute(*index, sizes);
  const auto* list = std::get_if<std::vector<Index>>(&value);
  if (!list) return value;
  std::vector<Index> numbers;
  for (const Index& index : *list) numbers.push_back(substitute(index, sizes));
  return numbers;
}

}  // namespace

Result<Side> side_by_definitions(const Graph& side, const Substitution& sizes) {
  Side meaning;
  std::map<Value, TensorExpr> tensors;
  for (size_t i = 0; i < side.inputs().size(); i++)
    tensors[side.inputs()[i]] = input_tensor(static_cast<int>(i), with_sizes(side.inputs()[i].type(), sizes));
  for (const NodePtr& node : side.nodes()) {
    if (node->is(OpKind::Input)) continue;
    if (node->is(OpKind::Opaque)) return Error{node->opaque->op_type + " has no definition"};
    if (node->is(OpKind::Constant)) {
      if (!is_computable(node->tensor.type())) return Error{"a constant is not numeric"};
      tensors[{node, 0}] = constant_tensor(node->tensor);
      continue;
    }
    std::vector<TensorExpr> inputs;
    for (const Value& v : node->inputs) inputs.push_back(v ? tensors.at(v) : TensorExpr{});
    Attributes attributes;
    for (const auto& [name, value] : node->attributes) attributes[name] = with_sizes(value, sizes);
    GOPT_ASSIGN_OR_RETURN(const Definition definition,
                          define(node->op, inputs, attributes, static_cast<int>(node->outputs.size())));
    meaning.requirements.insert(meaning.requirements.end(), definition.requirements.begin(),
                                definition.requirements.end());
    for (size_t k = 0; k < node->outputs.size(); k++) tensors[{node, static_cast<int>(k)}] = definition.outputs[k];
  }
  for (const GraphOutput& output : side.outputs()) meaning.outputs.push_back(tensors.at(output.value));
  return meaning;
}

std::set<AtomId> symbols_of(const RewriteRule& rule) {
  std::set<AtomId> symbols;
  for (const RuleVariable& variable : rule.variables)
    for (const Index& extent : *variable.type.shape) collect_symbols(extent, symbols);
  for (const NodePtr& node : rule.left.nodes())
    for (const auto& [name, value] : node->attributes) collect_symbols(value, symbols);
  return symbols;
}

Cond domain_of(const RewriteRule& rule) {
  Cond domain;
  for (const RuleVariable& variable : rule.variables) {
    for (const Index& extent : *variable.type.shape) {
      domain = domain && at_least(extent, Index(0));
      std::set<AtomId> symbols;
      collect_symbols(extent, symbols);
      for (const AtomId symbol : symbols) domain = domain && at_least(Index::from_atom(symbol), Index(0));
    }
  }
  return domain;
}

}  // namespace gopt::checker
