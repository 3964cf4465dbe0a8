#include "rule_slots.h"

#include <algorithm>
#include <functional>
#include <set>

namespace gopt::verifier {
namespace {

// Attributes that say how much. All others say which (axes, permutations, modes) and stay as they are.
bool is_quantity(const std::string& attribute) {
  static const std::set<std::string> names{"kernel_shape", "strides",   "pads", "dilations", "group",
                                           "split",        "starts",    "ends", "steps",     "shape",
                                           "repeats",      "blocksize", "k"};
  return names.count(attribute) > 0;
}

using EditAttributes = std::function<void(SlotPlace place, size_t owner, Attributes& attributes)>;
// The value that stands for a constant node in the new graph; none: the same constant.
using ReplaceConstant = std::function<Value(const NodePtr& node, const std::vector<Value>& inputs)>;

Result<Graph> rebuilt(const Graph& side, const std::vector<RuleVariable>& variables, SlotPlace place,
                      const EditAttributes& edit, const ReplaceConstant& replace) {
  GraphBuilder builder;
  std::map<Value, Value> values;
  std::vector<Value> inputs;
  for (const RuleVariable& variable : variables) inputs.push_back(builder.input(variable.name, variable.type));
  for (size_t i = 0; i < side.inputs().size(); i++) values[side.inputs()[i]] = inputs[i];
  for (size_t n = 0; n < side.nodes().size(); n++) {
    const NodePtr& node = side.nodes()[n];
    if (node->is(OpKind::Input)) continue;
    if (node->is(OpKind::Constant)) {
      Value value = replace ? replace(node, inputs) : Value{};
      values[{node, 0}] = value ? value : builder.constant(node->tensor, node->name);
      continue;
    }
    std::vector<Value> mapped;
    for (const Value& v : node->inputs) mapped.push_back(v ? values.at(v) : v);
    Attributes attributes = node->attributes;
    edit(place, n, attributes);
    GOPT_ASSIGN_OR_RETURN(NodePtr made,
                          builder.add(node->op, mapped, attributes, static_cast<int>(node->outputs.size()), node->name,
                                      node->output_names));
    for (int k = 0; k < static_cast<int>(node->outputs.size()); k++) values[{node, k}] = {made, k};
  }
  for (const GraphOutput& output : side.outputs()) builder.output(output.name, values.at(output.value));
  return builder.build();
}

Result<RewriteRule> rebuilt(const RewriteRule& rule, std::vector<RuleVariable> variables, const EditAttributes& edit,
                            const ReplaceConstant& replace = {}) {
  RewriteRule r = rule;
  r.variables = std::move(variables);
  r.condition = Cond();
  r.proof.reset();
  GOPT_ASSIGN_OR_RETURN(r.left, rebuilt(rule.left, r.variables, SlotPlace::Left, edit, replace));
  GOPT_ASSIGN_OR_RETURN(r.right, rebuilt(rule.right, r.variables, SlotPlace::Right, edit, replace));
  GOPT_RETURN_IF_ERROR(check_rule(r));
  return r;
}

void collect_slots(const Graph& side, SlotPlace place, std::vector<Slot>& slots) {
  for (size_t n = 0; n < side.nodes().size(); n++) {
    for (const auto& [name, value] : side.nodes()[n]->attributes) {
      if (!is_quantity(name)) continue;
      if (const auto* index = std::get_if<Index>(&value)) slots.push_back({place, n, name, 0, 1, *index});
      if (const auto* list = std::get_if<std::vector<Index>>(&value))
        for (size_t i = 0; i < list->size(); i++) slots.push_back({place, n, name, i, list->size(), (*list)[i]});
    }
  }
}

}  // namespace

std::vector<Slot> slots_of(const RewriteRule& rule) {
  std::vector<Slot> slots;
  for (size_t v = 0; v < rule.variables.size(); v++) {
    const Shape& shape = *rule.variables[v].type.shape;
    for (size_t axis = 0; axis < shape.size(); axis++)
      slots.push_back({SlotPlace::Extent, v, "extent", axis, shape.size(), shape[axis]});
  }
  collect_slots(rule.left, SlotPlace::Left, slots);
  collect_slots(rule.right, SlotPlace::Right, slots);
  return slots;
}

Result<RewriteRule> with_slots(const RewriteRule& rule, const std::vector<Slot>& replaced) {
  std::vector<RuleVariable> variables = rule.variables;
  for (const Slot& slot : replaced)
    if (slot.place == SlotPlace::Extent) (*variables[slot.owner].type.shape)[slot.position] = slot.value;
  return rebuilt(rule, std::move(variables), [&](SlotPlace place, size_t owner, Attributes& attributes) {
    for (const Slot& slot : replaced) {
      if (slot.place != place || slot.owner != owner) continue;
      AttributeValue& value = attributes[slot.attribute];
      if (auto* index = std::get_if<Index>(&value)) *index = slot.value;
      if (auto* list = std::get_if<std::vector<Index>>(&value)) (*list)[slot.position] = slot.value;
    }
  });
}

Result<RewriteRule> with_float_variable(const RewriteRule& rule, double value, bool also_right) {
  const std::vector<std::string> known = float_variables(rule);
  std::string name = "c";
  for (int n = 1; std::find(known.begin(), known.end(), name) != known.end(); n++) name = "c" + std::to_string(n);
  const FloatVariable variable{name, kFirstFloatSlot + static_cast<int>(known.size())};
  bool is_used = false;
  auto edit = [&](SlotPlace place, size_t, Attributes& attributes) {
    if (place == SlotPlace::Right && !also_right) return;
    for (auto& [attribute, own] : attributes) {
      const auto* number = std::get_if<double>(&own);
      if (!number || *number != value) continue;
      own = variable;
      is_used |= place == SlotPlace::Left;
    }
  };
  GOPT_ASSIGN_OR_RETURN(RewriteRule r, rebuilt(rule, rule.variables, edit));
  if (!is_used) return Error{"the left side has no such number"};
  return r;
}

Result<RewriteRule> with_scalar_variable(const RewriteRule& rule, const Tensor& constant) {
  std::set<std::string> known;
  for (const RuleVariable& v : rule.variables) known.insert(v.name);
  std::string name = "c";
  for (int n = 1; known.count(name); n++) name = "c" + std::to_string(n);
  std::vector<RuleVariable> variables = rule.variables;
  variables.push_back({name, VariableKind::Weight, constant.tensor_type(), false});
  const auto edit = [](SlotPlace, size_t, Attributes&) {};
  return rebuilt(rule, std::move(variables), edit, [&](const NodePtr& node, const std::vector<Value>& inputs) {
    return node->tensor.content_id() == constant.content_id() ? inputs.back() : Value{};
  });
}

}  // namespace gopt::verifier
