// The matcher itself: walks a pattern's left side through a graph from a candidate root. What it does where something
// does not fit is its caller's: `Slack` says whether that may be passed over. find_bindings (match.cc) passes over
// nothing, which costs nothing; near_misses.cc passes over one thing and says what it was.
#pragma once

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gopt/near_misses.h"
#include "matching/elements.h"
#include "matching/match.h"
#include "matching/unify.h"

namespace gopt::optimizer {

inline constexpr NodeId kUnbound{0xffffffff};

inline uint32_t position(NodeId id) { return static_cast<uint32_t>(id); }

inline int rank_of(const TensorType& type) { return type.shape ? static_cast<int>(type.shape->size()) : -1; }

// What remains to be matched: a pattern value against a graph value, or a climb to be made.
struct MatchGoal {
  PatternValue pattern;
  Value actual;
  int climb = -1, climbed = 0;  // >= 0: step `climbed` of that climb
};

// What a rule asks for, and the value that is there (none: nothing is), or one of its node's attributes.
struct Mismatch {
  std::string expected;
  Value found;
  std::string attribute = {};
  int node = -1;  // of the pattern, where it is that which is not there
};

template <class Note>
struct MatchState {
  std::vector<NodeId> nodes;
  std::vector<Value> variables;
  SymbolBindings symbols;
  std::map<std::string, double> numbers;
  ElementType floating = ElementType::Undefined;
  std::vector<MatchGoal> goals;  // taken from the back
  Note note;                     // what was passed over
};

// A Slack has:
//   kIsStrict                      nothing is passed over: all that follows but is_full and found is never called
//   Note                           what a state remembers of what it passed over
//   is_full()                      no further match is wanted
//   passes(note, obstacle, where)  whether this obstacle is passed over, and noted; `where` gives what is expected and
//                                  found (a Mismatch)
//   has_passed(note)
//   found(state)                   a match
template <class Slack>
class PatternMatcher {
 public:
  using State = MatchState<typename Slack::Note>;

  PatternMatcher(const MatchIndex& index, const Pattern& pattern, const MatchRegion* region, Slack& slack)
      : graph_(index.graph()), compensated_(index.compensated()), pattern_(pattern), region_(region), slack_(slack) {}

  void match_at(NodeId root) {
    State state;
    state.nodes.assign(pattern_.left.nodes.size(), kUnbound);
    state.variables.resize(pattern_.variables.size());
    for (size_t climb = pattern_.climbs.size(); climb-- > 0;)
      state.goals.push_back({pattern_.climbs[climb].from, {}, static_cast<int>(climb), 0});
    const PatternValue& output = pattern_.left.outputs.front();
    state.goals.push_back({output, Value{graph_.node(root), output.output}});
    solve(std::move(state));
  }

 private:
  // Whether what does not fit is passed over. `where` is called only where it is.
  template <class Where>
  bool passes(State& state, Obstacle obstacle, Where where) {
    if constexpr (Slack::kIsStrict)
      return false;
    else
      return slack_.passes(state.note, obstacle, where);
  }

  void solve(State state) {
    while (!state.goals.empty()) {
      if (slack_.is_full()) return;
      const MatchGoal goal = std::move(state.goals.back());
      state.goals.pop_back();
      if (goal.climb >= 0) return climb(std::move(state), goal);
      if (goal.pattern.node >= 0) {
        const PatternNode& node = pattern_.left.nodes[goal.pattern.node];
        if constexpr (!Slack::kIsStrict) look_below(state, goal);
        if (!bind_node(state, goal)) return;
        if (is_new_) {
          if (node.is_commutative && node.inputs.size() > 1) return try_orders(std::move(state), goal);
          for (size_t i = input_count(node, *goal.actual.node); i-- > 0;)
            state.goals.push_back({node.inputs[i], goal.actual.node->inputs[i]});
        }
      } else if (goal.pattern.variable >= 0) {
        if (!bind_variable(state, goal.pattern.variable, goal.actual)) return;
      } else if (goal.actual) {  // the pattern leaves out an input that is there
        if (!passes(state, Obstacle::Input, [&] { return Mismatch{"no input", goal.actual}; })) return;
      }
    }
    finish(state);
  }

  static size_t input_count(const PatternNode& node, const Node& actual) {
    if constexpr (Slack::kIsStrict) return node.inputs.size();
    return std::min(node.inputs.size(), actual.inputs.size());
  }

  // Inputs in every order; beyond three of them only as they stand.
  void try_orders(State state, const MatchGoal& goal) {
    const PatternNode& node = pattern_.left.nodes[goal.pattern.node];
    std::vector<size_t> order(input_count(node, *goal.actual.node));
    std::iota(order.begin(), order.end(), 0);
    do {
      State next = state;
      for (size_t i = order.size(); i-- > 0;)
        next.goals.push_back({node.inputs[i], goal.actual.node->inputs[order[i]]});
      solve(std::move(next));
    } while (order.size() <= 3 && std::next_permutation(order.begin(), order.end()));
  }

  // From a bound value to a user that matches the next node of the climb; then on from that user's output.
  void climb(State state, const MatchGoal& goal) {
    const WalkStep& step = pattern_.climbs[goal.climb];
    const int next = step.nodes[goal.climbed];
    const PatternValue from = goal.climbed == 0 ? step.from : PatternValue{-1, step.nodes[goal.climbed - 1], 0};
    const Value low = bound_value(state, from);
    if (!low || !graph_.contains(low.node)) return;
    const OpKind wanted = pattern_.left.nodes[next].op;
    NodeId last = kUnbound;
    [[maybe_unused]] bool has_met = false;
    for (NodeId user : graph_.users()[position(graph_.id_of(low.node))]) {
      if (user == last || graph_.node(user)->op != wanted) continue;
      last = user;
      if constexpr (!Slack::kIsStrict)
        has_met = has_met || std::find(state.nodes.begin(), state.nodes.end(), user) == state.nodes.end();
      State branch = state;
      if (goal.climbed + 1 < static_cast<int>(step.nodes.size()))
        branch.goals.push_back({goal.pattern, {}, goal.climb, goal.climbed + 1});
      branch.goals.push_back({{-1, next, 0}, Value{graph_.node(user), 0}});
      solve(std::move(branch));
    }
    if constexpr (!Slack::kIsStrict) {
      const auto no_such_user = [&] { return Mismatch{std::string(op_info(wanted).name) + " of it", low}; };
      if (!has_met && passes(state, Obstacle::Node, no_such_user)) solve(std::move(state));
    }
  }

  Value bound_value(const State& state, const PatternValue& value) const {
    if (value.variable >= 0) return state.variables[value.variable];
    const NodeId id = state.nodes[value.node];
    if constexpr (!Slack::kIsStrict)
      if (id == kUnbound) return {};
    return {graph_.node(id), value.output};
  }

  // Where another operator is met, the one that is wanted may be below it.
  void look_below(const State& state, const MatchGoal& goal) {
    if (!goal.actual || !graph_.contains(goal.actual.node)) return;
    const Node& met = *goal.actual.node;
    const PatternNode& wanted = pattern_.left.nodes[goal.pattern.node];
    if (met.op == wanted.op || wanted.op == OpKind::Constant || state.nodes[goal.pattern.node] != kUnbound) return;
    for (const Value& below : met.inputs) {
      if (!below || below.node->op != wanted.op) continue;
      State branch = state;
      const auto between = [&] { return Mismatch{op_info(wanted.op).name, goal.actual}; };
      if (!passes(branch, Obstacle::Between, between)) return;
      branch.goals.push_back({goal.pattern, below});
      solve(std::move(branch));
    }
  }

  // Sets is_new_ to whether the node's inputs are still to be matched. True with is_new_ unset and the node not bound:
  // that it is missing was passed over.
  bool bind_node(State& state, const MatchGoal& goal) {
    is_new_ = false;
    const PatternNode& pattern = pattern_.left.nodes[goal.pattern.node];
    const auto wanted = [&] { return Mismatch{op_info(pattern.op).name, goal.actual, {}, goal.pattern.node}; };
    if (!goal.actual) return passes(state, Obstacle::Input, wanted);
    if (goal.actual.output != goal.pattern.output && !passes(state, Obstacle::Output, [&] {
          return Mismatch{"output " + std::to_string(goal.pattern.output), goal.actual};
        }))
      return false;
    const Node& actual = *goal.actual.node;
    if (actual.op != pattern.op || !graph_.contains(goal.actual.node))
      return passes(state, pattern.op == OpKind::Constant ? Obstacle::Constant : Obstacle::Node, wanted);
    const NodeId id = graph_.id_of(goal.actual.node);
    NodeId& bound = state.nodes[goal.pattern.node];
    if (bound != kUnbound) return bound == id || passes(state, Obstacle::Sharing, wanted);
    if (!has_form(state, pattern, goal.actual)) return false;
    bound = id;
    is_new_ = true;
    return true;
  }

  // All of a node but its inputs.
  bool has_form(State& state, const PatternNode& pattern, const Value& value) {
    const Node& actual = *value.node;
    const auto says = [&](std::string expected) {
      return [&value, expected = std::move(expected)] { return Mismatch{expected, value}; };
    };
    if (pattern.op == OpKind::Constant) {
      if (!match_element(state, pattern.tensor.type(), actual.tensor.type()) && !passes(state, Obstacle::Type, [&] {
            return Mismatch{to_string(pattern.tensor.type()), value};
          }))
        return false;
      if (!equal_tensors(pattern.tensor, actual.tensor) && !passes(state, Obstacle::Constant, says("another constant")))
        return false;
    }
    if (actual.inputs.size() != pattern.inputs.size() &&
        !passes(state, Obstacle::Input, [&] { return counted(pattern.inputs.size(), "inputs", value); }))
      return false;
    if (actual.outputs.size() != pattern.outputs.size() &&
        !passes(state, Obstacle::Output, [&] { return counted(pattern.outputs.size(), "outputs", value); }))
      return false;
    if (rank_of(pattern.outputs.front()) != rank_of(actual.outputs.front()) &&
        !passes(state, Obstacle::Rank, [&] { return ranked(rank_of(pattern.outputs.front()), value); }))
      return false;
    return unify_all(state, pattern.attributes, value);
  }

  static Mismatch counted(size_t count, const char* things, const Value& value) {
    return {std::to_string(count) + " " + things, value};
  }
  static Mismatch ranked(int rank, const Value& value) { return {"rank " + std::to_string(rank), value}; }

  bool unify_all(State& state, const Attributes& wanted, const Value& value) {
    const Attributes& actual = value.node->attributes;
    if (wanted.size() != actual.size())
      return passes(state, Obstacle::Attribute, [&] { return counted(wanted.size(), "attributes", value); });
    for (auto a = wanted.begin(), b = actual.begin(); a != wanted.end(); ++a, ++b) {
      if (a->first == b->first && unify_attribute(state, a->second, b->second)) continue;
      const bool is_axis = a->first == "axis" || a->first == "axes" || a->first == "perm";
      const auto other = [&] { return Mismatch{a->first + "=" + to_string(a->second), value, b->first}; };
      if (!passes(state, is_axis ? Obstacle::Axis : Obstacle::Attribute, other)) return false;
    }
    return true;
  }

  bool unify_attribute(State& state, const AttributeValue& wanted, const AttributeValue& actual) {
    if (auto* variable = std::get_if<FloatVariable>(&wanted)) {
      auto* number = std::get_if<double>(&actual);
      return number && equal_numbers(state.numbers.try_emplace(variable->name, *number).first->second, *number);
    }
    if (wanted.index() != actual.index()) return false;
    if (auto* index = std::get_if<Index>(&wanted)) return state.symbols.unify(*index, std::get<Index>(actual));
    if (auto* list = std::get_if<std::vector<Index>>(&wanted))
      return state.symbols.unify(*list, std::get<std::vector<Index>>(actual));
    if (auto* number = std::get_if<double>(&wanted)) return equal_numbers(*number, std::get<double>(actual));
    return equal(wanted, actual);
  }

  bool match_element(State& state, ElementType pattern, ElementType actual) {
    if (pattern != ElementType::Float32) return pattern == actual;
    if (!pattern_.holds_for(actual)) return false;
    if (state.floating == ElementType::Undefined) state.floating = actual;
    return state.floating == actual;
  }

  bool bind_variable(State& state, int variable, const Value& actual) {
    const PatternVariable& pattern = pattern_.variables[variable];
    Value& bound = state.variables[variable];
    const auto wanted = [&] { return Mismatch{"what it has met before", actual}; };
    if (bound) return bound == actual || passes(state, Obstacle::Sharing, wanted);
    if (!actual) return passes(state, Obstacle::Input, [&] { return Mismatch{"an input", actual}; });
    if (!actual.type().shape) return passes(state, Obstacle::Rank, [&] { return Mismatch{"a rank", actual}; });
    if (!match_element(state, pattern.element, actual.type().element) && !passes(state, Obstacle::Type, [&] {
          return Mismatch{to_string(pattern.element), actual};
        }))
      return false;
    if (pattern.kind == VariableKind::Weight && !graph_.depends_on_weights_only(graph_.id_of(actual.node)) &&
        !passes(state, Obstacle::Weight, [&] {
          return Mismatch{"a weight", actual};
        }))
      return false;
    if (!state.symbols.unify(pattern.shape, *actual.type().shape)) {
      const bool same_rank = pattern.shape.size() == actual.type().shape->size();
      if (!passes(state, same_rank ? Obstacle::Extent : Obstacle::Rank, [&] {
            return Mismatch{to_string(pattern.shape), actual};
          }))
        return false;
    }
    bound = actual;
    return true;
  }

  bool touches_region(const State& state) const {
    if (!region_) return true;
    for (NodeId id : state.nodes)
      if (region_->changed[position(id)]) return true;
    if (pattern_.climbs.empty()) return false;
    for (const Value& value : state.variables)
      if (region_->changed[position(graph_.id_of(value.node))]) return true;
    return false;
  }

  // Whether one floating-point value stands for two of the rule's variables.
  bool has_aliases(const State& state) const {
    std::set<std::pair<const Node*, int>> values;
    for (const NodeId id : state.nodes)
      for (size_t k = 0; k < graph_.node(id)->outputs.size(); k++)
        values.emplace(graph_.node(id).get(), static_cast<int>(k));
    return std::any_of(state.variables.begin(), state.variables.end(), [&](const Value& value) {
      return is_floating(value.type().element) && !values.emplace(value.node.get(), value.output).second;
    });
  }

  // Whether some variable's value depends on a root: what replaces the root would then use itself.
  bool makes_cycle(const State& state, const std::vector<NodeId>& roots) const {
    if (roots.size() < 2) return false;
    const uint32_t lowest = position(*std::min_element(roots.begin(), roots.end()));
    std::vector<NodeId> open;
    std::set<NodeId> seen;
    for (const Value& value : state.variables) open.push_back(graph_.id_of(value.node));
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      if (position(id) < lowest || !seen.insert(id).second) continue;
      if (std::find(roots.begin(), roots.end(), id) != roots.end()) return true;
      for (const Value& input : graph_.node(id)->inputs)
        if (input) open.push_back(graph_.id_of(input.node));
    }
    return false;
  }

  // The same set of roots in another order is the same rewrite but for the order of what is merged.
  bool is_first_order(const std::vector<Value>& roots) {
    if (roots.size() < 2) return true;
    std::vector<std::pair<uint32_t, int>> key;
    for (const Value& root : roots) key.emplace_back(position(graph_.id_of(root.node)), root.output);
    std::sort(key.begin(), key.end());
    return root_sets_.insert(std::move(key)).second;
  }

  // Distinct roots, and the nodes that they are of. False: one is met twice.
  bool collect_roots(const State& state, std::vector<Value>& roots, std::vector<NodeId>& nodes) const {
    for (const PatternValue& output : pattern_.left.outputs) {
      const NodeId id = state.nodes[output.node];
      if constexpr (!Slack::kIsStrict)
        if (id == kUnbound) continue;
      const Value root{graph_.node(id), output.output};
      if (std::find(roots.begin(), roots.end(), root) != roots.end()) return false;
      roots.push_back(root);
      if (std::find(nodes.begin(), nodes.end(), id) == nodes.end()) nodes.push_back(id);
    }
    return true;
  }

  void finish(State& state) {
    std::vector<Value> roots;
    std::vector<NodeId> root_nodes;
    if (!collect_roots(state, roots, root_nodes)) return;
    // What depends on weights alone is computed once, when code is made: rewriting it gains nothing.
    const auto is_free = [&](NodeId id) { return graph_.depends_on_weights_only(id); };
    if (std::all_of(root_nodes.begin(), root_nodes.end(), is_free)) return;
    if constexpr (!Slack::kIsStrict)
      if (slack_.has_passed(state.note)) return finish_partly(state);
    if (!is_allowed(state, root_nodes)) return;
    if (!is_first_order(roots)) return;
    slack_.found(state);
  }

  // Of what was passed over, symbols and values are missing: what they would decide is left open.
  void finish_partly(State& state) {
    if (!state.symbols.propagate()) return;
    if (substitute(pattern_.condition, state.symbols.substitution()).kind() == CondKind::False) return;
    slack_.found(state);
  }

  // What must hold of a match as a whole.
  bool is_allowed(State& state, const std::vector<NodeId>& root_nodes) {
    const Value root{graph_.node(root_nodes.front()), 0};
    const auto says = [&](const char* expected) { return [expected, &root] { return Mismatch{expected, root}; }; };
    if (!state.symbols.settle() && !passes(state, Obstacle::Undecided, says("sizes that fit"))) return false;
    if (pattern_.keeps_rounding && has_aliases(state) &&
        !passes(state, Obstacle::Rounding, says("unequal values for its variables")))
      return false;
    if (pattern_.keeps_compensation &&
        std::any_of(state.nodes.begin(), state.nodes.end(), [&](NodeId id) { return compensated_[position(id)]; }) &&
        !passes(state, Obstacle::Rounding, says("a sum whose rounding is not measured")))
      return false;
    if (!touches_region(state)) return false;
    return meets_condition(state, root) &&
           (!makes_cycle(state, root_nodes) || passes(state, Obstacle::Cycle, says("values that do not use it")));
  }

  bool meets_condition(State& state, const Value& root) {
    const Substitution symbols = state.symbols.substitution();
    for (AtomId id : pattern_.extent_symbols) {
      const auto value = symbols.find(id);
      if (value != symbols.end() && !is_surely_non_negative(value->second) && !passes(state, Obstacle::Undecided, [&] {
            return Mismatch{to_string(value->second) + " >= 0", root};
          }))
        return false;
    }
    const Cond condition = substitute(pattern_.condition, symbols);
    if (is_surely_true(condition)) return true;
    return passes(state, condition.kind() == CondKind::False ? Obstacle::Condition : Obstacle::Undecided, [&] {
      return Mismatch{to_string(pattern_.condition), root};
    });
  }

  const Graph& graph_;
  const std::vector<bool>& compensated_;
  const Pattern& pattern_;
  const MatchRegion* region_;
  Slack& slack_;
  bool is_new_ = false;
  std::set<std::vector<std::pair<uint32_t, int>>> root_sets_;
};

}  // namespace gopt::optimizer
