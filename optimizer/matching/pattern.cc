#include "matching/pattern.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

namespace gopt::optimizer {
namespace {

// The renamed symbols of a rule; '?' cannot occur in a symbol that a text or a model names.
Substitution rename_symbols(const std::set<AtomId>& symbols) {
  Substitution renamed;
  for (AtomId id : symbols) renamed[id] = symbol("?" + atom(id).name);
  return renamed;
}

void collect_type_symbols(const TensorType& type, std::set<AtomId>& out) {
  if (!type.shape) return;
  for (const Index& extent : *type.shape) collect_symbols(extent, out);
}

std::set<AtomId> symbols_of(const Graph& side) {
  std::set<AtomId> symbols;
  for (const NodePtr& node : side.nodes()) {
    for (const auto& [name, value] : node->attributes) collect_symbols(value, symbols);
    for (const TensorType& type : node->outputs) collect_type_symbols(type, symbols);
  }
  return symbols;
}

TensorType renamed(TensorType type, const Substitution& names) {
  if (type.shape)
    for (Index& extent : *type.shape) extent = substitute(extent, names);
  return type;
}

AttributeValue renamed(AttributeValue value, const Substitution& names) {
  if (auto* index = std::get_if<Index>(&value)) *index = substitute(*index, names);
  if (auto* list = std::get_if<std::vector<Index>>(&value))
    for (Index& index : *list) index = substitute(index, names);
  return value;
}

class SideBuilder {
 public:
  SideBuilder(const RewriteRule& rule, const Substitution& names) : names_(names) {
    for (size_t i = 0; i < rule.variables.size(); i++) variable_of_[rule.variables[i].name] = static_cast<int>(i);
  }

  Result<PatternSide> build(const Graph& graph) {
    for (const NodePtr& node : graph.nodes())
      if (!node->is(OpKind::Input)) add(*node);
    for (const GraphOutput& output : graph.outputs()) side_.outputs.push_back(find(output.value));
    return std::move(side_);
  }

 private:
  PatternValue find(const Value& value) const {
    if (!value) return {};
    if (value.node->is(OpKind::Input)) return {variable_of_.at(value.node->name), -1, 0};
    return {-1, position_.at(value.node.get()), value.output};
  }

  void add(const Node& node) {
    PatternNode made{.op = node.op, .inputs = {}, .attributes = {}, .outputs = {}, .tensor = node.tensor};
    for (const Value& input : node.inputs) made.inputs.push_back(find(input));
    for (const auto& [name, value] : node.attributes) made.attributes.emplace(name, renamed(value, names_));
    for (const TensorType& type : node.outputs) made.outputs.push_back(renamed(type, names_));
    made.is_commutative = node.op != OpKind::Constant && op_info(node.op).has(kCommutative);
    position_[&node] = static_cast<int>(side_.nodes.size());
    side_.nodes.push_back(std::move(made));
  }

  const Substitution& names_;
  std::unordered_map<std::string, int> variable_of_;
  std::unordered_map<const Node*, int> position_;
  PatternSide side_;
};

// Marks what a descent from `value` binds.
void cover(const PatternSide& side, const PatternValue& value, std::vector<bool>& nodes, std::vector<bool>& variables) {
  if (value.variable >= 0) variables[value.variable] = true;
  if (value.node < 0 || nodes[value.node]) return;
  nodes[value.node] = true;
  for (const PatternValue& input : side.nodes[value.node].inputs) cover(side, input, nodes, variables);
}

// The way from something bound up to `root`, through nodes that are not: variables before nodes, since what siblings
// share is mostly a variable. Empty where there is none.
std::optional<WalkStep> find_climb(const PatternSide& side, int root, const std::vector<bool>& nodes,
                                   const std::vector<bool>& variables) {
  for (const PatternValue& input : side.nodes[root].inputs) {
    const bool bound = (input.variable >= 0 && variables[input.variable]) || (input.node >= 0 && nodes[input.node]);
    const bool is_constant = input.node >= 0 && side.nodes[input.node].op == OpKind::Constant;
    if (bound && !is_constant) return WalkStep{input, {root}};
  }
  for (const PatternValue& input : side.nodes[root].inputs) {
    if (input.node < 0 || nodes[input.node]) continue;
    if (auto step = find_climb(side, input.node, nodes, variables)) {
      step->nodes.push_back(root);
      return step;
    }
  }
  return std::nullopt;
}

int depth_of(const PatternSide& side) {
  std::vector<int> depth(side.nodes.size(), 1);
  int deepest = 1;
  for (size_t i = 0; i < side.nodes.size(); i++) {
    for (const PatternValue& input : side.nodes[i].inputs)
      if (input.node >= 0) depth[i] = std::max(depth[i], depth[input.node] + 1);
    deepest = std::max(deepest, depth[i]);
  }
  return deepest;
}

}  // namespace

Status plan_walk(Pattern& pattern) {
  const PatternSide& side = pattern.left;
  if (side.outputs.empty()) return Error{"it has no output"};
  for (const PatternValue& output : side.outputs)
    if (output.node < 0) return Error{"an output of its left side is a variable, which matches everywhere"};
  std::vector<bool> nodes(side.nodes.size()), variables(pattern.variables.size());
  cover(side, side.outputs.front(), nodes, variables);
  for (const PatternValue& output : side.outputs) {
    if (nodes[output.node]) continue;
    auto step = find_climb(side, output.node, nodes, variables);
    if (!step) return Error{"outputs of its left side share no variable and no node"};
    pattern.climbs.push_back(*std::move(step));
    cover(side, output, nodes, variables);
  }
  for (size_t i = 0; i < variables.size(); i++)
    if (!variables[i]) return Error{fmt::format("variable {} is not on its left side", i)};
  pattern.depth = depth_of(side);
  return Unit{};
}

namespace {

// Precondition: no variable of the rule has an open prefix.
Result<Pattern> compile_pattern(const RewriteRule& rule) {
  Pattern pattern;
  std::set<AtomId> left_symbols = symbols_of(rule.left), symbols = symbols_of(rule.right), condition_symbols;
  for (const RuleVariable& variable : rule.variables) collect_type_symbols(variable.type, left_symbols);
  gopt::collect_symbols(rule.condition, condition_symbols);
  symbols.insert(condition_symbols.begin(), condition_symbols.end());
  for (AtomId id : symbols)
    if (!left_symbols.count(id)) return Error{fmt::format("symbol `{}` is not bound by its left side", atom(id).name)};
  const Substitution names = rename_symbols(left_symbols);

  for (const RuleVariable& variable : rule.variables) {
    if (!variable.type.shape) return Error{fmt::format("variable `{}` has no rank", variable.name)};
    const TensorType type = renamed(variable.type, names);
    collect_type_symbols(type, pattern.extent_symbols);
    pattern.variables.push_back({variable.kind, type.element, *type.shape, false});
  }
  pattern.condition = substitute(rule.condition, names);
  GOPT_ASSIGN_OR_RETURN(pattern.left, SideBuilder(rule, names).build(rule.left));
  GOPT_ASSIGN_OR_RETURN(pattern.right, SideBuilder(rule, names).build(rule.right));
  if (pattern.left.outputs.size() != pattern.right.outputs.size())
    return Error{"its sides have unequal numbers of outputs"};
  GOPT_RETURN_IF_ERROR(plan_walk(pattern));
  return pattern;
}

}  // namespace

bool is_open(const RewriteRule& rule) {
  return std::any_of(rule.variables.begin(), rule.variables.end(),
                     [](const RuleVariable& variable) { return variable.has_prefix; });
}

void name_after(const RewriteRule& rule, const std::string& hash, Pattern& pattern) {
  pattern.rule_name = rule.name;
  pattern.rule_hash = hash;
  pattern.real_types = rule.real_types;
  // A rule whose outputs are no floating-point numbers shows no rounding, and may put sums in another order all the
  // same.
  const bool has_reals = std::any_of(rule.variables.begin(), rule.variables.end(),
                                     [](const RuleVariable& v) { return is_floating(v.type.element); });
  const bool shows_none =
      std::any_of(pattern.left.outputs.begin(), pattern.left.outputs.end(), [&](const PatternValue& o) {
        return o.node >= 0 &&
               !is_floating(
                   pattern.left.nodes[static_cast<size_t>(o.node)].outputs[static_cast<size_t>(o.output)].element);
      });
  const auto moves = [](const PatternSide& side) {
    // A border of numbers is of a type; so is what is looked up by an integer.
    return std::all_of(side.nodes.begin(), side.nodes.end(), [](const PatternNode& node) {
      return op_info(node.op).has(kDataMovement) && node.op != OpKind::Pad;
    });
  };
  const bool is_of_reals = std::all_of(rule.variables.begin(), rule.variables.end(),
                                       [](const RuleVariable& v) { return v.type.element == ElementType::Float32; });
  pattern.moves_elements = is_of_reals && moves(pattern.left) && moves(pattern.right);
  pattern.keeps_rounding = rule.marks.reassociates || (has_reals && shows_none);
}

bool Pattern::holds_for(ElementType element) const {
  if (moves_elements && real_types.empty()) return is_computable(element);
  if (!is_floating(element)) return false;
  return real_types.empty() || std::find(real_types.begin(), real_types.end(), element) != real_types.end();
}

Result<Pattern> compile_below_axes(const RewriteRule& rule, const std::string& hash, int prefix) {
  if (rule.is_partial()) return Error{"its sides are equal on a part of the output only"};
  Shape axes;
  for (int k = 0; k < prefix; k++) axes.push_back(symbol(fmt::format("?prefix{}", k)));
  GOPT_ASSIGN_OR_RETURN(const RewriteRule closed, is_open(rule) ? with_prefix(rule, axes) : Result<RewriteRule>(rule));
  GOPT_ASSIGN_OR_RETURN(Pattern pattern, compile_pattern(closed));
  for (size_t i = 0; i < rule.variables.size(); i++) pattern.variables[i].has_prefix = rule.variables[i].has_prefix;
  name_after(rule, hash, pattern);
  return pattern;
}

Result<std::vector<Pattern>> compile_rule(const RewriteRule& rule, int max_prefix) {
  std::vector<Pattern> patterns;
  const std::string hash = rule.content_hash();
  const auto add = [&](Result<Pattern> pattern) -> Status {
    if (!pattern.ok()) return pattern.error();
    patterns.push_back(*std::move(pattern));
    return Unit{};
  };
  if (rule.scheme) {
    for (const RankAssignment& ranks : ranks_to_match(*rule.scheme, max_prefix))
      GOPT_RETURN_IF_ERROR(add(compile_at_ranks(rule, hash, ranks)));
    return patterns;
  }
  for (int prefix = 0; prefix <= (is_open(rule) ? max_prefix : 0); prefix++)
    GOPT_RETURN_IF_ERROR(add(compile_below_axes(rule, hash, prefix)));
  return patterns;
}

}  // namespace gopt::optimizer
