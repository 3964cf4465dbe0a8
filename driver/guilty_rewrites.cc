#include "guilty_rewrites.h"

#include <algorithm>

#include "delta_debugging.h"
#include "gopt/contains.h"

namespace gopt::driver {
namespace {

GuiltyRewrites split(const std::vector<std::string>& rules_and_passes) {
  GuiltyRewrites found;
  for (const std::string& name : rules_and_passes)
    (contains(pass_names(), name) ? found.passes : found.rules).push_back(name);
  return found;
}

}  // namespace

std::vector<std::string> what_made(const OptimizeResult& result) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (!contains(names, name)) names.push_back(name);
  };
  for (const AppliedRule& applied : result.applied) add(applied.rule);
  for (const PassNote& note : result.passes)
    if (note.changed && contains(pass_names(), note.pass)) add(note.pass);
  return names;
}

SearchAmong search_among(const std::vector<std::string>& names, const std::vector<RewriteRule>& rules,
                         SearchOptions options) {
  SearchAmong some{{}, std::move(options)};
  for (const RewriteRule& rule : rules)
    if (contains(names, rule.name)) some.rules.push_back(rule);
  some.options.disabled_rules.clear();
  std::erase_if(some.options.enabled_rules, [&](const std::string& name) { return !contains(names, name); });
  if (some.rules.empty()) some.options.search = SearchKind::None;
  return some;
}

Result<OptimizeResult> rewrite_with(const Graph& graph, const std::vector<std::string>& rules_and_passes,
                                    const std::vector<RewriteRule>& rules, CostOracle& costs,
                                    const SearchOptions& options) {
  SearchAmong some = search_among(rules_and_passes, rules, options);
  for (const std::string& pass : pass_names())
    if (!contains(rules_and_passes, pass)) some.options.disabled_passes.push_back(pass);
  return optimize(graph, some.rules, costs, some.options);
}

Result<GuiltyRewrites> find_guilty(const Graph& graph, const std::vector<std::string>& suspects,
                                   const std::vector<RewriteRule>& rules, CostOracle& costs,
                                   const SearchOptions& options,
                                   const std::function<Result<bool>(const OptimizeResult&)>& differs,
                                   int most_searches) {
  const FailsWith fails = [&](const std::vector<std::string>& some) -> Result<bool> {
    GOPT_ASSIGN_OR_RETURN(const OptimizeResult result, rewrite_with(graph, some, rules, costs, options));
    return differs(result);
  };
  if (suspects.empty()) return GuiltyRewrites{};
  GOPT_ASSIGN_OR_RETURN(const bool is_reproduced, fails(suspects));
  if (!is_reproduced) return GuiltyRewrites{.searches = 1};
  GOPT_ASSIGN_OR_RETURN(const SmallestFailing smallest, smallest_failing(suspects, fails, most_searches - 1));
  GuiltyRewrites found = split(smallest.items);
  found.searches = smallest.tests + 1;
  found.is_smallest = smallest.is_smallest;
  return found;
}

}  // namespace gopt::driver
