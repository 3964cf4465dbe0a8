#include "rule_meaning.h"

#include <algorithm>
#include <functional>
#include <map>

namespace gopt::verifier {
namespace {

constexpr int64_t kMaxConstantElements = 64;

// A small constant as a function of its subscripts: a chain of selects, one a distinct element.
Result<TensorExpr> constant_tensor(const Tensor& tensor) {
  if (!is_computable(tensor.type())) return Error{"a constant is not numeric"};
  if (tensor.count() > kMaxConstantElements)
    return Error{"a constant has " + std::to_string(tensor.count()) + " elements, at most " +
                 std::to_string(kMaxConstantElements) + " are looked at"};
  const std::vector<double> values = tensor.to_doubles();
  const std::vector<int64_t> dims = tensor.dims();
  TensorExpr t{tensor.type(), *tensor.tensor_type().shape, {}};
  t.data = &tensor;
  t.at = [values, dims](const std::vector<Index>& subscripts) {
    if (values.empty()) return constant(0);
    Expr value = constant(values[0]);
    for (size_t position = 1; position < values.size(); position++) {
      Cond here;
      auto rest = static_cast<int64_t>(position);
      for (size_t k = dims.size(); k-- > 0; rest /= dims[k]) here = here && equal(subscripts[k], Index(rest % dims[k]));
      value = select(here, constant(values[position]), value);
    }
    return value;
  };
  return t;
}

}  // namespace

Result<SideMeaning> meaning_of(const Graph& side) {
  SideMeaning meaning;
  std::map<Value, TensorExpr> tensors;
  for (size_t i = 0; i < side.inputs().size(); i++)
    tensors[side.inputs()[i]] = input_tensor(static_cast<int>(i), side.inputs()[i].type());
  for (const NodePtr& node : side.nodes()) {
    if (node->is(OpKind::Input)) continue;
    if (node->is(OpKind::Opaque)) return Error{"operator " + node->opaque->op_type + " has no definition"};
    if (node->is(OpKind::Constant)) {
      GOPT_ASSIGN_OR_RETURN(tensors[(Value{node, 0})], constant_tensor(node->tensor));
      continue;
    }
    std::vector<TensorExpr> inputs;
    for (const Value& v : node->inputs) inputs.push_back(v ? tensors.at(v) : TensorExpr{});
    GOPT_ASSIGN_OR_RETURN(Definition definition,
                          define(node->op, inputs, node->attributes, static_cast<int>(node->outputs.size())));
    for (Requirement& r : definition.requirements) {
      r.what = op_info(node->op).name + ": " + r.what;
      meaning.requirements.push_back(std::move(r));
    }
    for (size_t k = 0; k < node->outputs.size(); k++) tensors[{node, static_cast<int>(k)}] = definition.outputs[k];
  }
  for (const GraphOutput& output : side.outputs()) meaning.outputs.push_back(tensors.at(output.value));
  return meaning;
}

Cond variable_domain(const RewriteRule& rule) {
  Cond domain;
  for (const RuleVariable& variable : rule.variables) {
    for (const Index& extent : *variable.type.shape) {
      domain = domain && at_least(extent, Index(0));
      std::set<AtomId> symbols;
      collect_symbols(extent, symbols);
      for (AtomId symbol : symbols) domain = domain && at_least(Index::from_atom(symbol), Index(0));
    }
  }
  return domain;
}

std::vector<AtomId> rule_symbols(const RewriteRule& rule) {
  std::set<AtomId> symbols;
  for (const RuleVariable& variable : rule.variables)
    for (const Index& extent : *variable.type.shape) collect_symbols(extent, symbols);
  for (const NodePtr& node : rule.left.nodes())
    for (const auto& [name, value] : node->attributes) collect_symbols(value, symbols);
  std::vector<AtomId> sorted(symbols.begin(), symbols.end());
  std::sort(sorted.begin(), sorted.end(), [](AtomId a, AtomId b) { return atom(a).name < atom(b).name; });
  return sorted;
}

namespace {

Tensor with_real_type(const Tensor& tensor, ElementType real) {
  if (!is_floating(tensor.type())) return tensor;
  return Tensor::from_values<double>(real, tensor.dims(), tensor.to_doubles());
}
// As a match instantiates a rule: f32 alone stands for other types.
Tensor with_real_for_single(const Tensor& tensor, ElementType real) {
  return tensor.type() == ElementType::Float32 ? with_real_type(tensor, real) : tensor;
}

// What becomes of the parts of a side.
struct Rebuilding {
  std::function<TensorType(const TensorType&)> type;
  std::function<AttributeValue(const AttributeValue&)> attribute;
  std::function<Tensor(const Tensor&)> tensor;
};

Result<Graph> rebuilt(const Graph& side, const Rebuilding& with) {
  GraphBuilder builder;
  std::map<Value, Value> values;
  for (const Value& input : side.inputs()) values[input] = builder.input(input.node->name, with.type(input.type()));
  for (const NodePtr& node : side.nodes()) {
    if (node->is(OpKind::Input)) continue;
    if (node->is(OpKind::Constant)) {
      values[{node, 0}] = builder.constant(with.tensor(node->tensor));
      continue;
    }
    std::vector<Value> inputs;
    for (const Value& v : node->inputs) inputs.push_back(v ? values.at(v) : v);
    Attributes attributes;
    for (const auto& [name, value] : node->attributes) attributes[name] = with.attribute(value);
    GOPT_ASSIGN_OR_RETURN(NodePtr made,
                          builder.add(node->op, inputs, attributes, static_cast<int>(node->outputs.size())));
    for (int k = 0; k < static_cast<int>(node->outputs.size()); k++) values[{node, k}] = {made, k};
  }
  for (const GraphOutput& output : side.outputs()) builder.output(output.name, values.at(output.value));
  return builder.build();
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

Result<Graph> instantiate(const Graph& side, const Substitution& sizes, const std::vector<double>& floats,
                          ElementType real) {
  for (const Value& input : side.inputs())
    for (const Index& extent : *input.type().shape)
      if (!substitute(extent, sizes).is_constant()) return Error{"a size is open"};
  return rebuilt(side, {[&](const TensorType& type) {
                          TensorType t = with_sizes(type, sizes);
                          if (is_floating(t.element)) t.element = real;
                          return t;
                        },
                        [&](const AttributeValue& value) -> AttributeValue {
                          if (const auto* variable = std::get_if<FloatVariable>(&value))
                            return floats.at(static_cast<size_t>(variable->slot - kFirstFloatSlot));
                          if (const auto* tensor = std::get_if<Tensor>(&value)) return with_real_type(*tensor, real);
                          return with_sizes(value, sizes);
                        },
                        [&](const Tensor& tensor) { return with_real_type(tensor, real); }});
}

Result<RewriteRule> with_real_type(const RewriteRule& rule, ElementType real) {
  const auto type_of = [&](TensorType type) {
    if (type.element == ElementType::Float32) type.element = real;
    return type;
  };
  const Rebuilding with{type_of,
                        [&](const AttributeValue& value) -> AttributeValue {
                          if (const auto* tensor = std::get_if<Tensor>(&value))
                            return with_real_for_single(*tensor, real);
                          return value;
                        },
                        [&](const Tensor& tensor) { return with_real_for_single(tensor, real); }};
  RewriteRule r = rule;
  for (RuleVariable& variable : r.variables) variable.type = type_of(variable.type);
  GOPT_ASSIGN_OR_RETURN(r.left, rebuilt(rule.left, with));
  GOPT_ASSIGN_OR_RETURN(r.right, rebuilt(rule.right, with));
  GOPT_RETURN_IF_ERROR(check_rule(r));
  return r;
}

Result<RewriteRule> with_sizes(const RewriteRule& rule, const Substitution& sizes) {
  const Rebuilding with{[&](const TensorType& type) { return with_sizes(type, sizes); },
                        [&](const AttributeValue& value) { return with_sizes(value, sizes); },
                        [](const Tensor& tensor) { return tensor; }};
  RewriteRule r = rule;
  for (RuleVariable& variable : r.variables) variable.type = with_sizes(variable.type, sizes);
  GOPT_ASSIGN_OR_RETURN(r.left, rebuilt(rule.left, with));
  GOPT_ASSIGN_OR_RETURN(r.right, rebuilt(rule.right, with));
  r.condition = substitute(rule.condition, sizes);
  return r;
}

}  // namespace gopt::verifier
