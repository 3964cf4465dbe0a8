#include "pruning.h"

namespace taso_generator {

Pruning::Pruning(const std::vector<Operator>& operators) {
  for (const Operator& op : operators) inputs_.push_back(op.inputs());
}

// One operator with the same variables, which the sides could share.
bool Pruning::share(const Application& a, const Application& b) const {
  if (a.op != b.op) return false;
  for (size_t k = 0; k < static_cast<size_t>(inputs_[a.op]); k++)
    if (!(a.inputs[k] == b.inputs[k]) || !a.inputs[k].is_variable()) return false;
  return true;
}
// The last operators are one with at most one input that is not the same variable.
bool Pruning::end_alike(const Application& a, const Application& b) const {
  if (a.op != b.op) return false;
  int different = 0;
  for (size_t k = 0; k < static_cast<size_t>(inputs_[a.op]); k++)
    different += a.inputs[k].source != b.inputs[k].source || !a.inputs[k].is_variable();
  return different <= 1;
}
int Pruning::first_use(const Graph& graph, int variable) const {
  int place = 0;
  for (size_t i = 0; i < graph.count; i++)
    for (size_t k = 0; k < static_cast<size_t>(inputs_[graph.applications[i].op]); k++, place++)
      if (graph.applications[i].inputs[k].source == variable) return place;
  return place;
}
// Variables of the larger sorts are used in the order of their names.
bool Pruning::is_in_order(const Graph& graph) const {
  for (int first : {-1, -4, -7, -10})
    if (first_use(graph, first) > first_use(graph, first - 1) ||
        first_use(graph, first - 1) > first_use(graph, first - 2))
      return false;
  return true;
}
bool Pruning::is_kept(const Graph& a, const Graph& b) const {
  for (size_t i = 0; i < a.count; i++)
    for (size_t j = 0; j < b.count; j++)
      if (share(a.applications[i], b.applications[j])) return false;
  if (end_alike(a.applications[a.count - 1U], b.applications[b.count - 1U])) return false;
  return is_in_order(a) || is_in_order(b);
}

bool Pruning::matches(const Graph& general, const Graph& special, Substitution& images) const {
  if (general.count != special.count) return false;
  for (size_t i = 0; i < general.count; i++) {
    const Application &g = general.applications[i], &s = special.applications[i];
    if (g.op != s.op) return false;
    for (size_t k = 0; k < static_cast<size_t>(inputs_[g.op]); k++) {
      const Ref &from = g.inputs[k], &to = s.inputs[k];
      if (!from.is_variable() || !to.is_variable()) {
        if (!(from == to)) return false;
        continue;
      }
      int8_t& image = images[static_cast<size_t>(-from.source)];
      if (image != 0 && image != to.source) return false;
      image = to.source;
    }
  }
  return true;
}
bool Pruning::is_instance(const Graph& source, const Graph& target, const Graph& own_source,
                          const Graph& own_target) const {
  Substitution images{};
  return matches(source, own_source, images) && matches(target, own_target, images);
}

}  // namespace taso_generator
