#include "required_condition.h"

#include "conditions/condition_parts.h"
#include "conditions/condition_search.h"
#include "normal_form/normal_form.h"
#include "solve_equations.h"

namespace gopt::verifier {

bool follows(ProofTask& task, const Cond& given, const Cond& cond) {
  if (!cond.is_true() && without_nested_divisions(cond, given, task.solver).is_true()) {
    if (task.options.keep_log) task.log.entailed("divisions within divisions are one", given, cond);
    return true;
  }
  return task.solver.entails(given, cond);
}

namespace {

// Adds the requirement to the condition unless it follows.
std::optional<Verification> require(ProofTask& task, Cond& condition, const Cond& cond, const std::string& what,
                                    const SamplingResult& samples) {
  if (follows(task, task.context(condition), cond)) return std::nullopt;
  if (cond.is_false()) return refuted_verdict(what + ": never", samples.right_undefined);
  const std::vector<AtomId> symbols = rule_symbols(task.rule);
  if (!is_over(cond, {symbols.begin(), symbols.end()}))
    return unknown_verdict(what + ": " + to_string(cond) + " cannot be a condition");
  Cond possible;
  for (const Cond& part : conjuncts(with_products_solved(cond))) {
    Cond any = Cond::never();
    for (const Cond& choice : part.kind() == CondKind::Or ? part.parts() : std::vector<Cond>{part})
      if (part.kind() != CondKind::Or || !task.solver.is_infeasible(task.context(condition) && choice))
        any = any || choice;
    possible = possible && any;
  }
  condition = condition && possible;
  return std::nullopt;
}

}  // namespace

RequiredCondition require_what_is_missing(ProofTask& task, Cond condition, const SamplingResult& samples) {
  for (const Requirement& r : task.left.requirements)
    if (r.from_broadcast && !task.solver.entails(variable_domain(task.rule) && condition, r.cond))
      condition = condition && r.cond;
  for (const Requirement& r : task.right.requirements) {
    task.solver.set_topic("the right side is defined: " + r.what);
    if (auto verdict = require(task, condition, r.cond, r.what, samples)) return {condition, verdict};
  }
  for (size_t o = 0; o < task.left.outputs.size(); o++) {
    for (size_t axis = 0; axis < task.left.outputs[o].shape.size(); axis++) {
      const std::string what = "shapes of output " + std::to_string(o) + " agree on axis " + std::to_string(axis);
      task.solver.set_topic(what);
      if (auto verdict =
              require(task, condition, equal(task.left.outputs[o].shape[axis], task.right.outputs[o].shape[axis]), what,
                      samples))
        return {condition, verdict};
    }
  }
  return {condition, std::nullopt};
}

Cond in_plainer_words(ProofTask& task, const Cond& condition) {
  std::vector<Index> divisors;
  collect_divisors(condition, divisors);
  if (divisors.empty() || task.options.samples == 0) return condition;
  const auto derived = derive_condition(task.rule, task.left, task.right, {}, task.options.seed);
  if (!derived) return condition;
  const Cond plain = task.rule.condition && derived->condition();
  divisors.clear();
  collect_divisors(plain, divisors);
  for (const Index& divisor : divisors)
    if (!divisor.is_constant()) return condition;
  task.solver.set_topic("the condition in plainer words");
  // A product of more sizes is no plainer, and no equation to be solved.
  if (to_string(plain).size() < to_string(condition).size() && degree(plain) <= degree(condition) &&
      task.solver.entails(task.context(plain), condition) && task.solver.entails(task.context(condition), plain)) {
    // What is required is looked for part by part.
    if (task.options.keep_log)
      for (const Cond& part : parts_of(condition)) task.log.entailed("a part of that", task.context(plain), part);
    return plain;
  }
  return condition;
}

}  // namespace gopt::verifier
