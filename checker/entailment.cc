#include "entailment.h"

#include <algorithm>

namespace gopt::checker {
namespace {

bool is_comparison(const Condition& c) { return c.kind == Condition::Kind::AtLeastZero; }

// What the context says is 0.
std::vector<Poly> equations_of(const Condition& context) {
  std::set<std::string> seen;
  std::vector<Poly> equations;
  for (const Condition& c : context.conjuncts()) {
    if (!is_comparison(c)) continue;
    if (seen.count((Poly(0) - c.poly).text())) equations.push_back(c.poly);
    seen.insert(c.poly.text());
  }
  return equations;
}

// Whether the goal compares what is 0, or a number, where the context's equations hold.
bool follows_from_equations(const Condition& context, const Condition& goal) {
  if (!is_comparison(goal)) return false;
  Poly rest = goal.poly;
  for (const Poly& equation : equations_of(context)) {
    if (is_multiple(goal.poly, equation)) return true;
    rest = reduced(rest, equation);
  }
  const auto number = rest.constant();
  return number && *number >= 0;
}

}  // namespace

bool Entailment::implied(const Hypotheses& hypotheses, const Condition& goal) {
  const std::string text = goal.text();
  if (text == "true" || hypotheses.count(text) || hypotheses.count("false")) return true;
  if (const auto found = steps_.implications.find(text); found != steps_.implications.end()) {
    for (const Implication& i : found->second) {
      if (!includes(hypotheses, i.hypotheses)) continue;
      use(i);
      return true;
    }
  }
  if (goal.kind != Condition::Kind::And) return false;
  return std::all_of(goal.parts.begin(), goal.parts.end(),
                     [&](const Condition& part) { return implied(hypotheses, part); });
}

bool Entailment::implied_by_cases(const Condition& context, const Condition& goal, int depth) {
  constexpr int kMaxDepth = 4;
  if (implied(hypotheses_of(context), goal) || follows_from_equations(context, goal)) return true;
  if (goal.kind == Condition::Kind::And)
    return std::all_of(goal.parts.begin(), goal.parts.end(),
                       [&](const Condition& part) { return implied_by_cases(context, part, depth); });
  if (depth == kMaxDepth) return false;
  std::vector<Condition> parts = context.conjuncts();
  const auto choice =
      std::find_if(parts.begin(), parts.end(), [](const Condition& c) { return c.kind == Condition::Kind::Or; });
  if (choice == parts.end()) return false;
  const std::vector<Condition> cases = choice->parts;
  parts.erase(choice);
  const Condition others{Condition::Kind::And, {}, parts};
  return std::all_of(cases.begin(), cases.end(),
                     [&](const Condition& own) { return implied_by_cases(conjunction(others, own), goal, depth + 1); });
}

bool Entailment::sum_to_zero(const Condition& context, const Counts& counts) {
  const auto found = steps_.cancellations.find(key_of(counts));
  if (found == steps_.cancellations.end()) return false;
  const Hypotheses hypotheses = hypotheses_of(context);
  for (const Cancellation& c : found->second) {
    if (!includes(hypotheses, c.hypotheses)) continue;
    use(c);
    return true;
  }
  return false;
}

// A question that a step rests on; before it is left to a solver, small numbers may refute it.
void Entailment::use(const Implication& step) {
  if (!used_.insert(&step).second) return;
  numbers_.try_to_refute(step);
  report_.obligations.push_back({step.what, smt_of_implication(step.context, step.goal)});
}
void Entailment::use(const Cancellation& step) {
  if (!used_.insert(&step).second) return;
  numbers_.try_to_refute(step);
  report_.obligations.push_back({step.what, smt_of_cancellation(step.context, step.counts)});
}

}  // namespace gopt::checker
