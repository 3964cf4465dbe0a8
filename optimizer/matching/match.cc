#include "matching/match.h"

#include <algorithm>

#include "matching/compensation.h"
#include "matching/pattern_matcher.h"

namespace gopt::optimizer {
namespace {

// Nothing is passed over: matches are bindings.
class NoSlack {
 public:
  static constexpr bool kIsStrict = true;
  struct Note {};

  NoSlack(const Pattern& pattern, std::vector<Binding>& found, size_t limit)
      : pattern_(pattern), found_(found), limit_(limit) {}

  bool is_full() const { return found_.size() >= limit_; }
  void found(MatchState<Note>& state) {
    Binding binding{&pattern_,
                    std::move(state.nodes),
                    std::move(state.variables),
                    state.symbols.substitution(),
                    std::move(state.numbers),
                    ElementType::Float32};
    if (state.floating != ElementType::Undefined) binding.floating = state.floating;
    found_.push_back(std::move(binding));
  }

 private:
  const Pattern& pattern_;
  std::vector<Binding>& found_;
  const size_t limit_;
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
    operators_.insert(graph.nodes()[i]->op);
  }
  by_rank_ = by_op_;
  for (std::vector<NodeId>& nodes : by_rank_)
    std::stable_sort(nodes.begin(), nodes.end(), [this](NodeId a, NodeId b) { return rank(a) < rank(b); });
}

int MatchIndex::rank(NodeId id) const { return rank_of(graph_.node(id)->outputs.front()); }

const std::vector<NodeId>& MatchIndex::nodes_of(OpKind op) const {
  static const std::vector<NodeId> none;
  const auto at = static_cast<size_t>(op);
  return at < by_op_.size() ? by_op_[at] : none;
}

std::span<const NodeId> MatchIndex::nodes_of(OpKind op, int wanted) const {
  const auto at = static_cast<size_t>(op);
  if (at >= by_rank_.size()) return {};
  const std::vector<NodeId>& nodes = by_rank_[at];
  const auto first = std::partition_point(nodes.begin(), nodes.end(), [&](NodeId id) { return rank(id) < wanted; });
  const auto last = std::partition_point(first, nodes.end(), [&](NodeId id) { return rank(id) <= wanted; });
  return {first, last};
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

namespace {

bool has_operator(const PatternValue& wanted, const Value& actual, const Pattern& pattern) {
  if (wanted.node >= 0) return actual && actual.node->op == pattern.left.nodes[wanted.node].op;
  return (wanted.variable >= 0) == static_cast<bool>(actual);
}

// What the matcher would find at once, without a state to find it in.
bool may_match(const PatternNode& wanted, const Node& actual, const Pattern& pattern) {
  if (actual.inputs.size() != wanted.inputs.size() || actual.outputs.size() != wanted.outputs.size() ||
      actual.attributes.size() != wanted.attributes.size())
    return false;
  for (size_t i = 0; i < wanted.inputs.size(); i++) {
    const auto fits = [&](const Value& value) { return has_operator(wanted.inputs[i], value, pattern); };
    const bool fits_somewhere =
        wanted.is_commutative ? std::any_of(actual.inputs.begin(), actual.inputs.end(), fits) : fits(actual.inputs[i]);
    if (!fits_somewhere) return false;
  }
  return true;
}

}  // namespace

std::vector<Binding> find_bindings(const MatchIndex& index, const Pattern& pattern, const MatchRegion* region,
                                   size_t limit) {
  std::vector<Binding> found;
  NoSlack slack(pattern, found, limit);
  PatternMatcher<NoSlack> matcher(index, pattern, region, slack);
  const std::vector<bool>* wanted = nullptr;
  if (region) wanted = pattern.climbs.empty() ? &region->roots : &region->sibling_roots;
  const PatternNode& top = pattern.left.nodes[pattern.first_root()];
  for (NodeId root : index.nodes_of(top.op, rank_of(top.outputs.front())))
    if ((!wanted || (*wanted)[position(root)]) && may_match(top, *index.graph().node(root), pattern))
      matcher.match_at(root);
  return found;
}

}  // namespace gopt::optimizer
