// Floor divisions of indexes and conditions, as far as a context decides them.
#include <algorithm>
#include <map>
#include <set>

#include "simplify.h"
#include "solve_equations.h"

namespace gopt {

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

}  // namespace gopt
