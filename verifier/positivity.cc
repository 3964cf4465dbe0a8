#include "positivity.h"

#include <algorithm>
#include <map>
#include <optional>

#include "arithmetic.h"

namespace gopt {
namespace {

// Lower bounds of the binder: if some value of it satisfies the condition, the largest of these does.
std::vector<Index> lower_bounds(const Cond& cond, AtomId binder) {
  std::vector<Index> bounds;
  for (const Cond& literal : conjuncts(cond)) {
    if (literal.kind() != CondKind::NonNegative) continue;
    const auto split = split_linear(literal.index(), binder);
    if (split && split->coefficient == 1) bounds.push_back(-split->rest);
  }
  return bounds;
}

// Whether the term is seen to have a value of its binders, each at one of its lower bounds, where it counts and no size
// in it is 0: of a window that is padded, the first place that is not in the padding.
bool occurs(const Term& term, const Cond& context, ProofState& state) {
  constexpr size_t kMaxCases = 16;
  Cond needed = term.guard;
  for (const Factor& f : term.factors)
    if (f.kind == FactorKind::Size) needed = needed && at_least(f.subscripts[0], Index(1));
  std::vector<Cond> cases{needed};
  for (AtomId binder : term.binders) {
    std::vector<Cond> next;
    for (const Cond& one : cases)
      for (const Index& bound : lower_bounds(one, binder)) next.push_back(substitute(one, {{binder, bound}}));
    if (next.empty() || next.size() > kMaxCases) return false;
    cases = std::move(next);
  }
  Cond any = Cond::never();
  for (const Cond& one : cases) any = any || one;
  return state.solver.entails(context, any);
}

}  // namespace

namespace {

// Whether the form is 1 or more: a number of at least 1 and what is not negative.
bool exceeds_one(const NormalForm& form, const Cond& context, ProofState& state) {
  NormalForm rest = form;
  const auto number = std::find_if(rest.begin(), rest.end(), [](const Term& t) {
    return t.binders.empty() && t.factors.empty() && t.guard.is_true() &&
           (t.coefficient + Rational(-1)).numerator() >= 0;
  });
  if (number == rest.end()) return false;
  rest.erase(number);
  return is_nonnegative(rest, context, state);
}

bool is_nonnegative(const Factor& f, const Cond& context, ProofState& state) {
  switch (f.kind) {
    case FactorKind::Size: return state.solver.entails(context, at_least(f.subscripts[0], Index(0)));
    case FactorKind::Literal:
    case FactorKind::IsLess:
    case FactorKind::IsEqual: return true;
    case FactorKind::Call:
      if (f.function == Function::Log) return exceeds_one(f.args[0], context, state);
      return f.function == Function::Exp || f.function == Function::Cosh || f.function == Function::Sqrt;
    case FactorKind::Reciprocal: return is_nonnegative(f.args[0], context, state);
    case FactorKind::Maximum:
      return std::any_of(f.branches.begin(), f.branches.end(), [&](const Branch& b) {
        return b.binders.empty() && b.guard.is_true() && is_nonnegative(b.value, context, state);
      });
    case FactorKind::Product: return is_nonnegative(f.branches[0].value, context && f.branches[0].guard, state);
    case FactorKind::Read:
    case FactorKind::Opaque: return false;
  }
  return false;
}

bool is_positive(const Factor& f, const Cond& context, ProofState& state) {
  switch (f.kind) {
    case FactorKind::Size:  // a term counts where its sizes are positive, see occurs()
      return state.solver.entails(context, at_least(f.subscripts[0], Index(0)));
    case FactorKind::Literal: return f.literal > 0;
    case FactorKind::Call: return f.function == Function::Exp || f.function == Function::Cosh;
    case FactorKind::Reciprocal: return is_positive(f.args[0], context, state);
    case FactorKind::Read:
    case FactorKind::Maximum:
    case FactorKind::Product:
    case FactorKind::IsLess:
    case FactorKind::IsEqual:
    case FactorKind::Opaque: return false;
  }
  return false;
}

}  // namespace

bool is_nonnegative(const NormalForm& form, const Cond& context, ProofState& state) {
  return std::all_of(form.begin(), form.end(), [&](const Term& term) {
    if (term.coefficient.numerator() < 0) return false;
    const Cond inner = context && term.guard;
    std::map<std::string, int> odd;
    for (const Factor& f : term.factors)
      if (!is_nonnegative(f, inner, state)) odd[key(f)] ^= 1;
    return std::all_of(odd.begin(), odd.end(), [](const auto& o) { return o.second == 0; });
  });
}

bool is_at_least(const NormalForm& a, const NormalForm& b, const Cond& context, ProofState& state) {
  constexpr size_t kMaxTerms = 12;
  NormalForm difference = with_like_terms_merged(add(a, negated(b), state));
  for (int step = 0; step < 3 && difference.size() <= kMaxTerms; step++) {
    if (is_nonnegative(difference, context, state)) return true;
    const Factor* divisor = nullptr;
    for (const Term& term : difference)
      for (const Factor& f : term.factors)
        if (f.kind == FactorKind::Reciprocal && term.binders.empty()) divisor = &f;
    if (!divisor || !is_positive(divisor->args[0], context, state)) return false;
    const Factor found = *divisor;
    const std::string text = key(found);
    NormalForm multiplied;
    for (Term& term : difference) {
      auto it = std::find_if(term.factors.begin(), term.factors.end(), [&](const Factor& f) { return key(f) == text; });
      if (it == term.factors.end()) {
        for (Term& product : multiply({term}, found.args[0], context, state)) multiplied.push_back(std::move(product));
      } else {
        term.factors.erase(it);
        multiplied.push_back(std::move(term));
      }
    }
    difference = with_like_terms_merged(multiplied);
  }
  return false;
}

bool is_positive(const NormalForm& form, const Cond& context, ProofState& state) {
  return is_nonnegative(form, context, state) && std::any_of(form.begin(), form.end(), [&](const Term& term) {
           const Cond inner = context && term.guard;
           return std::all_of(term.factors.begin(), term.factors.end(),
                              [&](const Factor& f) { return is_positive(f, inner, state); }) &&
                  occurs(term, context, state);
         });
}

bool is_positive_size(const Factor& factor, const Cond& context, ProofState& state) {
  if (factor.kind != FactorKind::Size) return false;
  const Cond positive = at_least(factor.subscripts[0], Index(1));
  const std::vector<Cond> given = conjuncts(context);
  return std::find(given.begin(), given.end(), positive) != given.end() || state.solver.entails(context, positive);
}
bool is_positive_size(const NormalForm& form, const Cond& context, ProofState& state) {
  if (form.size() != 1 || !form[0].binders.empty() || form[0].factors.empty()) return false;
  Factor product;
  product.kind = FactorKind::Size;
  product.subscripts = {Index(1)};
  for (const Factor& factor : form[0].factors) {
    if (factor.kind != FactorKind::Size || factor.exponent < 1) return false;
    for (int i = 0; i < factor.exponent; i++) product.subscripts[0] = product.subscripts[0] * factor.subscripts[0];
  }
  return is_positive_size(product, context, state);
}

bool is_never_zero(const Factor& factor, const Cond& context, ProofState& state) {
  if (factor.kind == FactorKind::Literal) return true;
  if (factor.kind != FactorKind::Call) return false;
  return factor.function == Function::Exp || factor.function == Function::Cosh ||
         (factor.function == Function::Sqrt && is_positive(factor.args[0], context, state));
}

}  // namespace gopt
