// Floor divisions of indexes and conditions, as far as a context decides them.
#include <algorithm>
#include <map>
#include <set>

#include "rules/solve_equations.h"
#include "simplify.h"

namespace gopt::verifier {

void collect_divisions(const Index& index, std::set<AtomId>& out) {
  for (const Index::Term& term : index.terms()) {
    for (AtomId id : term.atoms) {
      const Atom& a = atom(id);
      if (a.kind != AtomKind::FloorDiv) continue;
      out.insert(id);
      collect_divisions(a.numerator, out);
      collect_divisions(a.denominator, out);
    }
  }
}
void collect_divisions(const Cond& cond, std::set<AtomId>& out) {
  collect_divisions(cond.index(), out);
  for (const Cond& part : cond.parts()) collect_divisions(part, out);
}

std::optional<Index> largest_multiple(const Index& literal, AtomId binder, const Cond& context, ProofState& state) {
  Index divisor, rest = literal;
  for (const Index::Term& term : literal.terms()) {
    const auto holding = std::count(term.atoms.begin(), term.atoms.end(), binder);
    if (holding == 0) continue;
    Index factor(term.coefficient), product(term.coefficient);
    for (AtomId id : term.atoms) {
      if (id != binder) factor = factor * Index::from_atom(id);
      product = product * Index::from_atom(id);
    }
    divisor = divisor - factor;
    rest = rest - product;
  }
  if (divisor == Index(1) || depends_on(divisor, binder) || depends_on(rest, binder) ||
      !state.solver.entails(context, at_least(divisor, Index(1))))
    return std::nullopt;
  return floor_div(rest, divisor);
}

namespace {

bool has_division(const Index& index) {
  std::set<AtomId> divisions;
  collect_divisions(index, divisions);
  return !divisions.empty();
}

// n = quotient * d + rest, for a d of several terms, by its first one.
std::optional<Index> quotient_by_sum(Index numerator, const Index& denominator) {
  const size_t summands = denominator.terms().size() + (denominator.constant() != 0 ? 1 : 0);
  if (summands < 2) return std::nullopt;
  auto degree_and_name = [](const Index::Term& term) {
    std::string name;
    for (AtomId id : sorted_by_name(term.atoms)) name += to_string(Index::from_atom(id)) + " ";
    return std::pair{-static_cast<int>(term.atoms.size()), name};
  };
  const Index::Term& lead =
      *std::min_element(denominator.terms().begin(), denominator.terms().end(),
                        [&](const auto& a, const auto& b) { return degree_and_name(a) < degree_and_name(b); });
  if (lead.coefficient != 1) return std::nullopt;
  Index quotient(0), divisor(1);
  for (AtomId id : lead.atoms) divisor = divisor * Index::from_atom(id);
  constexpr int kMaxSteps = 8;
  for (int step = 0; step < kMaxSteps; step++) {
    std::optional<Index> part;
    for (const Index::Term& term : numerator.terms()) {
      Index monomial(term.coefficient);
      for (AtomId id : term.atoms) monomial = monomial * Index::from_atom(id);
      const Index divided = floor_div(monomial, divisor);
      if (divided * divisor == monomial) part = divided;
    }
    if (!part) break;
    quotient += *part;
    numerator = numerator - *part * denominator;
  }
  return quotient == Index(0) ? std::nullopt : std::optional(quotient);
}

// n // (a b) as (n // b) // a, for a factor b by which n is seen to be divided without a rest that counts.
std::optional<Index> divided_in_steps(const Index& numerator, const Index& denominator, const Cond& context,
                                      ProofState& state) {
  if (denominator.constant() != 0 || denominator.terms().size() != 1) return std::nullopt;
  const Index::Term& monomial = denominator.terms()[0];
  if (monomial.atoms.size() + (monomial.coefficient != 1 ? 1 : 0) < 2) return std::nullopt;
  for (AtomId id : sorted_by_name(monomial.atoms)) {
    const Index factor = Index::from_atom(id), rest = floor_div(denominator, factor);
    if (!state.solver.entails(context, at_least(factor, Index(1)) && at_least(rest, Index(1)))) continue;
    const Index inner = simplify(floor_div(numerator, factor), context, state);
    if (!has_division(inner)) return floor_div(inner, rest);
  }
  return std::nullopt;
}

// Whether it holds symbols of the rule alone: what the proof names, positions and binders, begins with %.
bool is_of_sizes(const Index& index) {
  std::set<AtomId> symbols;
  collect_symbols(index, symbols);
  return std::none_of(symbols.begin(), symbols.end(), [](AtomId id) { return atom(id).name.rfind('%', 0) == 0; });
}

// n // d, where an equation of sizes says that n is a multiple of d: (g p) // h is o where g p == h o. Equations of
// binders say where a sum has terms, and stay in its guard.
std::optional<Index> quotient_by_equation(const Index& numerator, const Index& denominator, const Cond& context,
                                          ProofState& state) {
  if (!is_of_sizes(numerator) || !is_of_sizes(denominator)) return std::nullopt;
  for (const Index& zero : equations_of(context)) {
    if (!is_of_sizes(zero)) continue;
    for (const Index& same : {numerator - zero, numerator + zero}) {
      const Index quotient = floor_div(same, denominator);
      if (quotient * denominator == same && !has_division(quotient) &&
          state.solver.entails(context, at_least(denominator, Index(1))))
        return quotient;
    }
  }
  return std::nullopt;
}

// Symbols that two products of the index have in common.
std::vector<AtomId> shared_factors(const Index& index) {
  std::map<AtomId, int> uses;
  for (const Index::Term& term : index.terms())
    if (term.atoms.size() > 1)
      for (AtomId id : std::set<AtomId>(term.atoms.begin(), term.atoms.end())) uses[id]++;
  std::vector<AtomId> shared;
  for (const auto& [id, count] : uses)
    if (count > 1 && atom(id).kind == AtomKind::Symbol) shared.push_back(id);
  return sorted_by_name(std::move(shared));
}

// q*d + r >= g*d, for 0 <= r < d, says that q >= g: blocks are before others, whatever the place in them.
std::optional<Cond> divided(const Index& literal, const Cond& context, ProofState& state) {
  for (AtomId id : shared_factors(literal)) {
    const Index divisor = Index::from_atom(id);
    Index rest = literal, quotient;
    for (const Index::Term& term : literal.terms()) {
      if (std::count(term.atoms.begin(), term.atoms.end(), id) != 1) continue;
      Index product(term.coefficient);
      for (AtomId other : term.atoms)
        if (other != id) product = product * Index::from_atom(other);
      quotient += product;
      rest = rest - product * divisor;
    }
    if (depends_on(rest, id)) continue;
    for (int64_t step : {0, -1})
      if (state.solver.entails(context, within(rest, Index(step) * divisor, Index(step + 1) * divisor)))
        return at_least(quotient + Index(step), Index(0));
  }
  return std::nullopt;
}

}  // namespace

Cond simplify(const Cond& cond, const Cond& context, ProofState& state) {
  switch (cond.kind()) {
    case CondKind::True:
    case CondKind::False: return cond;
    case CondKind::NonNegative: {
      const Cond plain = has_division(cond.index()) ? at_least(simplify(cond.index(), context, state), Index(0)) : cond;
      return divided(plain.index(), context, state).value_or(plain);
    }
    case CondKind::And: {
      Cond r;
      for (const Cond& part : cond.parts()) r = r && simplify(part, context, state);
      return r;
    }
    case CondKind::Or: {
      Cond r = Cond::never();
      for (const Cond& part : cond.parts()) r = r || simplify(part, context, state);
      return r;
    }
  }
  return cond;
}

Index simplify(const Index& index, const Cond& context, ProofState& state) {
  for (const Index::Term& term : index.terms()) {
    for (AtomId id : term.atoms) {
      const Atom& a = atom(id);
      if (a.kind != AtomKind::FloorDiv) continue;
      const Index numerator = simplify(a.numerator, context, state);
      const Index denominator = has_division(a.denominator) ? simplify(a.denominator, context, state) : a.denominator;
      const Index quotient = floor_div(numerator, denominator);
      std::optional<Index> resolved;
      if (quotient != Index::from_atom(id)) resolved = quotient;
      for (int64_t guess : {0, -1, 1, 2}) {
        if (resolved) break;
        if (state.solver.entails(context, within(numerator - denominator * Index(guess), Index(0), denominator)))
          resolved = Index(guess);
      }
      if (const auto part = resolved ? std::nullopt : quotient_by_sum(numerator, denominator);
          part && state.solver.entails(context, at_least(denominator, Index(1))))
        resolved = *part + floor_div(numerator - *part * denominator, denominator);
      if (!resolved) resolved = divided_in_steps(numerator, denominator, context, state);
      if (!resolved) resolved = quotient_by_equation(numerator, denominator, context, state);
      if (!resolved) continue;
      return simplify(replace_atom(index, id, *resolved), context, state);
    }
  }
  return index;
}

namespace {

bool is_at_least_one(const Index& index, const Cond& context, ProofState& state) {
  return state.solver.entails(context, at_least(index, Index(1)));
}

// Whether 0 <= index < bound; of a quotient by what it is of.
bool is_within(const Index& index, const Index& bound, const Cond& context, ProofState& state) {
  Index value = index, end = bound;
  for (auto id = value.as_atom(); id && atom(*id).kind == AtomKind::FloorDiv; id = value.as_atom()) {
    const Atom& quotient = atom(*id);
    if (!is_at_least_one(quotient.denominator, context, state)) return false;
    end = end * quotient.denominator;
    value = Index(quotient.numerator);
  }
  return state.solver.entails(context, simplify(within(value, Index(0), end), context, state));
}

// The quotient with its numerator and denominator divided by a factor of the denominator.
std::optional<Index> divided_by_factor(const Index& numerator, const Index& denominator, const Cond& context,
                                       ProofState& state) {
  if (denominator.constant() != 0 || denominator.terms().size() != 1) return std::nullopt;
  for (AtomId id : sorted_by_name(denominator.terms()[0].atoms)) {
    const Index factor = Index::from_atom(id), rest = floor_div(denominator, factor);
    Index quotient, remainder(numerator.constant());
    for (const Index::Term& term : numerator.terms()) {
      Index product(term.coefficient), whole(term.coefficient);
      bool is_multiple = false;
      for (AtomId other : term.atoms) {
        whole = whole * Index::from_atom(other);
        if (other == id && !is_multiple)
          is_multiple = true;
        else
          product = product * Index::from_atom(other);
      }
      (is_multiple ? quotient : remainder) += is_multiple ? product : whole;
    }
    if (quotient == Index(0) || !is_at_least_one(factor, context, state) || !is_at_least_one(rest, context, state) ||
        !is_within(remainder, factor, context, state))
      continue;
    return floor_div(quotient, rest);
  }
  return std::nullopt;
}

}  // namespace

Index divided_by_factors(const Index& index, const Cond& context, ProofState& state) {
  for (const Index::Term& term : index.terms()) {
    for (AtomId id : term.atoms) {
      const Atom& a = atom(id);
      if (a.kind != AtomKind::FloorDiv) continue;
      const auto inner = a.numerator.as_atom();
      std::optional<Index> changed;
      if (inner && atom(*inner).kind == AtomKind::FloorDiv &&
          is_at_least_one(atom(*inner).denominator, context, state) && is_at_least_one(a.denominator, context, state))
        changed = floor_div(atom(*inner).numerator, atom(*inner).denominator * a.denominator);
      if (!changed) changed = divided_by_factor(a.numerator, a.denominator, context, state);
      if (changed) return divided_by_factors(replace_atom(index, id, *changed), context, state);
    }
  }
  return index;
}

Index without_nested_divisions(const Index& index, const Cond& given, Solver& solver) {
  for (const Index::Term& term : index.terms()) {
    for (AtomId id : term.atoms) {
      const Atom& outer = atom(id);
      if (outer.kind != AtomKind::FloorDiv) continue;
      const Index numerator = without_nested_divisions(outer.numerator, given, solver);
      if (numerator != outer.numerator)
        return without_nested_divisions(replace_atom(index, id, floor_div(numerator, outer.denominator)), given,
                                        solver);
      for (const Index::Term& part : outer.numerator.terms()) {
        if (part.coefficient != 1 || part.atoms.size() != 1 || atom(part.atoms[0]).kind != AtomKind::FloorDiv) continue;
        const Atom& inner = atom(part.atoms[0]);
        const Index rest = outer.numerator - Index::from_atom(part.atoms[0]);
        if (!solver.entails(given, at_least(inner.denominator, Index(1)) && at_least(outer.denominator, Index(1))))
          continue;
        const Index flat = floor_div(inner.numerator + rest * inner.denominator, inner.denominator * outer.denominator);
        return without_nested_divisions(replace_atom(index, id, flat), given, solver);
      }
    }
  }
  return index;
}
}  // namespace gopt::verifier
