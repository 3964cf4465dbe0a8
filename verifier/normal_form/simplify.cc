#include "simplify.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>

namespace gopt::verifier {
namespace {

void apply(Summand& term, const Substitution& substitution) {
  term.guard = substitute(term.guard, substitution);
  for (Factor& factor : term.factors) factor = substitute(factor, substitution);
}

void collect_indexes(const NormalForm& form, std::vector<Index>& out);
void collect_indexes(const Factor& factor, std::vector<Index>& out) {
  out.insert(out.end(), factor.subscripts.begin(), factor.subscripts.end());
  for (const NormalForm& a : factor.args) collect_indexes(a, out);
  for (const Branch& b : factor.branches) collect_indexes(b.value, out);
}
void collect_indexes(const NormalForm& form, std::vector<Index>& out) {
  for (const Summand& term : form)
    for (const Factor& factor : term.factors) collect_indexes(factor, out);
}

bool is_binder_of(const Summand& term, const std::set<AtomId>& symbols) {
  return std::any_of(term.binders.begin(), term.binders.end(), [&](AtomId b) { return symbols.count(b) > 0; });
}

// Parts of disjunctions in the guard that cannot hold are dropped.
void prune_guard(Summand& term, const Cond& context, ProofState& state) {
  const std::vector<Cond> literals = conjuncts(term.guard);
  if (std::none_of(literals.begin(), literals.end(), [](const Cond& c) { return c.kind() == CondKind::Or; })) return;
  Cond pruned;
  for (const Cond& literal : literals) {
    if (literal.kind() != CondKind::Or) {
      pruned = pruned && literal;
      continue;
    }
    Cond kept = Cond::never();
    for (const Cond& part : literal.parts())
      if (!state.solver.is_infeasible(context && term.guard && part)) kept = kept || part;
    pruned = pruned && kept;
  }
  term.guard = pruned;
}

// A division whose value the guard as a whole implies is that number, with what says so in its place: of
// k % 2 == r % 2 with 0 <= k, r < 2, where (r - k) // 2 is 0, k == r is left.
bool resolve_division_of_guard(Summand& term, const Cond& context, ProofState& state) {
  std::set<AtomId> divisions;
  collect_divisions(term.guard, divisions);
  for (AtomId division : divisions) {
    const Atom& a = atom(division);
    for (int64_t guess : {0, -1, 1}) {
      const Cond here = within(a.numerator - a.denominator * Index(guess), Index(0), a.denominator);
      if (!state.solver.entails(context && term.guard, here)) continue;
      term.guard = replace_atom(term.guard, division, Index(guess)) && here;
      return true;
    }
  }
  return false;
}

// Bounds of k = high * d + low by multiples of d, as bounds of high: exact where 0 <= low < d.
Cond with_bounds_of_high(const Cond& guard, AtomId high, const Index& divisor, const Index& low) {
  const Index h = Index::from_atom(high), k = h * divisor + low;
  auto multiple = [&](const Index& index) -> std::optional<Index> {
    const Index quotient = floor_div(index, divisor);
    return quotient * divisor == index ? std::optional(quotient) : std::nullopt;
  };
  Cond r;
  for (const Cond& literal : conjuncts(guard)) {
    if (literal.kind() == CondKind::NonNegative && depends_on(literal.index(), high)) {
      if (const auto from = multiple(literal.index() - k)) {
        r = r && at_least(h + *from, Index(0));
        continue;
      }
      if (const auto below = multiple(literal.index() + k + Index(1))) {
        r = r && less(h, *below);
        continue;
      }
    }
    r = r && literal;
  }
  return r;
}

// A binder k that is divided by d becomes k1 * d + k2 with 0 <= k2 < d.
bool split_divided_binder(Summand& term, const Cond& context, ProofState& state) {
  std::set<AtomId> divisions;
  std::vector<Index> indexes;
  for (const Factor& factor : term.factors) collect_indexes(factor, indexes);
  for (const Index& index : indexes) collect_divisions(index, divisions);
  collect_divisions(term.guard, divisions);
  for (AtomId division : divisions) {
    const Atom& a = atom(division);
    const auto dividend = a.numerator.as_atom();
    auto binder = dividend ? std::find(term.binders.begin(), term.binders.end(), *dividend) : term.binders.end();
    if (binder == term.binders.end()) continue;
    std::set<AtomId> in_divisor;
    collect_symbols(a.denominator, in_divisor);
    // Where the divisor is not positive, the guard must be false: then both sums are empty.
    if (is_binder_of(term, in_divisor) ||
        !state.solver.entails(context && term.guard, at_least(a.denominator, Index(1))))
      continue;
    const AtomId high = state.pool.fresh(), low = state.pool.fresh();
    const Index divisor = a.denominator, low_index = Index::from_atom(low);
    const Substitution split{{*binder, Index::from_atom(high) * divisor + low_index}};
    *binder = high;
    term.binders.push_back(low);
    apply(term, split);
    const Index quotient = floor_div(low_index, divisor);
    if (auto remaining = quotient.as_atom()) replace_atom(term, *remaining, Index(0));
    term.guard = with_bounds_of_high(term.guard, high, divisor, low_index) && within(low_index, Index(0), divisor);
    return true;
  }
  return false;
}

// Where the guard says that d divides e = k + rest (or rest - k) for a binder k, k is d m - rest (or rest - d m), one
// for each m: a transposed convolution then reads at m, and its kernel at what is left.
bool divide_out_binder(Summand& term, const Cond& context, ProofState& state) {
  std::set<AtomId> divisions;
  collect_divisions(term.guard, divisions);
  for (AtomId division : divisions) {
    const Atom& a = atom(division);
    const Index divisor = a.denominator, dividend = a.numerator;
    if (divisor == Index(1)) continue;
    std::set<AtomId> in_divisor;
    collect_symbols(divisor, in_divisor);
    for (size_t position = 0; position < term.binders.size(); position++) {
      const AtomId binder = term.binders[position];
      const auto split = split_linear(dividend, binder);
      if (!split || (split->coefficient != 1 && split->coefficient != -1) || is_binder_of(term, in_divisor)) continue;
      if (!state.solver.entails(context && term.guard,
                                equal(divisor * Index::from_atom(division), dividend) && at_least(divisor, Index(1))))
        break;
      const AtomId quotient = state.pool.fresh();
      const Index m = Index::from_atom(quotient), value = divisor * m - split->rest;
      term.binders[position] = quotient;
      apply(term, {{binder, split->coefficient == 1 ? value : -value}});
      return true;
    }
  }
  return false;
}

struct Bounds {
  std::vector<Index> lower, upper;  // binder >= lower, binder <= upper
};
Bounds bounds_of(const Cond& guard, AtomId binder) {
  Bounds bounds;
  for (const Cond& literal : conjuncts(guard)) {
    if (literal.kind() != CondKind::NonNegative) continue;
    const auto split = split_linear(literal.index(), binder);
    if (split && split->coefficient == 1) bounds.lower.push_back(-split->rest);
    if (split && split->coefficient == -1) bounds.upper.push_back(split->rest);
  }
  return bounds;
}

void replace_binder(Summand& term, size_t position, const Index& value) {
  const AtomId binder = term.binders[position];
  term.binders.erase(term.binders.begin() + static_cast<ptrdiff_t>(position));
  apply(term, {{binder, value}});
}

// 0 <= 2q + r - 2k <= 1, for 0 <= r <= 1, leaves k no value but q.
bool eliminate_within_multiples(Summand& term, size_t position, const Cond& context, ProofState& state) {
  const AtomId binder = term.binders[position];
  std::vector<Index> literals;
  for (const Cond& literal : conjuncts(term.guard))
    if (literal.kind() == CondKind::NonNegative && depends_on(literal.index(), binder))
      literals.push_back(literal.index());
  for (const Index& literal : literals) {
    const auto split = split_linear(literal, binder);
    if (split && std::abs(split->coefficient) == 1) continue;
    const auto opposite = std::find_if(literals.begin(), literals.end(),
                                       [&](const Index& other) { return !depends_on(other + literal, binder); });
    if (opposite == literals.end()) continue;
    const Cond inner = context && term.guard;
    const auto largest = largest_multiple(literal, binder, inner, state);
    if (!largest) continue;
    const Index value = simplify(*largest, inner, state);
    if (!state.solver.entails(inner, equal(Index::from_atom(binder), value))) continue;
    replace_binder(term, position, value);
    return true;
  }
  return false;
}

bool eliminate_determined(Summand& term, size_t position, const Bounds& bounds, const Cond& context,
                          ProofState& state) {
  const AtomId binder = term.binders[position];
  for (const Index& low : bounds.lower) {
    const bool possible = std::any_of(bounds.upper.begin(), bounds.upper.end(), [&](const Index& high) {
      const Index span = high - low;
      return !span.is_constant() || span.constant() <= 0;
    });
    if (!possible || !state.solver.entails(context && term.guard, equal(Index::from_atom(binder), low))) continue;
    replace_binder(term, position, low);
    return true;
  }
  return eliminate_within_multiples(term, position, context, state);
}

// The same constant ratio of the coefficients of k and l in every index that holds either, at least 2; 0 where there is
// none.
int64_t common_ratio(const std::vector<Index>& indexes, AtomId k, AtomId l) {
  int64_t ratio = 0;
  for (const Index& index : indexes) {
    const bool has_k = depends_on(index, k), has_l = depends_on(index, l);
    if (!has_k && !has_l) continue;
    const auto of_k = split_linear(index, k), of_l = split_linear(index, l);
    if (!of_k || !of_l || of_k->coefficient % of_l->coefficient != 0) return 0;
    const int64_t found = of_k->coefficient / of_l->coefficient;
    if (found < 2 || (ratio != 0 && found != ratio)) return 0;
    ratio = found;
  }
  return ratio;
}

// Binders k and l that occur only as c*k + l with 0 <= l < c become one binder (Z x [0,c) is Z).
bool merge_radix_binders(Summand& term, const Cond& context, ProofState& state) {
  if (term.binders.size() < 2) return false;
  std::vector<Index> indexes;
  for (const Factor& factor : term.factors) collect_indexes(factor, indexes);
  for (AtomId k : term.binders) {
    for (AtomId l : term.binders) {
      if (k == l) continue;
      const int64_t ratio = common_ratio(indexes, k, l);
      if (ratio == 0 ||
          !state.solver.entails(context && term.guard, within(Index::from_atom(l), Index(0), Index(ratio))))
        continue;
      for (const AtomId binder : {k, l}) {
        const auto place = std::find(term.binders.begin(), term.binders.end(), binder) - term.binders.begin();
        if (eliminate_determined(term, static_cast<size_t>(place), bounds_of(term.guard, binder), context, state))
          return true;
      }
      const AtomId merged = state.pool.fresh();
      const Index m = Index::from_atom(merged), quotient = floor_div(m, Index(ratio));
      apply(term, {{k, quotient}, {l, m - Index(ratio) * quotient}});
      std::erase_if(term.binders, [&](AtomId b) { return b == k || b == l; });
      term.binders.push_back(merged);
      return true;
    }
  }
  return false;
}

// A binder that no factor holds, with one lower and one upper bound, counts its range.
bool eliminate_unused(Summand& term, size_t position, const Bounds& bounds, const Cond& context, ProofState& state) {
  const AtomId binder = term.binders[position];
  if (bounds.lower.size() != 1 || bounds.upper.size() != 1) return false;
  std::set<AtomId> used;
  for (const Factor& factor : term.factors) collect_symbols(factor, used);
  if (used.count(binder)) return false;
  Cond rest;
  int occurrences = 0;
  for (const Cond& literal : conjuncts(term.guard)) {
    if (depends_on(literal, binder)) {
      occurrences++;
    } else {
      rest = rest && literal;
    }
  }
  std::set<AtomId> in_bounds;
  collect_symbols(bounds.lower[0], in_bounds);
  collect_symbols(bounds.upper[0], in_bounds);
  const Index count = bounds.upper[0] - bounds.lower[0] + Index(1);
  if (occurrences != 2 || is_binder_of(term, in_bounds) ||
      !state.solver.entails(context && rest, at_least(count, Index(0))))
    return false;
  multiply_by_size(term, count, 1);
  term.guard = rest;
  term.binders.erase(term.binders.begin() + static_cast<ptrdiff_t>(position));
  return true;
}

// Of a binder that no factor holds, bounds that follow from the others: what is left counts its range.
bool drop_implied_bound(Summand& term, AtomId binder, const Cond& context, ProofState& state) {
  std::set<AtomId> used;
  for (const Factor& factor : term.factors) collect_symbols(factor, used);
  if (used.count(binder)) return false;
  const std::vector<Cond> literals = conjuncts(term.guard);
  for (size_t i = 0; i < literals.size(); i++) {
    if (literals[i].kind() != CondKind::NonNegative || !depends_on(literals[i], binder)) continue;
    Cond others;
    for (size_t j = 0; j < literals.size(); j++)
      if (j != i) others = others && literals[j];
    if (!state.solver.entails(context && others, literals[i])) continue;
    term.guard = others;
    return true;
  }
  return false;
}

void eliminate_binders(Summand& term, const Cond& context, ProofState& state) {
  for (size_t position = 0; position < term.binders.size();) {
    Bounds bounds = bounds_of(term.guard, term.binders[position]);
    while (bounds.lower.size() + bounds.upper.size() > 2 &&
           drop_implied_bound(term, term.binders[position], context, state))
      bounds = bounds_of(term.guard, term.binders[position]);
    if (eliminate_determined(term, position, bounds, context, state) ||
        eliminate_unused(term, position, bounds, context, state))
      continue;
    position++;
  }
}

}  // namespace

bool simplify(Summand& term, const Cond& context, ProofState& state) {
  if (term.coefficient.is_zero()) return false;
  term.guard = simplify(term.guard, context, state);
  if (term.guard.is_false() || state.solver.is_infeasible(context && term.guard)) return false;
  prune_guard(term, context, state);
  while (resolve_division_of_guard(term, context, state)) {
  }
  while (divide_out_binder(term, context, state)) {
  }
  while (split_divided_binder(term, context, state)) {
  }
  while (merge_radix_binders(term, context, state)) {
  }
  eliminate_binders(term, context, state);
  if (term.coefficient.is_zero() || term.guard.is_false() || state.solver.is_infeasible(context && term.guard))
    return false;
  const Cond inner = context && term.guard;
  for (Factor& factor : term.factors)
    for (Index& s : factor.subscripts) s = simplify(s, inner, state);
  merge_factors(term, inner, state);
  return true;
}

size_t count_divisions(const NormalForm& form) {
  std::set<AtomId> divisions;
  std::vector<Index> indexes;
  collect_indexes(form, indexes);
  for (const Index& index : indexes) collect_divisions(index, divisions);
  for (const Summand& term : form) collect_divisions(term.guard, divisions);
  return divisions.size();
}

NormalForm simplify(const NormalForm& form, const Cond& context, ProofState& state) {
  NormalForm r;
  for (Summand term : form)
    if (simplify(term, context, state)) r.push_back(std::move(term));
  return r;
}

}  // namespace gopt::verifier
