#include "replace_each.h"

namespace gopt::optimizer {

Graph replace_each(const Graph& graph, const std::vector<std::pair<Value, Value>>& replacements) {
  if (replacements.empty()) return graph;
  auto replaced = replace_values(graph, {replacements.begin(), replacements.end()});
  GOPT_CHECK(replaced.ok(), replaced.error().message);
  return *std::move(replaced);
}

}  // namespace gopt::optimizer
