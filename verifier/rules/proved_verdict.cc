#include "proved_verdict.h"

#include <algorithm>
#include <stdexcept>

#include "conditions/condition_parts.h"
#include "required_condition.h"
#include "samples/float_marks.h"

namespace gopt::verifier {
namespace {

// They follow from the condition as it came to be stated, which was put together and shortened since they were asked
// for. Nothing rests on it but the record.
void state_requirements(ProofTask& task, const Cond& condition) {
  const Cond given = task.context(condition);
  const std::vector<Cond> said = conjuncts(given);
  task.solver.set_share(task.solver.limits().rule.share_of_statements);
  try {
    for (const auto& [what, cond] : task.requirements()) {
      const std::vector<Cond> parts = conjuncts(cond);
      if (std::all_of(parts.begin(), parts.end(),
                      [&](const Cond& part) { return std::find(said.begin(), said.end(), part) != said.end(); }))
        continue;
      task.solver.set_topic("under the condition as it is stated: " + what);
      follows(task, given, cond);
    }
  } catch (const std::overflow_error&) {
    // The record says less; the proof stands.
  }
  task.solver.set_share(1);
}

// Without parts that follow from the others and from what is given wherever the rule may be applied, longest first.
// What the rule itself states stays as it is written.
Cond without_implied_parts(ProofTask& task, const Cond& condition) {
  Cond given = variable_domain(task.rule) && task.rule.condition;
  for (const Requirement& r : task.left.requirements)
    if (!r.from_broadcast) given = given && r.cond;
  std::vector<Cond> parts = parts_of(condition);
  const std::vector<Cond> own = parts_of(task.rule.condition);
  std::erase_if(parts, [&](const Cond& part) { return std::find(own.begin(), own.end(), part) != own.end(); });
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Cond& a, const Cond& b) { return to_string(a).size() > to_string(b).size(); });
  task.solver.set_topic("a part of the condition is implied");
  task.solver.set_share(task.solver.limits().rule.share_of_shortening);
  for (size_t i = 0; i < parts.size();) {
    Cond others;
    for (size_t j = 0; j < parts.size(); j++)
      if (j != i) others = others && parts[j];
    if (task.solver.entails(given && others, parts[i]))
      parts.erase(parts.begin() + static_cast<ptrdiff_t>(i));
    else
      i++;
  }
  task.solver.set_share(1);
  Cond r = task.rule.condition;
  for (const Cond& part : parts) r = r && part;
  return r;
}

}  // namespace

Verification proved_under(ProofTask& task, Cond condition) {
  if (!(condition == task.rule.condition)) {
    condition = without_implied_parts(task, condition);
    state_requirements(task, condition);
  }
  if (task.options.keep_log)
    for (const auto& [what, cond] : task.requirements()) task.log.required(what, task.context(condition), cond);
  Verification v;
  v.verdict = Verdict::Proved;
  v.condition = condition;
  v.conditions = conjuncts(condition);
  ObservedMarks observed = observed_marks(task.rule, task.left, task.right, condition, task.options.seed + 1);
  // The sides of a partial rule differ by more than rounding.
  if (!task.rule.is_partial())
    observe_range(task.rule, task.left, task.right, condition, task.options.mark_samples, task.options.seed + 5,
                  observed);
  v.marks = observed.marks;
  v.mark_examples = std::move(observed.examples);
  return v;
}

}  // namespace gopt::verifier
