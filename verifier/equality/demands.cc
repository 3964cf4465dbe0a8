#include "demands.h"

#include <algorithm>

#include "binder_change.h"
#include "match.h"
#include "normal_form/arithmetic.h"
#include "normal_form/expand_functions.h"
#include "real_encoder.h"

namespace gopt::verifier {
namespace {

bool is_binder(AtomId symbol) { return atom(symbol).name.compare(0, 2, "%k") == 0; }

// Where the known demand is made of the value of the wanted one, with its binders at those of the wanted one and its
// other binders, of sums around it, each at one of its lower bounds: in any of these cases.
std::vector<Cond> where_made(const Demand& known, const Demand& wanted, const std::vector<Cond>& given) {
  constexpr size_t kMaxCases = 32;
  Substitution change;
  if (known.text == wanted.text)
    for (size_t i = 0; i < known.binders.size(); i++) change[known.binders[i]] = Index::from_atom(wanted.binders[i]);
  Cond made;
  for (const Cond& literal : conjuncts(substitute(known.context, change)))
    if (std::find(given.begin(), given.end(), literal) == given.end()) made = made && literal;
  std::set<AtomId> symbols;
  collect_symbols(made, symbols);
  std::vector<Cond> cases{made};
  for (AtomId symbol : sorted_by_name({symbols.begin(), symbols.end()})) {
    if (!is_binder(symbol) || std::find(wanted.binders.begin(), wanted.binders.end(), symbol) != wanted.binders.end())
      continue;
    std::vector<Cond> next;
    for (const Cond& one : cases) {
      const std::vector<Index> bounds = lower_bounds(one, symbol);
      for (const Index& bound : bounds)
        if (next.size() < kMaxCases) next.push_back(substitute(one, {{symbol, bound}}));
      if (bounds.empty()) next.push_back(one);
    }
    cases = std::move(next);
  }
  return cases;
}

// Literals of the case that the context does not give; those that hold positions only where `with_positions`.
Cond lacking(const Cond& one, const Cond& context, bool with_positions, ProofState& state) {
  Cond missing;
  for (const Cond& literal : conjuncts(one)) {
    std::set<AtomId> symbols;
    collect_symbols(literal, symbols);
    const bool holds_position =
        std::any_of(symbols.begin(), symbols.end(), [](AtomId s) { return atom(s).name[0] == '%'; });
    if ((with_positions || !holds_position) && !state.solver.entails(context, literal)) missing = missing && literal;
  }
  return missing;
}

// ---- by arithmetic ----

using Relation = RealFact::Relation;

// A number and how it compares with 0.
struct Comparison {
  NormalForm value;
  Relation relation;
};

NormalForm plus_number(const NormalForm& form, int number, ProofState& state) {
  NormalForm r = one();
  r[0].coefficient = number;
  return add(std::move(r), form, state);
}

// What holds of the argument where the demand is met; nothing where that is no comparison with numbers.
std::vector<Comparison> demanded_comparisons(const std::string& function, const NormalForm& x, ProofState& state) {
  if (function == "divisor") return {{x, Relation::NotZero}};
  if (function == "log") return {{x, Relation::Positive}};
  if (function == "sqrt") return {{x, Relation::NotNegative}};
  if (function == "acosh") return {{plus_number(x, -1, state), Relation::NotNegative}};
  const bool is_open = function == "atanh";
  if (!is_open && function != "asin" && function != "acos") return {};
  const Relation relation = is_open ? Relation::Positive : Relation::NotNegative;
  return {{plus_number(x, 1, state), relation}, {plus_number(negated(x), 1, state), relation}};
}

// Comparisons of which each would keep the demand from being met, and one holds if it is not met.
std::vector<Comparison> unmet_comparisons(const Demand& wanted, ProofState& state) {
  // For a power it is enough.
  const std::string function = wanted.function.compare(0, 4, "pow ") == 0 ? "log" : wanted.function;
  std::vector<Comparison> unmet;
  for (Comparison& c : demanded_comparisons(function, wanted.argument, state)) {
    if (c.relation == Relation::NotZero)
      unmet.push_back({std::move(c.value), Relation::Zero});
    else
      unmet.push_back(
          {negated(std::move(c.value)), c.relation == Relation::Positive ? Relation::NotNegative : Relation::Positive});
  }
  return unmet;
}

// Without sums and guards, of which the reals know nothing.
bool is_arithmetic(const NormalForm& form) {
  return std::all_of(form.begin(), form.end(), [](const Summand& term) { return term.guard.is_true(); });
}

// The demands that are made wherever the wanted one is, with its binders in place of their own.
std::vector<Comparison> known_comparisons(const Demand& wanted, const std::vector<Demand>& others, ProofState& state) {
  constexpr size_t kMost = 12;
  std::vector<Comparison> known;
  for (const Demand& other : others) {
    if (other.binders.size() > wanted.binders.size() || known.size() >= kMost) continue;
    Substitution change;
    for (size_t i = 0; i < other.binders.size(); i++) change[other.binders[i]] = Index::from_atom(wanted.binders[i]);
    if (!state.solver.entails(wanted.context, substitute(other.context, change))) continue;
    for (Comparison& c : demanded_comparisons(other.function, substitute(other.argument, change), state))
      if (is_arithmetic(c.value)) known.push_back(std::move(c));
  }
  return known;
}

// Whether none of the comparisons can hold where all that are known do.
bool are_impossible(const std::vector<Comparison>& unmet, const std::vector<Comparison>& known, const Cond& context,
                    ProofState& state) {
  std::vector<NormalForm> values;
  for (const auto* comparisons : {&unmet, &known})
    for (const Comparison& c : *comparisons) values.push_back(c.value);
  values = with_functions_expanded(values, context, state);
  if (!std::all_of(values.begin(), values.end(), is_arithmetic)) return false;
  RealEncoder encode;
  std::vector<RealFact> goals, facts;
  for (size_t i = 0; i < values.size(); i++) {
    if (i < unmet.size())
      goals.push_back({encode(values[i]), unmet[i].relation});
    else
      facts.push_back({encode(values[i]), known[i - unmet.size()].relation});
  }
  for (RealFact& fact : encode.facts(state)) facts.push_back(std::move(fact));
  return std::all_of(goals.begin(), goals.end(), [&](const RealFact& goal) {
    std::vector<RealFact> all = facts;
    all.push_back(goal);
    return state.solver.is_impossible(all);
  });
}

bool is_rational(const NormalForm& form) {
  return std::all_of(form.begin(), form.end(), [](const Summand& term) {
    return std::all_of(term.factors.begin(), term.factors.end(), [](const Factor& f) {
      return f.kind != FactorKind::Call && f.kind != FactorKind::Opaque && f.kind != FactorKind::Literal &&
             f.branches.empty() && std::all_of(f.args.begin(), f.args.end(), is_rational);
    });
  });
}

// The cosine of a rational number, as all that is computed from elements by arithmetic is, is not 0.
bool is_always_met(const Demand& demand) {
  const NormalForm& form = demand.argument;
  return demand.function == "divisor" && form.size() == 1 && form[0].binders.empty() && form[0].factors.size() == 1 &&
         form[0].factors[0].kind == FactorKind::Call && form[0].factors[0].function == Function::Cos &&
         is_rational(form[0].factors[0].args[0]);
}

bool is_met_by_arithmetic(const Demand& wanted, const std::vector<Demand>& others, ProofState& state) {
  if (!is_arithmetic(wanted.argument)) return false;
  const std::vector<Comparison> unmet = unmet_comparisons(wanted, state);
  return !unmet.empty() && are_impossible(unmet, known_comparisons(wanted, others, state), wanted.context, state);
}

// ---- together ----

Cond missing_by_form(const Demand& wanted, const std::vector<Demand>& others, ProofState& state);

// What is missing for the demand to be met by those of the other side; true where nothing is.
Cond missing_for(const Demand& wanted, const std::vector<Demand>& others, ProofState& state) {
  if (is_always_met(wanted)) return Cond();
  const Cond missing = missing_by_form(wanted, others, state);
  return missing.is_true() || !is_met_by_arithmetic(wanted, others, state) ? missing : Cond();
}

Cond missing_by_form(const Demand& wanted, const std::vector<Demand>& others, ProofState& state) {
  const std::vector<Cond> given = conjuncts(wanted.context);
  Cond covered = Cond::never(), first = Cond::never();
  for (const Demand& known : others) {
    if (known.function != wanted.function) continue;
    if (known.text != wanted.text && !are_equal(known.argument, wanted.argument, wanted.context, state)) continue;
    for (const Cond& made : where_made(known, wanted, given)) {
      if (made.is_true()) return made;
      covered = covered || made;
      if (first.is_false()) first = made;
    }
    if (state.solver.entails(wanted.context, covered)) return Cond();
  }
  if (first.is_false()) return first;
  // Sizes alone may be enough, whatever the position is.
  const Cond of_sizes = lacking(first, wanted.context, false, state);
  if (!of_sizes.is_true() && state.solver.entails(wanted.context && of_sizes, covered)) return of_sizes;
  return lacking(first, wanted.context, true, state);
}

// Whether samples decide what becomes of the left side where the demand is not met: it is made of an element as it is,
// so that it fails at 0, or below, which elements of samples are.
bool is_left_to_samples(const Demand& demand) {
  const NormalForm& form = demand.argument;
  const bool is_element = form.size() == 1 && form[0].factors.size() == 1 && form[0].binders.empty() &&
                          form[0].factors[0].kind == FactorKind::Read && form[0].factors[0].exponent == 1;
  return is_element && (demand.function == "divisor" || demand.function == "log" || demand.function == "sqrt");
}

}  // namespace

std::optional<UnmetDemand> find_unmet_demand(ProofState& state) {
  const DemandsSoFar demanded(state);
  const auto &left = demanded.of_left(), &right = demanded.of_right();
  for (const Demand& wanted : right)
    if (const Cond missing = missing_for(wanted, left, state); !missing.is_true())
      return UnmetDemand{"the right side applies a partial function (" + wanted.function + ") where the left does not",
                         missing, false};
  for (const Demand& wanted : left)
    if (const Cond missing = missing_for(wanted, right, state);
        !missing.is_true() && !(missing.is_false() && is_left_to_samples(wanted)))
      return UnmetDemand{"the left side applies a partial function (" + wanted.function + ") where the right does not",
                         missing, true};
  return std::nullopt;
}

bool left_demands_more(ProofState& state) {
  const DemandsSoFar demanded(state);
  const auto &left = demanded.of_left(), &right = demanded.of_right();
  return std::any_of(left.begin(), left.end(),
                     [&](const Demand& wanted) { return missing_for(wanted, right, state).is_false(); });
}

bool is_demanded_not_zero(const NormalForm& value, const Cond& context, ProofState& state) {
  const Demand wanted{"divisor", value, context, "", {}};
  if (is_always_met(wanted)) return true;
  std::vector<Demand> all = state.domains.of_left();
  const std::vector<Demand>& right = state.domains.of_right();
  all.insert(all.end(), right.begin(), right.end());
  const DemandsSoFar demanded(state);
  return !all.empty() && is_met_by_arithmetic(wanted, all, state);
}

bool is_demanded_by_both(const std::string& function, const NormalForm& argument, const Cond& context,
                         ProofState& state) {
  const std::string text = function + " " + key(argument);
  const std::vector<Cond> given = conjuncts(context);
  const Demand wanted{function, argument, context, text, {}};
  auto is_covered = [&](const std::vector<Demand>& demands) {
    Cond covered = Cond::never();
    for (const Demand& known : demands)
      if (known.text == text)
        for (const Cond& made : where_made(known, wanted, given)) covered = covered || made;
    return !covered.is_false() && state.solver.entails(context, covered);
  };
  return is_covered(state.domains.of_left()) && is_covered(state.domains.of_right());
}

}  // namespace gopt::verifier
