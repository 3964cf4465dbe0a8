#include "orientation.h"

#include <algorithm>

namespace gopt::generator {
namespace {

void collect_applications(const TermStore& terms, TermId id, std::vector<TermId>& out) {
  if (!terms.term(id).is_application()) return;
  out.push_back(id);
  for (TermId arg : terms.term(id).args) collect_applications(terms, arg, out);
}

int activation_ops(const TermStore& terms, const std::vector<TermId>& roots) {
  int total = 0;
  for (TermId root : roots) total += terms.term(root).activation_ops;
  return total;
}

// Pairs of equal cost are kept both ways where tensors are moved or summed over, since what becomes cheap next to them
// differs; elementwise ones only towards the class's representative.
bool may_go_both_ways(const TermStore& terms, const TermPair& pair) {
  std::vector<TermId> parts;
  for (const auto* side : {&pair.left, &pair.right})
    for (TermId root : *side) collect_applications(terms, root, parts);
  return std::any_of(parts.begin(), parts.end(), [&](TermId part) {
    const Term& term = terms.term(part);
    return !term.is_weight && !op_info(terms.op(term.op).kind).has(kElementwise);
  });
}

bool binds_variables(const TermStore& terms, const std::vector<TermId>& from, const std::vector<TermId>& to) {
  const auto left = variables_of(terms, from), right = variables_of(terms, to);
  return std::all_of(right.begin(), right.end(),
                     [&](const auto& name) { return std::find(left.begin(), left.end(), name) != left.end(); });
}

// Whether one side says all sizes that the attributes of the other speak of: not where a kernel is made larger.
bool binds_sizes(const TermStore& terms, const std::vector<TermId>& from, const std::vector<TermId>& to) {
  std::set<AtomId> bound, used;
  for (const auto& [variable_class, number] : variables_of(terms, from))
    for (const Index& extent : *terms.family().classes[static_cast<size_t>(variable_class)].type.shape)
      collect_symbols(extent, bound);
  for (TermId root : from) terms.collect_attribute_symbols(root, bound);
  for (TermId root : to) terms.collect_attribute_symbols(root, used);
  return std::includes(bound.begin(), bound.end(), used.begin(), used.end());
}

}  // namespace

int weight_ops(const TermStore& terms, const std::vector<TermId>& roots) {
  int total = 0;
  for (TermId root : roots) total += terms.term(root).weight_ops;
  return total;
}

bool can_be_left(const TermStore& terms, const std::vector<TermId>& from, const std::vector<TermId>& to) {
  for (TermId root : from) {
    const Term& term = terms.term(root);
    if (!term.is_application() || term.is_weight || term.weight_ops > 0) return false;
  }
  return binds_variables(terms, from, to);
}

std::vector<TermPair> directions(const TermStore& terms, Kernels& kernels, const TermPair& pair, bool is_symmetry) {
  const TermPair back{pair.right, pair.left};
  const auto cost = kernels.cost(pair.left), other = kernels.cost(pair.right);
  const bool is_cheaper = cost[0] < other[0] && cost[1] < other[1];
  const bool is_dearer = cost[0] > other[0] && cost[1] > other[1];
  const bool is_equal = cost == other;
  std::vector<TermPair> wanted;
  if (!is_cheaper && can_be_left(terms, pair.left, pair.right)) wanted.push_back(pair);
  const bool goes_back = is_cheaper || (!is_dearer && !is_symmetry && (!is_equal || may_go_both_ways(terms, pair)));
  if (goes_back && can_be_left(terms, back.left, back.right)) wanted.push_back(back);
  // What is dearer but cannot be left because weights are folded in it: a step that others may follow. Where the other
  // side does not say how (by how much a kernel is made larger), the way back is a rule: of weights not folded yet.
  for (const TermPair& up : {pair, back}) {
    if (!wanted.empty()) break;
    if (weight_ops(terms, up.right) == 0 || !can_be_left(terms, up.left, up.right) ||
        activation_ops(terms, up.right) > activation_ops(terms, up.left))
      continue;
    if (binds_sizes(terms, up.left, up.right))
      wanted.push_back(up);
    else if (binds_variables(terms, up.right, up.left) && binds_sizes(terms, up.right, up.left))
      wanted.push_back({up.right, up.left});
  }
  return wanted;
}

}  // namespace gopt::generator
