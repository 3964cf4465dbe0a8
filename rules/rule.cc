#include "gopt/rule.h"

#include <algorithm>
#include <map>
#include <set>

#include "gopt/bounds.h"
#include "gopt/scheme.h"
#include "gopt/text_reader.h"

namespace gopt {
namespace {

void collect_attribute_symbols(const Graph& graph, std::set<AtomId>& out) {
  for (const NodePtr& node : graph.nodes()) {
    for (const auto& [name, value] : node->attributes) collect_symbols(value, out);
  }
}

std::map<int, std::string> float_slots(const Graph& graph) {
  std::map<int, std::string> slots;
  for (const NodePtr& node : graph.nodes())
    for (const auto& [name, value] : node->attributes)
      if (const auto* variable = std::get_if<FloatVariable>(&value)) slots[variable->slot] = variable->name;
  return slots;
}

Status check_variables(const RewriteRule& rule) {
  std::set<std::string> names;
  std::set<const Node*> used;
  for (const NodePtr& node : rule.left.nodes()) used.insert(node.get());
  if (rule.left.inputs().size() != rule.variables.size() || rule.right.inputs().size() != rule.variables.size())
    return Error{"both sides must be over the rule's variables"};
  for (size_t i = 0; i < rule.variables.size(); i++) {
    const RuleVariable& variable = rule.variables[i];
    if (!names.insert(variable.name).second) return Error{"variable '" + variable.name + "' is declared twice"};
    if (!variable.type.shape) return Error{"variable '" + variable.name + "' has no rank"};
    if (!used.count(rule.left.inputs()[i].node.get()))
      return Error{"variable '" + variable.name + "' does not occur on the left side"};
  }
  return Unit{};
}

Status check_outputs(const RewriteRule& rule) {
  const auto &left = rule.left.outputs(), &right = rule.right.outputs();
  if (left.empty()) return Error{"the left side returns nothing"};
  if (left.size() != right.size())
    return Error{"the left side returns " + std::to_string(left.size()) + " values, the right side " +
                 std::to_string(right.size())};
  for (size_t i = 0; i < left.size(); i++) {
    const TensorType &a = left[i].value.type(), &b = right[i].value.type();
    const bool ranked = a.shape && b.shape;
    if (a.element != b.element || !ranked || a.shape->size() != b.shape->size())
      return Error{"output " + std::to_string(i) + " is " + to_string(a) + " on the left side and " + to_string(b) +
                   " on the right side"};
  }
  return Unit{};
}

Status check_symbols(const RewriteRule& rule) {
  std::set<AtomId> bound, used;
  for (const RuleVariable& variable : rule.variables)
    for (const Index& extent : *variable.type.shape) collect_symbols(extent, bound);
  collect_attribute_symbols(rule.left, bound);
  collect_attribute_symbols(rule.right, used);
  collect_symbols(rule.condition, used);
  for (const std::vector<Box>& boxes : rule.regions)
    for (const Box& box : boxes)
      for (const AxisRange& range : box) {
        collect_symbols(range.low, used);
        collect_symbols(range.high, used);
      }
  for (AtomId symbol : used)
    if (!bound.count(symbol)) return Error{"symbol '" + atom(symbol).name + "' does not occur on the left side"};
  const std::map<int, std::string> left = float_slots(rule.left);
  for (const auto& [slot, name] : float_slots(rule.right))
    if (!left.count(slot)) return Error{"float variable '$" + name + "' does not occur on the left side"};
  return Unit{};
}

// Whether no place lies in the box whatever the extents are: all that is said of it holds.
bool is_always_empty(const RewriteRule& rule, const Box& box) {
  SymbolBounds extents;
  for (const RuleVariable& variable : rule.variables)
    for (const Index& extent : variable.type.shape.value_or(Shape{})) collect_symbols(extent, extents.counts);
  return std::ranges::any_of(
      box, [&](const AxisRange& range) { return is_surely_nonnegative(range.low - range.high, extents); });
}

Status check_regions(const RewriteRule& rule) {
  if (!rule.is_partial()) return Unit{};
  if (rule.regions.size() != rule.left.outputs().size())
    return Error{"regions are given for another number of outputs"};
  for (size_t o = 0; o < rule.regions.size(); o++) {
    const size_t rank = rule.left.outputs()[o].value.type().shape->size();
    for (const Box& box : rule.regions[o]) {
      if (box.size() != rank)
        return Error{"a region of output " + std::to_string(o) + " has " + std::to_string(box.size()) +
                     " ranges, the output has " + std::to_string(rank) + " axes"};
      if (is_always_empty(rule, box))
        return Error{"the region " + to_string(box) + " of output " + std::to_string(o) +
                     " is empty at every size, so that anything holds there"};
    }
  }
  for (const RuleVariable& variable : rule.variables)
    if (variable.has_prefix) return Error{"a partial rule has no open prefix of axes"};
  return Unit{};
}

}  // namespace

std::string to_string(const Box& box) {
  std::string text;
  for (const AxisRange& range : box)
    text += (text.empty() ? "" : ", ") + to_string(range.low) + ":" + to_string(range.high);
  return "[" + text + "]";
}

std::vector<std::string> float_variables(const RewriteRule& rule) {
  std::vector<std::string> names;
  for (const auto& [slot, name] : float_slots(rule.left)) names.push_back(name);
  return names;
}

std::string definitions_hash(const RewriteRule& rule, const std::function<std::string(OpKind)>& hash_of) {
  std::map<std::string, OpKind> operators;
  const auto add = [&operators](OpKind op) {
    if (op != OpKind::Input && op != OpKind::Constant && op != OpKind::Opaque) operators[op_info(op).name] = op;
  };
  for (const Graph* side : {&rule.left, &rule.right})
    for (const NodePtr& node : side->nodes()) add(node->op);
  if (rule.scheme)
    for (const SchemeSide* side : {&rule.scheme->left, &rule.scheme->right})
      for (const SchemeNode& node : side->nodes) add(node.op);
  std::string text;
  for (const auto& [name, op] : operators) text += name + " " + hash_of(op) + "\n";
  return to_string(hash_bytes(text)).substr(0, 16);
}

Status check_rule(const RewriteRule& rule) {
  GOPT_RETURN_IF_ERROR(check_variables(rule));
  GOPT_RETURN_IF_ERROR(check_outputs(rule));
  GOPT_RETURN_IF_ERROR(check_regions(rule));
  return check_symbols(rule);
}

std::string RewriteRule::content_hash() const {
  RewriteRule bare = *this;
  bare.name = "x";
  bare.origin.clear();
  bare.proof.reset();
  return to_string(hash_bytes(print_rule(bare))).substr(0, 16);
}

}  // namespace gopt
