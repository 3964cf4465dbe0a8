#include "output_proof.h"

#include <algorithm>
#include <memory>

#include "conditions/condition_parts.h"
#include "equality/demands.h"
#include "equality/match.h"
#include "normal_form/normal_form.h"
#include "normal_form/normalize.h"
#include "normal_form/simplify.h"
#include "output_position.h"
#include "solve_equations.h"

namespace gopt::verifier {

// Both sides of an output, its subscripts written in one way.
struct OutputProver::Attempt {
  ProofLog::Place place;
  Cond given;
  std::unique_ptr<ProofState> state;
  Expr left_value, right_value;
  NormalForm left, right;
  size_t divisions = 0;
};

bool OutputProver::prove(size_t output, const Cond& part) {
  // Case by case first: equations are solved, which an "or" does not let them be.
  if (const std::vector<Cond> cases = cases_of_equations(part); cases.size() > 1)
    return std::all_of(cases.begin(), cases.end(), [&](const Cond& c) { return prove_in(output, c); }) ||
           prove_in(output, part);
  if (prove_in(output, part)) return true;
  const std::set<AtomId> extents = extent_symbols(task_.rule);
  Cond full = part;
  for (AtomId s : extents) full = full && at_least(Index::from_atom(s), Index(1));
  try {
    // Where a direct proof fails with all extents positive, emptiness is not what stands in the way.
    if (!prove_in(output, full)) return false;
    return std::all_of(extents.begin(), extents.end(),
                       [&](AtomId s) { return prove_in(output, part && equal(Index::from_atom(s), Index(0))); });
  } catch (const NotExpressible&) {
    return false;
  }
}

bool OutputProver::prove_in(size_t output, const Cond& part) {
  const Substitution solved = solve_equations(part);
  // What the rule itself states is a hypothesis like the left side's; its equations are solved where that is not
  // enough, or at once where fewer divisions are left then.
  if (!(part == task_.rule.condition)) return prove_box(output, part, {}, solved);
  if (solved.empty()) return prove_box(output, part, {}, {});
  if (divisions_left(output, solved) < divisions_left(output, {}))
    return prove_box(output, part, {}, solved) || prove_box(output, part, {}, {});
  return prove_box(output, part, {}, {}) || prove_box(output, part, {}, solved);
}

std::vector<Index> OutputProver::subscripts_of(size_t output) const {
  std::vector<Index> subscripts;
  for (size_t axis = 0; axis < task_.left.outputs[output].shape.size(); axis++)
    subscripts.push_back(symbol("%o" + std::to_string(output) + "_" + std::to_string(axis)));
  return subscripts;
}

// In both sides' expressions, with equations solved.
size_t OutputProver::divisions_left(size_t output, const Substitution& solved) const {
  std::vector<Index> divisors;
  for (const SideMeaning* side : {&task_.left, &task_.right})
    collect_divisors(substitute(side->outputs[output].at(subscripts_of(output)), solved), divisors);
  return divisors.size();
}

// Whether everything that divides still means something then.
bool OutputProver::can_solve(size_t output, const Cond& part, const Substitution& solved) const {
  std::vector<Index> divisors;
  collect_divisors(task_.context(part), divisors);
  for (const Index& extent : task_.left.outputs[output].shape) collect_divisors(extent, divisors);
  for (const SideMeaning* side : {&task_.left, &task_.right})
    collect_divisors(side->outputs[output].at(subscripts_of(output)), divisors);
  return can_substitute(divisors, solved);
}

bool OutputProver::prove_box(size_t output, const Cond& part, const Box& box, const Substitution& solved) {
  if (!solved.empty() && !can_solve(output, part, solved)) return prove_box(output, part, box, {});
  task_.solver.set_topic("output " + std::to_string(output) + " is equal");
  const Cond assumed = substitute(task_.context(part), solved);
  Shape shape = task_.left.outputs[output].shape;
  for (Index& extent : shape) extent = substitute(extent, solved);
  std::vector<Attempt> later;
  for (int choice = factor_choices(shape) - 1; choice >= -1; choice--) {
    const OutputPosition position = position_of(shape, output, choice);
    if (!are_sizes(position.factors, assumed)) continue;
    Attempt a{{output, position.subscripts, solved}, assumed && position.range, nullptr, {}, {}, {}, {}};
    for (size_t axis = 0; axis < box.size(); axis++)
      a.given = a.given && within(position.subscripts[axis], substitute(box[axis].low, solved),
                                  substitute(box[axis].high, solved));
    if (task_.solver.is_infeasible(a.given)) {
      if (task_.options.keep_log) task_.log.empty(a.place, a.given);
      return true;
    }
    a.left_value = substitute(task_.left.outputs[output].at(position.subscripts), solved);
    a.right_value = substitute(task_.right.outputs[output].at(position.subscripts), solved);
    normalize_sides(a);
    if (a.divisions > 0) {
      later.push_back(std::move(a));
    } else if (conclude(a, part)) {
      return true;
    }
  }
  // The fewer divisions are left, the more is understood.
  std::stable_sort(later.begin(), later.end(),
                   [](const Attempt& a, const Attempt& b) { return a.divisions < b.divisions; });
  return std::any_of(later.begin(), later.end(), [&](Attempt& a) { return conclude(a, part); });
}

void OutputProver::normalize_sides(Attempt& a) {
  a.state = std::make_unique<ProofState>(ProofState{task_.solver,
                                                    {},
                                                    {},
                                                    task_.booleans,
                                                    task_.is_integral,
                                                    false,
                                                    task_.options.keep_log ? &task_.log : nullptr,
                                                    a.given});
  a.left = normalize(a.left_value, a.given, *a.state);
  a.state->domains.start_right_side();
  a.right = normalize(a.right_value, a.given, *a.state);
  a.divisions = count_divisions(a.left) + count_divisions(a.right);
}

bool OutputProver::are_sizes(const std::vector<Index>& factors, const Cond& assumed) {
  const std::vector<Cond> said = conjuncts(assumed);
  return std::all_of(factors.begin(), factors.end(), [&](const Index& factor) {
    const Cond is_size = at_least(factor, Index(0));
    return is_size.is_true() || std::find(said.begin(), said.end(), is_size) != said.end() ||
           task_.solver.entails(assumed, is_size);
  });
}

bool OutputProver::conclude(Attempt& attempt, const Cond& part) {
  if (!meets_demands(*attempt.state, part)) return false;
  attempt.state->sides_are_defined = true;
  if (!are_equal(attempt.left, attempt.right, attempt.given, *attempt.state)) return false;
  left_demands_more_ = left_demands_more_ || verifier::left_demands_more(*attempt.state);
  if (task_.options.keep_log)
    task_.log.output(attempt.place, attempt.given, attempt.left_value, attempt.left, attempt.right_value,
                     attempt.right);
  return true;
}

// Whether the sides apply partial functions to the same values (demands.h). Where that is so under a condition on the
// rule's symbols, the condition is kept.
bool OutputProver::meets_demands(ProofState& state, const Cond& part) {
  const auto unmet = find_unmet_demand(state);
  if (!unmet) return true;
  const std::vector<AtomId> symbols = rule_symbols(task_.rule);
  const bool is_condition = !unmet->missing.is_false() && is_over(unmet->missing, {symbols.begin(), symbols.end()}) &&
                            task_.solver.is_satisfiable(task_.context(part) && task_.interior() && unmet->missing);
  if (is_condition) {
    missing_ = unmet->missing;
  } else {
    reason_ = unmet->what;
    left_alone_is_partial_ = unmet->is_of_left;
  }
  return false;
}

}  // namespace gopt::verifier
