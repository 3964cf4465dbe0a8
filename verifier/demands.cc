#include "demands.h"

#include <algorithm>

#include "match.h"

namespace gopt {
namespace {

bool is_binder(AtomId symbol) { return atom(symbol).name.compare(0, 2, "%k") == 0; }

// The lower bound that the literals state of the binder.
std::optional<Index> lower_bound(const Cond& cond, AtomId binder) {
  for (const Cond& literal : conjuncts(cond)) {
    if (literal.kind() != CondKind::NonNegative) continue;
    const auto split = split_linear(literal.index(), binder);
    if (split && split->coefficient == 1) return -split->rest;
  }
  return std::nullopt;
}

// Where the known demand is made of the value of the wanted one, with its binders at those of the wanted one and its
// other binders, of sums around it, each at its lower bound.
Cond where_made(const Demand& known, const Demand& wanted, const std::vector<Cond>& given) {
  Substitution change;
  if (known.text == wanted.text)
    for (size_t i = 0; i < known.binders.size(); i++) change[known.binders[i]] = Index::from_atom(wanted.binders[i]);
  Cond made;
  for (const Cond& literal : conjuncts(substitute(known.context, change)))
    if (std::find(given.begin(), given.end(), literal) == given.end()) made = made && literal;
  std::set<AtomId> symbols;
  collect_symbols(made, symbols);
  for (AtomId symbol : symbols) {
    if (!is_binder(symbol) || std::find(wanted.binders.begin(), wanted.binders.end(), symbol) != wanted.binders.end())
      continue;
    if (const auto bound = lower_bound(made, symbol)) made = substitute(made, {{symbol, *bound}});
  }
  return made;
}

// What is missing for the demand to be met by those of the other side; true where nothing is.
Cond missing_for(const Demand& wanted, const std::vector<Demand>& others, ProofState& state) {
  const std::vector<Cond> given = conjuncts(wanted.context);
  Cond covered = Cond::never(), first = Cond::never();
  for (const Demand& known : others) {
    if (known.function != wanted.function) continue;
    if (known.text != wanted.text && !are_equal(known.argument, wanted.argument, wanted.context, state)) continue;
    const Cond made = where_made(known, wanted, given);
    if (made.is_true()) return made;
    covered = covered || made;
    if (first.is_false()) first = made;
    if (state.solver.entails(wanted.context, covered)) return Cond();
  }
  Cond missing;
  for (const Cond& literal : conjuncts(first))
    if (!state.solver.entails(wanted.context, literal)) missing = missing && literal;
  return missing;
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
  const auto &left = state.domains.of_left(), &right = state.domains.of_right();
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
  const auto &left = state.domains.of_left(), &right = state.domains.of_right();
  return std::any_of(left.begin(), left.end(),
                     [&](const Demand& wanted) { return missing_for(wanted, right, state).is_false(); });
}

bool is_demanded_by_both(const std::string& function, const NormalForm& argument, const Cond& context,
                         ProofState& state) {
  const std::string text = function + " " + key(argument);
  const std::vector<Cond> given = conjuncts(context);
  const Demand wanted{function, argument, context, text, {}};
  auto is_covered = [&](const std::vector<Demand>& demands) {
    Cond covered = Cond::never();
    for (const Demand& known : demands)
      if (known.text == text) covered = covered || where_made(known, wanted, given);
    return !covered.is_false() && state.solver.entails(context, covered);
  };
  return is_covered(state.domains.of_left()) && is_covered(state.domains.of_right());
}

}  // namespace gopt
