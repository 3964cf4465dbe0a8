// Rules under a prefix of leading axes: attributes that name axes are shifted, and operators that are not pointwise in
// leading axes are refused.
#include <algorithm>
#include <map>

#include "gopt/leading_axes.h"
#include "gopt/rule.h"

namespace gopt {
namespace {

using Ints = std::vector<Index>;

// A value of the rule, its counterpart under the prefix, and its rank without it.
struct Prefixed {
  Value value;
  bool has_prefix = false;
  size_t rank = 0;
};

bool same_prefixed_rank(const std::vector<Prefixed>& inputs) {
  size_t rank = 0;
  for (const Prefixed& in : inputs)
    if (in.value && in.has_prefix) rank = std::max(rank, in.rank);
  return std::all_of(inputs.begin(), inputs.end(), [&](const Prefixed& in) {
    return !in.value || (in.has_prefix ? in.rank == rank : in.rank <= rank);
  });
}

// A matrix product is pointwise in the leading axes of its left operand where the right one is a plain matrix, and in
// those of both where both have them.
bool is_pointwise_product(const Prefixed& a, const Prefixed& b) {
  if (a.has_prefix && b.has_prefix) return a.rank == b.rank && a.rank >= 2;
  if (a.has_prefix) return b.rank <= 2 && a.rank >= 1;
  return a.rank == 2 && b.rank >= 2;
}

bool is_pointwise_in_leading_axes(const Node& node, const std::vector<Prefixed>& inputs) {
  const OpInfo& info = op_info(node.op);
  if (info.has(kElementwise)) return same_prefixed_rank(inputs);
  switch (node.op) {
    case OpKind::MatMul: return is_pointwise_product(inputs[0], inputs[1]);
    case OpKind::Concat:
      return std::all_of(inputs.begin(), inputs.end(), [](const Prefixed& in) { return in.has_prefix; });
    case OpKind::LayerNormalization: return same_prefixed_rank(inputs) && inputs[0].has_prefix;
    case OpKind::Softmax:
    case OpKind::LogSoftmax:
    case OpKind::ReduceSum:
    case OpKind::ReduceMean:
    case OpKind::ReduceMax:
    case OpKind::ReduceMin:
    case OpKind::ReduceProd:
    case OpKind::ReduceL1:
    case OpKind::ReduceL2:
    case OpKind::ReduceSumSquare:
    case OpKind::ReduceLogSum:
    case OpKind::ReduceLogSumExp:
    case OpKind::Split:
    case OpKind::Slice:
    case OpKind::Transpose:
    case OpKind::Reshape:
    case OpKind::Squeeze:
    case OpKind::Unsqueeze:
    case OpKind::Expand:
    case OpKind::Tile:
    case OpKind::Pad:
    case OpKind::Trilu:
    case OpKind::FillLike: return true;
    default: return false;
  }
}

Ints shifted_axes(const Ints& axes, int64_t by) {
  Ints r;
  for (const Index& axis : axes) r.push_back(axis.is_constant() && axis.constant() < 0 ? axis : axis + Index(by));
  return r;
}
Ints prepended(const Ints& first, const Ints& rest) {
  Ints r = first;
  r.insert(r.end(), rest.begin(), rest.end());
  return r;
}

Result<Graph> side_with_prefix(const Graph& side, const std::vector<RuleVariable>& variables, const Shape& prefix) {
  GraphBuilder builder;
  std::map<Value, Prefixed> values;
  for (size_t i = 0; i < variables.size(); i++) {
    const RuleVariable& variable = variables[i];
    const Shape& own = *variable.type.shape;
    const TensorType type{variable.type.element, variable.has_prefix ? prepended(prefix, own) : own};
    values[side.inputs()[i]] = {builder.input(variable.name, type), variable.has_prefix, own.size()};
  }
  for (const NodePtr& node : side.nodes()) {
    if (node->is(OpKind::Input)) continue;
    if (node->is(OpKind::Constant)) {
      values[{node, 0}] = {builder.constant(node->tensor, node->name), false, node->outputs[0].shape->size()};
      continue;
    }
    std::vector<Prefixed> inputs;
    std::vector<Value> mapped;
    for (const Value& v : node->inputs) {
      inputs.push_back(v ? values.at(v) : Prefixed{});
      mapped.push_back(inputs.back().value);
    }
    const bool has_prefix = std::any_of(inputs.begin(), inputs.end(), [](const Prefixed& in) { return in.has_prefix; });
    if (has_prefix && !is_pointwise_in_leading_axes(*node, inputs))
      return Error{op_info(node->op).name + " is not pointwise in leading axes here, so that no prefix may be said"};
    GOPT_ASSIGN_OR_RETURN(
        NodePtr made,
        builder.add(node->op, mapped,
                    has_prefix ? below_leading_axes(node->op, node->attributes, prefix) : node->attributes,
                    static_cast<int>(node->outputs.size()), node->name, node->output_names));
    for (int k = 0; k < static_cast<int>(node->outputs.size()); k++)
      values[{node, k}] = {Value{made, k}, has_prefix, node->outputs[static_cast<size_t>(k)].shape->size()};
  }
  for (const GraphOutput& output : side.outputs()) builder.output(output.name, values.at(output.value).value);
  return builder.build();
}

}  // namespace

Attributes below_leading_axes(OpKind op, const Attributes& attributes, const Shape& prefix) {
  const auto by = static_cast<int64_t>(prefix.size());
  Attributes result = attributes;
  for (auto& [name, value] : result) {
    if (auto* axis = std::get_if<Index>(&value)) {
      if (name == "axis") *axis = shifted_axes({*axis}, by)[0];
    } else if (auto* list = std::get_if<Ints>(&value)) {
      if (name == "axes") *list = shifted_axes(*list, by);
      if (name == "shape") *list = prepended(prefix, *list);
      if (name == "repeats") *list = prepended(Ints(prefix.size(), Index(1)), *list);
      if (name == "perm") {
        Ints leading;
        for (int64_t k = 0; k < by; k++) leading.emplace_back(k);
        *list = prepended(leading, shifted_axes(*list, by));
      }
      if (name == "pads" && op == OpKind::Pad) {
        const Ints zeros(prefix.size(), Index(0));
        const auto half = list->begin() + static_cast<ptrdiff_t>(list->size() / 2);
        *list = prepended(prepended(zeros, Ints(list->begin(), half)), prepended(zeros, Ints(half, list->end())));
      }
    }
  }
  return result;
}

Result<RewriteRule> with_prefix(const RewriteRule& rule, const Shape& prefix) {
  RewriteRule r = rule;
  r.scheme = nullptr;
  GOPT_ASSIGN_OR_RETURN(r.left, side_with_prefix(rule.left, rule.variables, prefix));
  GOPT_ASSIGN_OR_RETURN(r.right, side_with_prefix(rule.right, rule.variables, prefix));
  for (RuleVariable& variable : r.variables) {
    if (!variable.has_prefix) continue;
    variable.type.shape = prepended(prefix, *variable.type.shape);
    variable.has_prefix = false;
  }
  return r;
}

}  // namespace gopt
