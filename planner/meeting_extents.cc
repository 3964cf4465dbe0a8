#include "meeting_extents.h"

#include <algorithm>
#include <optional>
#include <set>

#include "cover.h"
#include "gopt/split_model.h"

namespace gopt::planner {
namespace {

// Axes at the end of an operator's inputs that are not broadcast to each other; nothing of one that does not broadcast.
std::optional<size_t> axes_of_own(const Node& node) {
  if (op_info(node.op).has(kElementwise)) return 0;
  return node.is(OpKind::MatMul) ? std::optional<size_t>(2) : std::nullopt;
}

bool is_sum_of_sizes(const Index& index) {
  return index.constant() >= 0 &&
         std::ranges::all_of(index.terms(), [](const Index::Term& term) { return term.coefficient > 0; });
}

// Of `difference` == 0, the last symbol for which that gives a sum of others.
std::optional<std::pair<AtomId, Index>> solved(const Index& difference, const std::vector<AtomId>& symbols) {
  const auto is_known = [&](AtomId symbol) { return std::ranges::count(symbols, symbol) > 0; };
  for (size_t k = symbols.size(); k-- > 0;) {
    const auto is_own = [&](const Index::Term& term) {
      return term.atoms == std::vector{symbols[k]} && std::abs(term.coefficient) == 1;
    };
    const auto term = std::ranges::find_if(difference.terms(), is_own);
    if (term == difference.terms().end()) continue;
    const Index own = Index::from_atom(symbols[k]);
    const Index value = term->coefficient > 0 ? own - difference : own + difference;
    std::set<AtomId> others;
    collect_symbols(value, others);
    if (is_sum_of_sizes(value) && value != Index(0) && !others.contains(symbols[k]) &&
        std::ranges::all_of(others, is_known))
      return std::pair(symbols[k], value);
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::pair<Index, Index>> undecided_extents(const Node& node) {
  std::vector<std::pair<Index, Index>> found;
  const auto own = axes_of_own(node);
  if (!own) return found;
  for (size_t a = 0; a < node.inputs.size(); a++)
    for (size_t b = a + 1; b < node.inputs.size(); b++) {
      if (!node.inputs[a] || !node.inputs[b]) continue;
      const auto &left = node.inputs[a].type().shape, &right = node.inputs[b].type().shape;
      if (!left || !right) continue;
      for (size_t k = 1 + *own; k <= std::min(left->size(), right->size()); k++) {
        const Index &one = (*left)[left->size() - k], &other = (*right)[right->size() - k];
        if (one != other && one != Index(1) && other != Index(1) && !(one.is_constant() && other.is_constant()))
          found.emplace_back(one, other);
      }
    }
  return found;
}

}  // namespace gopt::planner

namespace gopt {

std::vector<MeetingExtents> meeting_extents(const Graph& graph) {
  std::vector<AtomId> symbols;  // that inputs have by themselves, in their order
  for (const Value& input : graph.inputs())
    for (const Index& extent : input.type().shape.value_or(Shape{}))
      if (const auto symbol = extent.as_atom(); symbol && std::ranges::count(symbols, *symbol) == 0)
        symbols.push_back(*symbol);
  std::vector<MeetingExtents> found;
  Substitution known;
  for (const NodePtr& node : graph.nodes())
    for (const auto& meeting : planner::undecided_extents(*node)) {
      const Index one = substitute(meeting.first, known), other = substitute(meeting.second, known);
      const auto solution = planner::solved(one - other, symbols);
      if (!solution) continue;
      const auto& [symbol, value] = *solution;
      for (MeetingExtents& before : found) before.value = substitute(before.value, {{symbol, value}});
      found.push_back({symbol, value, planner::describe(*node)});
      known.clear();
      for (const MeetingExtents& all : found) known.emplace(all.symbol, all.value);
    }
  return found;
}

}  // namespace gopt
