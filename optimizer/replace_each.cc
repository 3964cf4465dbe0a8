#include "replace_each.h"

#include <algorithm>

namespace gopt::optimizer {

Graph replace_each(const Graph& graph, std::vector<std::pair<Value, Value>> replacements) {
  std::stable_sort(replacements.begin(), replacements.end(),
                   [&](const auto& a, const auto& b) { return graph.id_of(a.first.node) > graph.id_of(b.first.node); });
  Graph result = graph;
  for (const auto& [key, value] : replacements) {
    if (!result.contains(key.node)) continue;
    auto replaced = replace_values(result, {{key, value}});
    GOPT_CHECK(replaced.ok(), replaced.error().message);
    result = *std::move(replaced);
  }
  return result;
}

}  // namespace gopt::optimizer
