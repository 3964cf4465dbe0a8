#include "match.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "compensation.h"

namespace gopt::optimizer {
namespace {

constexpr NodeId kUnbound{0xffffffff};

uint32_t position(NodeId id) { return static_cast<uint32_t>(id); }

// What remains to be matched: a pattern value against a graph value, or a climb to be made.
struct MatchGoal {
  PatternValue pattern;
  Value actual;
  int climb = -1, climbed = 0;  // >= 0: step `climbed` of that climb
};

struct State {
  std::vector<NodeId> nodes;
  std::vector<Value> variables;
  SymbolBindings symbols;
  std::map<std::string, double> numbers;
  ElementType floating = ElementType::Undefined;
  std::vector<MatchGoal> goals;  // taken from the back
};

int rank_of(const TensorType& type) { return type.shape ? static_cast<int>(type.shape->size()) : -1; }

// Of attributes, which are single precision.
bool equal_numbers(double a, double b) { return a == b || static_cast<float>(a) == static_cast<float>(b); }

// The constants of a rule are exact: 0.1 in double precision is another number than in single.
bool equal_tensors(const Tensor& pattern, const Tensor& actual) {
  if (pattern.dims() != actual.dims()) return false;
  if (pattern.type() == actual.type() && pattern.content_id() == actual.content_id()) return true;
  if (!is_floating(pattern.type()) || !is_computable(actual.type()) || pattern.count() > 4096) return false;
  return pattern.to_doubles() == actual.to_doubles();
}

class PatternMatcher {
 public:
  PatternMatcher(const MatchIndex& index, const Pattern& pattern, const MatchRegion* region,
                 std::vector<Binding>& found, size_t limit)
      : graph_(index.graph()),
        compensated_(index.compensated()),
        pattern_(pattern),
        region_(region),
        found_(found),
        limit_(limit) {}

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
  void solve(State state) {
    while (!state.goals.empty()) {
      if (found_.size() >= limit_) return;
      const MatchGoal goal = std::move(state.goals.back());
      state.goals.pop_back();
      if (goal.climb >= 0) return climb(std::move(state), goal);
      if (goal.pattern.node >= 0) {
        const PatternNode& node = pattern_.left.nodes[goal.pattern.node];
        if (!bind_node(state, goal)) return;
        if (is_new_) {
          if (node.is_commutative && node.inputs.size() > 1) return try_orders(std::move(state), goal);
          for (size_t i = node.inputs.size(); i-- > 0;)
            state.goals.push_back({node.inputs[i], goal.actual.node->inputs[i]});
        }
      } else if (goal.pattern.variable >= 0) {
        if (!bind_variable(state, goal.pattern.variable, goal.actual)) return;
      } else if (goal.actual) {
        return;  // the pattern leaves out an input that is there
      }
    }
    finish(state);
  }

  // Inputs in every order; beyond three of them only as they stand.
  void try_orders(State state, const MatchGoal& goal) {
    const PatternNode& node = pattern_.left.nodes[goal.pattern.node];
    std::vector<size_t> order(node.inputs.size());
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
    const Value low =
        from.variable >= 0 ? state.variables[from.variable] : Value{graph_.node(state.nodes[from.node]), from.output};
    if (!graph_.contains(low.node)) return;
    NodeId last = kUnbound;
    for (NodeId user : graph_.users()[position(graph_.id_of(low.node))]) {
      if (user == last || graph_.node(user)->op != pattern_.left.nodes[next].op) continue;
      last = user;
      State branch = state;
      if (goal.climbed + 1 < static_cast<int>(step.nodes.size()))
        branch.goals.push_back({goal.pattern, {}, goal.climb, goal.climbed + 1});
      branch.goals.push_back({{-1, next, 0}, Value{graph_.node(user), 0}});
      solve(std::move(branch));
    }
  }

  // Sets is_new_ to whether the node's inputs are still to be matched.
  bool bind_node(State& state, const MatchGoal& goal) {
    is_new_ = false;
    const PatternNode& pattern = pattern_.left.nodes[goal.pattern.node];
    if (!goal.actual || goal.actual.output != goal.pattern.output) return false;
    const Node& actual = *goal.actual.node;
    if (actual.op != pattern.op || !graph_.contains(goal.actual.node)) return false;
    const NodeId id = graph_.id_of(goal.actual.node);
    NodeId& bound = state.nodes[goal.pattern.node];
    if (bound != kUnbound) return bound == id;
    if (pattern.op == OpKind::Constant && (!match_element(state, pattern.tensor.type(), actual.tensor.type()) ||
                                           !equal_tensors(pattern.tensor, actual.tensor)))
      return false;
    if (actual.inputs.size() != pattern.inputs.size() || actual.outputs.size() != pattern.outputs.size()) return false;
    if (rank_of(pattern.outputs.front()) != rank_of(actual.outputs.front())) return false;
    if (pattern.attributes.size() != actual.attributes.size()) return false;
    if (!unify_all(state, pattern.attributes, actual.attributes)) return false;
    bound = id;
    is_new_ = true;
    return true;
  }

  bool unify_all(State& state, const Attributes& wanted, const Attributes& actual) {
    for (auto a = wanted.begin(), b = actual.begin(); a != wanted.end(); ++a, ++b)
      if (a->first != b->first || !unify_attribute(state, a->second, b->second)) return false;
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
    if (!is_floating(actual) || !pattern_.holds_for(actual)) return false;
    if (state.floating == ElementType::Undefined) state.floating = actual;
    return state.floating == actual;
  }

  bool bind_variable(State& state, int variable, const Value& actual) {
    const PatternVariable& pattern = pattern_.variables[variable];
    Value& bound = state.variables[variable];
    if (bound) return bound == actual;
    if (!actual || !actual.type().shape || !match_element(state, pattern.element, actual.type().element)) return false;
    if (pattern.kind == VariableKind::Weight && !graph_.depends_on_weights_only(graph_.id_of(actual.node)))
      return false;
    if (!state.symbols.unify(pattern.shape, *actual.type().shape)) return false;
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

  void finish(State& state) {
    if (!state.symbols.settle()) return;
    std::vector<Value> roots;
    std::vector<NodeId> root_nodes;
    for (const PatternValue& output : pattern_.left.outputs) {
      const NodeId id = state.nodes[output.node];
      const Value root{graph_.node(id), output.output};
      if (std::find(roots.begin(), roots.end(), root) != roots.end()) return;
      roots.push_back(root);
      if (std::find(root_nodes.begin(), root_nodes.end(), id) == root_nodes.end()) root_nodes.push_back(id);
    }
    // What depends on weights alone is computed once, when code is made: rewriting it gains nothing.
    const auto is_free = [&](NodeId id) { return graph_.depends_on_weights_only(id); };
    if (std::all_of(root_nodes.begin(), root_nodes.end(), is_free)) return;
    if (pattern_.keeps_rounding && has_aliases(state)) return;
    if (pattern_.keeps_compensation &&
        std::any_of(state.nodes.begin(), state.nodes.end(), [&](NodeId id) { return compensated_[position(id)]; }))
      return;
    if (!touches_region(state)) return;
    Substitution symbols = state.symbols.substitution();
    for (AtomId id : pattern_.extent_symbols) {
      const auto value = symbols.find(id);
      if (value != symbols.end() && !is_surely_non_negative(value->second)) return;
    }
    if (!is_surely_true(substitute(pattern_.condition, symbols))) return;
    if (makes_cycle(state, root_nodes) || !is_first_order(roots)) return;
    Binding binding{&pattern_,          std::move(state.nodes),   std::move(state.variables),
                    std::move(symbols), std::move(state.numbers), ElementType::Float32};
    if (state.floating != ElementType::Undefined) binding.floating = state.floating;
    found_.push_back(std::move(binding));
  }

  const Graph& graph_;
  const std::vector<bool>& compensated_;
  const Pattern& pattern_;
  const MatchRegion* region_;
  std::vector<Binding>& found_;
  const size_t limit_;
  bool is_new_ = false;
  std::set<std::vector<std::pair<uint32_t, int>>> root_sets_;
};

}  // namespace

Value Binding::root(const Graph& graph, size_t output) const {
  const PatternValue& root = pattern->left.outputs[output];
  return {graph.node(nodes[root.node]), root.output};
}

MatchIndex::MatchIndex(const Graph& graph)
    : graph_(graph), by_op_(all_ops().size() + 8), compensated_(compensated_nodes(graph)) {
  for (size_t i = 0; i < graph.nodes().size(); i++) {
    const auto op = static_cast<size_t>(graph.nodes()[i]->op);
    if (op >= by_op_.size()) by_op_.resize(op + 1);
    by_op_[op].push_back(static_cast<NodeId>(i));
  }
}

const std::vector<NodeId>& MatchIndex::nodes_of(OpKind op) const {
  static const std::vector<NodeId> none;
  const auto at = static_cast<size_t>(op);
  return at < by_op_.size() ? by_op_[at] : none;
}

namespace {

// Marks all nodes at most `levels` uses above `layer`.
void mark_users(const Graph& graph, std::vector<NodeId> layer, int levels, std::vector<bool>& marked) {
  for (int level = 0; level < levels && !layer.empty(); level++) {
    std::vector<NodeId> above;
    for (NodeId id : layer) {
      for (NodeId user : graph.users()[position(id)]) {
        if (marked[position(user)]) continue;
        marked[position(user)] = true;
        above.push_back(user);
      }
    }
    layer = std::move(above);
  }
}

}  // namespace

MatchRegion region_around(const Graph& graph, const std::vector<NodeId>& changed, int depth) {
  const std::vector<bool> none(graph.nodes().size());
  MatchRegion region{none, none, none};
  for (NodeId id : changed) region.changed[position(id)] = region.roots[position(id)] = true;
  mark_users(graph, changed, depth - 1, region.roots);
  // A sibling root hangs on what a root above the change uses, or on the change itself.
  region.sibling_roots = region.roots;
  std::vector<NodeId> shared = changed;
  for (size_t i = 0; i < region.roots.size(); i++) {
    if (!region.roots[i]) continue;
    for (const Value& input : graph.nodes()[i]->inputs)
      if (input && !input.node->is(OpKind::Constant)) shared.push_back(graph.id_of(input.node));
  }
  mark_users(graph, shared, depth, region.sibling_roots);
  return region;
}

std::vector<Binding> find_bindings(const MatchIndex& index, const Pattern& pattern, const MatchRegion* region,
                                   size_t limit) {
  std::vector<Binding> found;
  PatternMatcher matcher(index, pattern, region, found, limit);
  const std::vector<bool>* wanted = nullptr;
  if (region) wanted = pattern.climbs.empty() ? &region->roots : &region->sibling_roots;
  for (NodeId root : index.nodes_of(pattern.left.nodes[pattern.first_root()].op))
    if (!wanted || (*wanted)[position(root)]) matcher.match_at(root);
  return found;
}

}  // namespace gopt::optimizer
