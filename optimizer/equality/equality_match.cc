#include "equality/equality_match.h"

#include <algorithm>
#include <numeric>

#include "matching/elements.h"

namespace gopt::optimizer {
namespace {

class EqualityMatcher {
 public:
  EqualityMatcher(const EqualityGraph& graph, const EqualityPattern& pattern, const MatchLimits& limits,
                  EqualityMatches& out)
      : graph_(graph),
        pattern_(pattern.pattern()),
        open_(pattern),
        limits_(limits),
        out_(out),
        symbols_(&graph.facts()) {
    match_.nodes.resize(pattern_.left.nodes.size());
    match_.variables.assign(pattern_.variables.size(), kNoValue);
  }

  void match_at(EqualityId root) {
    root_ = root;
    step(0);
  }

 private:
  bool is_done() const { return out_.is_cut; }

  void step(size_t at) {
    if (is_done()) return;
    if (at == open_.steps().size()) return finish();
    const MatchStep& step = open_.steps()[at];
    if (step.kind == MatchStep::Kind::User) return climb(step, at);
    const EqualityId target = step.kind == MatchStep::Kind::Output ? output_of(step.value) : argument_of(step);
    enter(step.value, target, at);
  }

  // Every output of a node that is bound; one that is not there is no hindrance.
  EqualityId output_of(const PatternValue& value) const { return match_.nodes[value.node].outputs[value.output]; }

  EqualityId argument_of(const MatchStep& step) const {
    if (step.from_node < 0) return root_;
    const MatchedNode& from = match_.nodes[step.from_node];
    return graph_.node(from.any()).inputs[from.order[step.slot]];
  }

  void enter(const PatternValue& value, EqualityId target, size_t at) {
    if (value.variable < 0 && value.node < 0) {
      if (target == kNoValue) step(at + 1);
      return;
    }
    if (target == kNoValue) {
      if (open_.steps()[at].kind == MatchStep::Kind::Output) step(at + 1);
      return;
    }
    if (value.variable >= 0) return bind_variable(value.variable, target, at);
    if (!match_.nodes[value.node].outputs.empty()) {
      const EqualityId known = output_of(value);
      if (known != kNoValue && graph_.find(known) == graph_.find(target)) step(at + 1);
      return;
    }
    const PatternNode& node = pattern_.left.nodes[value.node];
    const EqualityClass& members = graph_.class_of(target);
    if (!members.ops.test(static_cast<size_t>(node.op))) return;
    for (EqualityId id : members.nodes) try_node(value, id, at);
  }

  void climb(const MatchStep& step, size_t at) {
    const EqualityId from = step.from.variable >= 0 ? match_.variables[step.from.variable] : output_of(step.from);
    if (from == kNoValue) return;
    std::vector<EqualityId> users = graph_.class_of(from).users;
    std::sort(users.begin(), users.end());
    users.erase(std::unique(users.begin(), users.end()), users.end());
    for (EqualityId user : users)
      if (!graph_.node(user).is_duplicate) try_node(step.value, user, at);
  }

  void try_node(const PatternValue& value, EqualityId id, size_t at) {
    const PatternNode& wanted = pattern_.left.nodes[value.node];
    const EqualityNode& node = graph_.node(id);
    if (is_done() || node.op != wanted.op || static_cast<int>(node.output) != value.output ||
        node.output_count != wanted.outputs.size() || node.inputs.size() != wanted.inputs.size())
      return;
    if (++visits_ > limits_.visits) out_.is_cut = true;
    const TensorType& type = graph_.type(id);
    const TensorType& expected = wanted.outputs[value.output];
    if (!may_stand_for(expected.element, type.element) || !type.shape || type.shape->size() != expected.shape->size())
      return;
    if (wanted.op == OpKind::Constant) return bind_constant(value, id, at);
    if (wanted.attributes.empty()) return bind_node(value, id, at);
    const SymbolBindings::Mark mark = symbols_.mark();
    const auto numbers = match_.numbers;
    if (unify_all(wanted.attributes, graph_.attributes(id))) bind_node(value, id, at);
    symbols_.go_back(mark);
    match_.numbers = numbers;
  }

  void bind_constant(const PatternValue& value, EqualityId id, size_t at) {
    const Tensor &wanted = pattern_.left.nodes[value.node].tensor, &actual = graph_.tensor(id);
    const ElementType before = floating_;
    if (match_element(wanted.type(), actual.type()) && equal_tensors(wanted, actual)) bind_node(value, id, at);
    floating_ = before;
  }

  bool may_stand_for(ElementType pattern, ElementType actual) {
    return pattern == actual || (pattern == ElementType::Float32 && pattern_.holds_for(actual));
  }
  // f32 stands for one floating-point type in the whole match.
  bool match_element(ElementType pattern, ElementType actual) {
    if (pattern != ElementType::Float32) return pattern == actual;
    if (!pattern_.holds_for(actual)) return false;
    if (floating_ == ElementType::Undefined) floating_ = actual;
    return floating_ == actual;
  }

  void bind_node(const PatternValue& value, EqualityId id, size_t at) {
    const PatternNode& wanted = pattern_.left.nodes[value.node];
    MatchedNode& bound = match_.nodes[value.node];
    bound.outputs.assign(wanted.outputs.size(), kNoValue);
    for (size_t output = 0; output < wanted.outputs.size() && wanted.outputs.size() > 1; output++)
      if (const auto other = graph_.find_output(id, static_cast<uint32_t>(output))) bound.outputs[output] = *other;
    bound.outputs[value.output] = id;
    bound.order.resize(wanted.inputs.size());
    std::iota(bound.order.begin(), bound.order.end(), uint8_t{0});
    do {
      step(at + 1);
    } while (is_exchangeable(wanted, id) && !is_done() &&
             std::next_permutation(bound.order.begin(), bound.order.end()));
    bound.outputs.clear();
  }

  // Whether another order of the arguments is worth trying.
  bool is_exchangeable(const PatternNode& wanted, EqualityId id) const {
    const auto& inputs = graph_.node(id).inputs;
    if (!wanted.is_commutative || inputs.size() < 2 || inputs.size() > 3) return false;
    return inputs.size() > 2 || graph_.find(inputs[0]) != graph_.find(inputs[1]);
  }

  bool unify_all(const Attributes& wanted, const Attributes& actual) {
    if (wanted.size() != actual.size()) return false;
    for (auto a = wanted.begin(), b = actual.begin(); a != wanted.end(); ++a, ++b)
      if (a->first != b->first || !unify_attribute(a->second, b->second)) return false;
    return true;
  }

  bool unify_attribute(const AttributeValue& wanted, const AttributeValue& actual) {
    if (auto* variable = std::get_if<FloatVariable>(&wanted)) {
      if (!std::holds_alternative<double>(actual) && !std::holds_alternative<FloatVariable>(actual)) return false;
      const AttributeValue& bound = match_.numbers.try_emplace(variable->name, actual).first->second;
      return bound.index() == actual.index() && are_equal(bound, actual);
    }
    if (wanted.index() != actual.index()) return false;
    if (auto* index = std::get_if<Index>(&wanted)) return symbols_.unify(*index, std::get<Index>(actual));
    if (auto* list = std::get_if<std::vector<Index>>(&wanted))
      return symbols_.unify(*list, std::get<std::vector<Index>>(actual));
    return are_equal(wanted, actual);
  }
  static bool are_equal(const AttributeValue& a, const AttributeValue& b) {
    const auto *number = std::get_if<double>(&a), *other = std::get_if<double>(&b);
    return number && other ? equal_numbers(*number, *other) : equal(a, b);
  }

  void bind_variable(int variable, EqualityId target, size_t at) {
    EqualityId& bound = match_.variables[variable];
    if (bound != kNoValue) {
      if (graph_.find(bound) == graph_.find(target)) step(at + 1);
      return;
    }
    const PatternVariable& wanted = pattern_.variables[variable];
    const EqualityClass& members = graph_.class_of(target);
    const TensorType& type = graph_.type(target);
    if (!type.shape || type.shape->size() != wanted.shape.size()) return;
    if (wanted.kind == VariableKind::Weight && !members.is_weight && !limits_.any_kind) return;
    const ElementType before = floating_;
    const SymbolBindings::Mark mark = symbols_.mark();
    if (match_element(wanted.element, type.element) && symbols_.unify(wanted.shape, *type.shape)) {
      bound = target;
      step(at + 1);
      bound = kNoValue;
    }
    symbols_.go_back(mark);
    floating_ = before;
  }

  // Under leading axes that the goal leaves open, a rule says the same only of variables that have the rule's own.
  bool fits_open_axes() const {
    const auto is_open = [&](EqualityId id) { return graph_.class_of(id).is_open; };
    if (std::none_of(match_.variables.begin(), match_.variables.end(), is_open)) return true;
    for (size_t i = 0; i < match_.variables.size(); i++)
      if (pattern_.variables[i].has_prefix != is_open(match_.variables[i])) return false;
    return true;
  }

  bool are_extents_valid(const Substitution& symbols) const {
    return std::all_of(pattern_.extent_symbols.begin(), pattern_.extent_symbols.end(), [&](AtomId id) {
      const auto value = symbols.find(id);
      return value == symbols.end() || is_extent(value->second) || graph_.facts().is_non_negative(value->second);
    });
  }

  bool is_extent(const Index& index) const {
    for (EqualityId id : match_.variables)
      for (const Index& extent : *graph_.type(id).shape)
        if (extent == index) return true;
    return false;
  }

  void finish() {
    SymbolBindings symbols = symbols_;
    if (!symbols.settle() || !fits_open_axes()) return;
    EqualityMatch found = match_;
    found.symbols = symbols.substitution();
    if (floating_ != ElementType::Undefined) found.floating = floating_;
    if (!are_extents_valid(found.symbols)) return;
    if (!graph_.facts().holds(substitute(pattern_.condition, found.symbols))) return;
    std::vector<EqualityId> classes;
    for (const PatternValue& output : pattern_.left.outputs) {
      const EqualityId root = output.variable >= 0 ? match_.variables[output.variable] : output_of(output);
      found.roots.push_back(root);
      if (root == kNoValue) continue;
      // Siblings that are one value are joined for nothing.
      const bool is_known = std::find(classes.begin(), classes.end(), graph_.find(root)) != classes.end();
      if (is_known && open_.is_joined()) return;
      classes.push_back(graph_.find(root));
    }
    out_.found.push_back(std::move(found));
    if (out_.found.size() >= limits_.matches) out_.is_cut = true;
  }

  const EqualityGraph& graph_;
  const Pattern& pattern_;
  const EqualityPattern& open_;
  const MatchLimits& limits_;
  EqualityMatches& out_;
  EqualityMatch match_;
  SymbolBindings symbols_;
  ElementType floating_ = ElementType::Undefined;  // what f32 of the rule stands for, once it is known
  EqualityId root_ = kNoValue;
  size_t visits_ = 0;
};

}  // namespace

EqualityId MatchedNode::any() const {
  for (EqualityId id : outputs)
    if (id != kNoValue) return id;
  return kNoValue;
}

EqualityPattern::EqualityPattern(Pattern pattern) : pattern_(std::move(pattern)) {
  for (const PatternVariable& variable : pattern_.variables) has_prefix_ = has_prefix_ || variable.has_prefix;
  std::vector<bool> seen(pattern_.left.nodes.size());
  descend(pattern_.left.outputs.front(), -1, 0, seen);
  for (const WalkStep& walk : pattern_.climbs) {
    PatternValue from = walk.from;
    for (size_t i = 0; i < walk.nodes.size(); i++) {
      const int node = walk.nodes[i];
      // Which output of the node is used further up; the last is a root.
      PatternValue value{-1, node, 0};
      if (i + 1 < walk.nodes.size()) {
        for (const PatternValue& input : pattern_.left.nodes[walk.nodes[i + 1]].inputs)
          if (input.node == node) value.output = input.output;
      } else {
        for (const PatternValue& output : pattern_.left.outputs)
          if (output.node == node) value.output = output.output;
      }
      steps_.push_back({MatchStep::Kind::User, value, -1, 0, from});
      seen[node] = true;
      const auto& inputs = pattern_.left.nodes[node].inputs;
      for (size_t slot = 0; slot < inputs.size(); slot++) descend(inputs[slot], node, static_cast<int>(slot), seen);
      from = value;
    }
  }
  for (size_t i = 1; i < pattern_.left.outputs.size(); i++)
    steps_.push_back({MatchStep::Kind::Output, pattern_.left.outputs[i], -1, 0, {}});
}

void EqualityPattern::descend(const PatternValue& value, int from_node, int slot, std::vector<bool>& seen) {
  steps_.push_back({MatchStep::Kind::Argument, value, from_node, slot, {}});
  if (value.node < 0 || seen[value.node]) return;
  seen[value.node] = true;
  const auto& inputs = pattern_.left.nodes[value.node].inputs;
  for (size_t i = 0; i < inputs.size(); i++) descend(inputs[i], value.node, static_cast<int>(i), seen);
}

EqualityMatches find_matches(const EqualityGraph& graph, const EqualityPattern& pattern, const MatchLimits& limits) {
  EqualityMatches matches;
  EqualityMatcher matcher(graph, pattern, limits, matches);
  const PatternValue& root = pattern.pattern().left.outputs.front();
  for (EqualityId id : graph.classes_with(pattern.pattern().left.nodes[root.node].op)) matcher.match_at(id);
  return matches;
}

std::optional<EqualityInstance> instantiate(EqualityGraph& graph, const Pattern& pattern, const EqualityMatch& match,
                                            bool checked) {
  const PatternSide& side = pattern.right;
  EqualityInstance made;
  made.nodes.resize(side.nodes.size());
  const auto find = [&](const PatternValue& value) {
    if (value.variable >= 0) return match.variables[value.variable];
    return value.node >= 0 ? made.nodes[value.node].outputs[value.output] : kNoValue;
  };
  std::vector<bool> needed(side.nodes.size());
  for (size_t i = 0; i < side.outputs.size(); i++)
    if (match.roots[i] != kNoValue && side.outputs[i].node >= 0) needed[side.outputs[i].node] = true;
  for (size_t i = side.nodes.size(); i-- > 0;)
    if (needed[i])
      for (const PatternValue& input : side.nodes[i].inputs)
        if (input.node >= 0) needed[input.node] = true;
  for (size_t i = 0; i < side.nodes.size(); i++) {
    if (!needed[i]) continue;
    const PatternNode& node = side.nodes[i];
    MatchedNode& at = made.nodes[i];
    if (node.op == OpKind::Constant) {
      at.outputs = {graph.add_constant(with_element(node.tensor, match.floating))};
      continue;
    }
    std::vector<EqualityId> inputs;
    for (const PatternValue& input : node.inputs) inputs.push_back(find(input));
    Attributes attributes;
    for (const auto& [name, value] : node.attributes) {
      AttributeValue bound = value;
      if (auto* variable = std::get_if<FloatVariable>(&value)) bound = match.numbers.at(variable->name);
      if (auto* index = std::get_if<Index>(&bound)) *index = substitute(*index, match.symbols);
      if (auto* list = std::get_if<std::vector<Index>>(&bound))
        for (Index& index : *list) index = substitute(index, match.symbols);
      attributes.emplace(name, std::move(bound));
    }
    auto outputs = graph.add(node.op, inputs, attributes, static_cast<uint32_t>(node.outputs.size()), checked);
    if (!outputs) return std::nullopt;
    // An equal application that was there may have its arguments in another order.
    at.outputs = *std::move(outputs);
    at.order = graph.order_of(at.outputs.front(), inputs);
  }
  for (size_t i = 0; i < side.outputs.size(); i++)
    made.outputs.push_back(match.roots[i] == kNoValue ? kNoValue : find(side.outputs[i]));
  return made;
}

}  // namespace gopt::optimizer
