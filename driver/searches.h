// The searches of one optimization: over the whole rules, without what was found to be wrong, without what is idle.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "gopt/confirm_rule.h"
#include "guilty_rewrites.h"
#include "kernel_timing.h"

namespace gopt::driver {

// Names of the rules that the result applied.
std::set<std::string> applied_rules(const OptimizeResult& result);

class Searches {
 public:
  // All have to outlive it. `costs` are what the kernels' times become costs by.
  Searches(const Graph& graph, const std::vector<RewriteRule>& rules, const DriverOptions& options,
           const CostSource& costs, KernelTiming& kernels, PhaseClock& clock);
  Searches(const Searches&) = delete;
  Searches& operator=(const Searches&) = delete;

  // What is found within the budget of a search. With measured costs it is searched again as long as the result has
  // kernels that were never timed; then rules that bring nothing beside the others are left out. What a search came to
  // is kept with the times, and done again where the same is asked for. Errors: those of optimize().
  Result<OptimizeResult> best();
  Result<OptimizeResult> passes_alone();
  // What the other rules of this result come to, in a quarter of the budget.
  Result<OptimizeResult> without(const std::string& rule, const OptimizeResult& result);
  // The rules that the result applied; first those that gained most by estimate, which weigh most where that is wrong.
  static std::vector<std::string> most_promising_first(const OptimizeResult& result);
  // Those of the result's rules and passes that make the difference, as far as a few searches with some of them tell;
  // else all of its rules.
  Result<GuiltyRewrites> what_differs(const OptimizeResult& result,
                                      const std::function<Result<bool>(const OptimizeResult&)>& differs);
  // In all searches from now on.
  void leave_out(const GuiltyRewrites& guilty);

  // Whatever the searches went by: costs of plans.
  void tell_costs_of_plans(OptimizeResult& result) const;

  // Of all searches so far.
  const std::map<std::string, ProofRecord>& proofs() const { return proofs_; }
  const std::vector<RefusedRule>& refused() const { return refused_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::optional<std::string> why_refused(const RewriteRule& rule);
  void note_refused(const OptimizeResult& result);
  bool is_stopped() const { return search_.stop && *search_.stop; }
  bool compares_sums() const;
  std::unique_ptr<CostOracle> oracle(double unknown_factor) const;
  Result<OptimizeResult> search_with(const std::vector<RewriteRule>& rules, SearchOptions search, double unknown_factor,
                                     double seconds);
  Result<OptimizeResult> search_without(const std::string& rule, const OptimizeResult& result, double seconds);
  Result<OptimizeResult> search_in_rounds();
  Result<OptimizeResult> best_by_searching();
  std::optional<OptimizeResult> done_again(const std::string& signature);
  void keep_known(const std::string& signature, const OptimizeResult& result);
  bool is_as_estimated(OptimizeResult& result) const;
  Result<OptimizeResult> with_times(OptimizeResult found);
  Status leave_out_idle_rules(OptimizeResult& best);
  Status keep_few_nodes(OptimizeResult& best);

  const Graph& graph_;
  const std::vector<RewriteRule>& rules_;
  const DriverOptions& options_;
  const CostSource& costs_;
  KernelTiming& kernels_;
  PhaseClock& clock_;
  SearchOptions search_;
  RuleConfirmer confirmer_;
  double seconds_left_ = 0;  // of the budget
  std::map<std::string, ProofRecord> proofs_;
  std::vector<RefusedRule> refused_;
  std::vector<std::string> notes_;
};

}  // namespace gopt::driver
