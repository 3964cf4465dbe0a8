#include "rearrange.h"

#include <algorithm>
#include <functional>

#include "demands.h"
#include "normal_form/arithmetic.h"
#include "normal_form/simplify.h"
#include "positivity.h"

namespace gopt::verifier {
namespace {

constexpr int64_t kMaxShortRange = 9;  // elements of a sum that is written out
constexpr int kMaxDenominators = 6;

bool holds_binder(const Summand& term, const std::set<AtomId>& symbols) {
  return std::any_of(term.binders.begin(), term.binders.end(), [&](AtomId b) { return symbols.count(b) > 0; });
}
bool holds_binder(const Summand& term, const Factor& factor) {
  std::set<AtomId> symbols;
  collect_symbols(factor, symbols);
  return holds_binder(term, symbols);
}

}  // namespace

// ---- denominators ----

namespace {

// What a factor divides by: it is the inverse of this.
NormalForm divisor_of(const Factor& factor) {
  if (factor.kind == FactorKind::Reciprocal) return factor.args[0];
  Factor plain = factor;
  plain.exponent = 1;
  return as_form(std::move(plain));
}

bool is_not_zero(const Factor& factor, const Cond& context, ProofState& state) {
  const NormalForm divisor = divisor_of(factor);
  if (factor.kind == FactorKind::Size) {
    Factor plain = factor;
    plain.exponent = 1;
    if (is_positive_size(plain, context, state)) return true;
  }
  return is_positive(divisor, context, state) ||
         (state.sides_are_defined &&
          (is_demanded_by_both("divisor", divisor, context, state) || is_demanded_not_zero(divisor, context, state)));
}

// A factor that divides a term, is the same for all its binders and divides by nothing that may be 0.
const Factor* find_divisor(const NormalForm& form, const Cond& context, ProofState& state,
                           std::set<std::string>& refused) {
  for (const Summand& term : form) {
    for (const Factor& f : term.factors) {
      const bool is_exponential = f.kind == FactorKind::Call && f.function == Function::Exp;
      if (f.exponent >= 0 || is_exponential || holds_binder(term, f)) continue;
      const std::string text = key(f, false);
      if (refused.count(text)) continue;
      if (is_not_zero(f, context, state)) return &f;
      refused.insert(text);
    }
  }
  return nullptr;
}

}  // namespace

NormalForm without_denominators(NormalForm form, const Cond& context, ProofState& state) {
  std::set<std::string> refused;
  for (int step = 0; step < kMaxDenominators; step++) {
    const Factor* found = find_divisor(form, context, state, refused);
    if (!found) break;
    const Factor divisor = *found;
    const std::string text = key(divisor, false);
    const NormalForm by = divisor_of(divisor);
    NormalForm r;
    for (Summand& term : form) {
      auto it = std::find_if(term.factors.begin(), term.factors.end(),
                             [&](const Factor& f) { return f.exponent < 0 && key(f, false) == text; });
      if (it == term.factors.end()) {
        for (Summand& product : multiply({term}, by, context, state)) r.push_back(std::move(product));
        continue;
      }
      if (++it->exponent == 0) term.factors.erase(it);
      r.push_back(std::move(term));
    }
    form = simplify(r, context, state);
    if (form.size() > state.solver.limits().terms_of_a_form) break;
  }
  return form;
}

// ---- ranges ----

namespace {

// lower <= binder <= upper as the guard states it, once each.
struct BinderRange {
  Index lower, upper;
  Cond rest;  // of the guard
};
std::optional<BinderRange> range_of(const Summand& term, AtomId binder) {
  std::optional<Index> lower, upper;
  Cond rest;
  for (const Cond& literal : conjuncts(term.guard)) {
    const auto split = literal.kind() == CondKind::NonNegative ? split_linear(literal.index(), binder) : std::nullopt;
    if (split && split->coefficient == 1 && !lower && (-split->rest).is_constant()) {
      lower = -split->rest;
    } else if (split && split->coefficient == -1 && !upper && !depends_on(split->rest, binder)) {
      std::set<AtomId> symbols;
      collect_symbols(split->rest, symbols);
      if (holds_binder(term, symbols)) {
        rest = rest && literal;
      } else {
        upper = split->rest;
      }
    } else {
      rest = rest && literal;
    }
  }
  if (!lower || !upper) return std::nullopt;
  return BinderRange{*lower, *upper, rest};
}

// The product of which `extent` consists: one monomial of two factors at least.
bool is_product(const Index& extent) {
  if (extent.constant() != 0 || extent.terms().size() != 1) return false;
  const Index::Term& monomial = extent.terms()[0];
  return monomial.atoms.size() + (monomial.coefficient > 1 ? 1 : 0) >= 2 && monomial.coefficient >= 1;
}

// The product without one factor, if it has it.
std::optional<Index> divided(const Index& product, const Index& factor) {
  const Index::Term& monomial = product.terms()[0];
  const auto atom = factor.as_atom();
  if (!atom) {
    if (factor != Index(monomial.coefficient) || monomial.coefficient == 1) return std::nullopt;
    Index rest(1);
    for (AtomId id : monomial.atoms) rest = rest * Index::from_atom(id);
    return rest;
  }
  Index rest(monomial.coefficient);
  bool found = false;
  for (AtomId id : monomial.atoms) {
    if (id == *atom && !found) {
      found = true;
    } else {
      rest = rest * Index::from_atom(id);
    }
  }
  return found ? std::optional(rest) : std::nullopt;
}

}  // namespace

std::vector<Index> range_factors(const NormalForm& form) {
  std::vector<Index> factors;
  auto note = [&](const Index& factor) {
    if (std::find(factors.begin(), factors.end(), factor) == factors.end()) factors.push_back(factor);
  };
  for (const Summand& term : form) {
    for (AtomId binder : term.binders) {
      const auto range = range_of(term, binder);
      if (!range || range->lower != Index(0)) continue;
      const Index extent = range->upper + Index(1);
      if (!is_product(extent)) continue;
      const Index::Term& monomial = extent.terms()[0];
      for (AtomId id : sorted_by_name(monomial.atoms)) note(Index::from_atom(id));
      if (monomial.coefficient > 1) note(Index(monomial.coefficient));
    }
  }
  constexpr size_t kMaxFactors = 4;
  if (factors.size() > kMaxFactors) factors.resize(kMaxFactors);
  return factors;
}

// 0 <= k < a*b is k = q*b + r with 0 <= q < a and 0 <= r < b, for b >= 0: where b is 0, both ranges are empty.
void split_ranges(Summand& term, const Index& inner, ProofState& state) {
  for (size_t i = 0; i < term.binders.size(); i++) {
    const AtomId binder = term.binders[i];
    const auto range = range_of(term, binder);
    if (!range || range->lower != Index(0)) continue;
    const Index extent = range->upper + Index(1);
    if (!is_product(extent)) continue;
    const auto outer = divided(extent, inner);
    if (!outer) continue;
    const AtomId high = state.pool.fresh(), low = state.pool.fresh();
    const Index q = Index::from_atom(high), rest = Index::from_atom(low);
    const Substitution split{{binder, q * inner + rest}};
    term.guard = substitute(range->rest, split) && within(q, Index(0), *outer) && within(rest, Index(0), inner);
    for (Factor& factor : term.factors) factor = substitute(factor, split);
    term.binders[i] = high;
    term.binders.push_back(low);
  }
}

NormalForm with_ranges_split(const NormalForm& form, const Index& inner, const Cond& context, ProofState& state) {
  if (!state.solver.entails(context, at_least(inner, Index(0)))) return form;
  NormalForm r = form;
  for (Summand& term : r) split_ranges(term, inner, state);
  return simplify(r, context, state);
}

NormalForm with_short_sums_expanded(const NormalForm& form, const Cond& context, ProofState& state) {
  NormalForm r;
  std::function<bool(Summand)> expand = [&](Summand term) {
    for (size_t i = 0; i < term.binders.size(); i++) {
      const AtomId binder = term.binders[i];
      const auto range = range_of(term, binder);
      if (!range || !range->upper.is_constant()) continue;
      const int64_t low = range->lower.constant(), high = range->upper.constant();
      if (high - low >= kMaxShortRange) continue;
      term.binders.erase(term.binders.begin() + static_cast<ptrdiff_t>(i));
      for (int64_t value = low; value <= high; value++) {
        const Substitution at{{binder, Index(value)}};
        Summand element = freshen(term, state.pool);
        element.guard = substitute(element.guard, at);
        for (Factor& factor : element.factors) factor = substitute(factor, at);
        if (!element.guard.is_false() && !expand(std::move(element))) return false;
      }
      return true;
    }
    if (r.size() >= state.solver.limits().terms_of_a_form) return false;
    r.push_back(std::move(term));
    return true;
  };
  for (const Summand& term : form)
    if (!expand(term)) return form;
  return simplify(r, context, state);
}

// ---- alternatives ----

namespace {

// Alternatives of which some hold a binder that no factor does.
std::optional<Cond> counted_alternatives(const Summand& term) {
  constexpr size_t kMaxParts = 4;
  std::set<AtomId> used;
  for (const Factor& factor : term.factors) collect_symbols(factor, used);
  for (const Cond& literal : conjuncts(term.guard)) {
    if (literal.kind() != CondKind::Or || literal.parts().size() > kMaxParts) continue;
    const bool is_plain = std::all_of(literal.parts().begin(), literal.parts().end(),
                                      [](const Cond& part) { return part.kind() == CondKind::NonNegative; });
    const bool counts = std::any_of(term.binders.begin(), term.binders.end(),
                                    [&](AtomId b) { return !used.count(b) && depends_on(literal, b); });
    if (is_plain && counts) return literal;
  }
  return std::nullopt;
}

}  // namespace

NormalForm with_alternatives_apart(const NormalForm& form, const Cond& context, ProofState& state) {
  if (std::none_of(form.begin(), form.end(),
                   [](const Summand& term) { return counted_alternatives(term).has_value(); }))
    return form;
  NormalForm r;
  std::vector<Summand> open(form.rbegin(), form.rend());
  while (!open.empty()) {
    const Summand term = std::move(open.back());
    open.pop_back();
    const auto alternatives = counted_alternatives(term);
    if (!alternatives) {
      r.push_back(term);
      continue;
    }
    if (r.size() + open.size() > state.solver.limits().terms_of_a_form) return form;
    Cond rest;
    for (const Cond& literal : conjuncts(term.guard))
      if (!(literal == *alternatives)) rest = rest && literal;
    for (const Cond& part : alternatives->parts()) {
      Summand own = freshen(term, state.pool);
      Substitution renamed;
      for (size_t i = 0; i < term.binders.size(); i++) renamed[term.binders[i]] = Index::from_atom(own.binders[i]);
      own.guard = substitute(rest && part, renamed);
      rest = rest && !part;
      open.push_back(std::move(own));
    }
  }
  return simplify(r, context, state);
}

// ---- cases ----

namespace {

std::optional<Cond> undecided(const Cond& cond, const Summand& term, const Cond& context, ProofState& state) {
  if (cond.kind() == CondKind::And || cond.kind() == CondKind::Or) {
    for (const Cond& part : cond.parts())
      if (auto found = undecided(part, term, context, state)) return found;
    return std::nullopt;
  }
  if (cond.kind() != CondKind::NonNegative) return std::nullopt;
  std::set<AtomId> symbols;
  collect_symbols(cond, symbols);
  if (holds_binder(term, symbols)) return std::nullopt;
  if (state.solver.entails(context, cond) || state.solver.is_infeasible(context && cond)) return std::nullopt;
  return cond;
}

}  // namespace

std::optional<Cond> undecided_guard(const NormalForm& form, const Cond& context, ProofState& state) {
  for (const Summand& term : form)
    if (auto found = undecided(term.guard, term, context, state)) return found;
  return std::nullopt;
}

}  // namespace gopt::verifier
