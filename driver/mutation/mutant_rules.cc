#include "mutation/mutant_rules.h"

#include <algorithm>

#include "gopt/clock.h"
#include "onnx_target.h"
#include "planned_graph.h"

namespace gopt::driver {

Result<FoundMutants> mutants_of(const Graph& graph, const std::vector<RewriteRule>& rules,
                                const DriverOptions& options) {
  constexpr double kForKnownRules = 0.25;
  const auto start = Clock::now();
  const CostSource costs = analytic_costs(graph);
  SearchOptions search = options.search;
  search.improved = {};
  search.budget_seconds = std::min(search.budget_seconds, kForKnownRules * options.mutation_seconds);
  const auto oracle = make_oracle(options.target, costs, 1);
  GOPT_ASSIGN_OR_RETURN(const OptimizeResult known, optimize(graph, rules, *oracle, search));
  PlannedGraph planned(known.graph, options.target, costs);
  GOPT_ASSIGN_OR_RETURN(const Plan* plan, planned.plan());
  MutantOptions mutation;
  mutation.seconds = options.mutation_seconds - seconds_since(start);
  mutation.threads = options.search.workers;
  mutation.stop = options.search.stop;
  mutation.progress = options.search.progress;
  FoundMutants found = find_mutants(*plan, rules, mutation);
  if (options.only_unmarked_mutants)
    std::erase_if(found.rules, [](const RewriteRule& rule) { return rule.marks != RuleMarks(); });
  found.seconds = seconds_since(start);
  return found;
}

}  // namespace gopt::driver
