#include "applicability.h"

namespace gopt::verifier {
namespace {

// A rule that never applies is refuted; but extents that are broadcast are taken to be equal here, and one of them may
// be 1.
Verification never_applies(ProofTask& task, const std::string& why, const std::optional<Counterexample>& example) {
  for (const SideMeaning* side : {&task.left, &task.right})
    for (const Requirement& r : side->requirements)
      if (r.from_broadcast && !task.solver.entails(variable_domain(task.rule) && task.rule.condition, r.cond))
        return unknown_verdict(why + ", where extents that are broadcast are equal; for one that is 1, write 1");
  return refuted_verdict(why, example);
}

// The first requirement of the left side that the condition and those before it leave no sizes for.
std::string why_never_defined(ProofTask& task, const Cond& condition) {
  Cond all = variable_domain(task.rule) && condition;
  if (task.solver.is_infeasible(all)) return "no sizes satisfy the condition";
  for (const Requirement& r : task.left.requirements) {
    all = all && r.cond;
    if (task.solver.is_infeasible(all)) return "it requires that " + r.what;
  }
  return "no sizes satisfy what it requires";
}

}  // namespace

std::optional<Verification> judge_left_side(ProofTask& task, const Cond& condition, const SamplingResult& samples) {
  if (samples.left_valid > 0) return std::nullopt;
  task.solver.set_topic("the left side is defined somewhere");
  task.solver.set_share(task.solver.limits().rule.share_of_sizes);
  const bool is_defined = task.solver.is_satisfiable(task.context(condition));
  const bool is_never = !is_defined && task.solver.is_infeasible(task.context(condition));
  const std::string why = is_never ? why_never_defined(task, condition) : "";
  task.solver.set_share(1);
  if (is_defined) return std::nullopt;
  if (is_never) return never_applies(task, "the left side is never defined: " + why, std::nullopt);
  return unknown_verdict("no sizes were found that satisfy the condition and what the left side requires");
}

std::optional<Verification> judge_condition(ProofTask& task, const Cond& condition, const SamplingResult& samples) {
  const bool is_its_own = task.rule.condition == condition;
  task.solver.set_topic("some tensors have elements");
  task.solver.set_share(task.solver.limits().rule.share_of_sizes);
  bool is_met = task.solver.is_satisfiable(task.context(condition) && task.interior());
  Cond wanted = task.interior();
  if (!is_met && (is_its_own || task.solver.is_infeasible(task.context(task.rule.condition) && task.interior()))) {
    wanted = task.some_output_has_elements();
    is_met = task.solver.is_satisfiable(task.context(condition) && wanted);
  }
  const bool is_never = !is_met && task.solver.is_infeasible(task.context(condition) && wanted);
  task.solver.set_share(1);
  if (is_met) return std::nullopt;
  if (!is_never)
    return unknown_verdict("no sizes were found that satisfy the condition and leave tensors with elements");
  if (is_its_own) return refuted_verdict("the condition leaves nothing but empty tensors", samples.never_finite);
  return never_applies(task, "the right side is undefined, or of another shape, wherever the left side has elements",
                       samples.right_undefined);
}

}  // namespace gopt::verifier
