// Which of the rules and passes that made a graph are those that make it differ from its original.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gopt/optimizer.h"

namespace gopt::driver {

// Rules that the result applied and passes that changed something, each once, in order.
std::vector<std::string> what_made(const OptimizeResult& result);

// Rules of these names, and the options of a search with them alone, in which those that were asked for by name still
// are.
struct SearchAmong {
  std::vector<RewriteRule> rules;
  SearchOptions options;
};
SearchAmong search_among(const std::vector<std::string>& names, const std::vector<RewriteRule>& rules,
                         SearchOptions options);

// The graph rewritten by these of its rules and passes alone. Errors: those of optimize().
Result<OptimizeResult> rewrite_with(const Graph& graph, const std::vector<std::string>& rules_and_passes,
                                    const std::vector<RewriteRule>& rules, CostOracle& costs,
                                    const SearchOptions& options);

struct GuiltyRewrites {
  std::vector<std::string> rules, passes;  // both empty where the suspects together make no difference
  int searches = 0;
  bool is_smallest = true;  // else the searches were used up before

  bool empty() const { return rules.empty() && passes.empty(); }
};

// `differs` is asked about graphs that some of `suspects` made. Errors: its own, those of optimize().
Result<GuiltyRewrites> find_guilty(const Graph& graph, const std::vector<std::string>& suspects,
                                   const std::vector<RewriteRule>& rules, CostOracle& costs,
                                   const SearchOptions& options,
                                   const std::function<Result<bool>(const OptimizeResult&)>& differs,
                                   int most_searches);

}  // namespace gopt::driver
