#include "passes/replace_each.h"

namespace gopt::optimizer {

Graph replace_each(const Graph& graph, const Replacements& replacements, ValueMap* became) {
  if (replacements.empty()) return graph;
  auto replaced = replace_values(graph, {replacements.begin(), replacements.end()}, became);
  GOPT_CHECK(replaced.ok(), replaced.error().message);
  return *std::move(replaced);
}

}  // namespace gopt::optimizer
