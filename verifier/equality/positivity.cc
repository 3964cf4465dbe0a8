#include "positivity.h"

#include <algorithm>
#include <map>
#include <optional>

#include "binder_change.h"
#include "normal_form/arithmetic.h"
#include "normal_form/common_factors.h"
#include "normal_form/laws.h"
#include "normal_form/ranges.h"
#include "normal_form/summands.h"

namespace gopt::verifier {
namespace {

// Whether the term is seen to have a value of its binders, each at one of its lower bounds, where it counts and no size
// in it is 0: of a window that is padded, the first place that is not in the padding.
bool occurs(const Summand& term, const Cond& context, ProofState& state) {
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
  const auto number = std::find_if(rest.begin(), rest.end(), [](const Summand& t) {
    return t.binders.empty() && t.factors.empty() && t.guard.is_true() &&
           (t.coefficient + Rational(-1)).numerator() >= 0;
  });
  if (number == rest.end()) return false;
  rest.erase(number);
  return is_nonnegative(rest, context, state);
}

bool is_plain(const Branch& b) { return b.binders.empty() && b.guard.is_true(); }

// Of x and -x, over one range, the larger is not negative.
bool has_opposites(const std::vector<Branch>& branches) {
  constexpr size_t kMaxBranches = 6;
  // Texts of maxima within maxima are long, and would be made again at every depth.
  const bool is_nested = std::any_of(branches.begin(), branches.end(), [](const Branch& b) {
    return std::any_of(b.value.begin(), b.value.end(), [](const Summand& term) {
      return std::any_of(term.factors.begin(), term.factors.end(),
                         [](const Factor& f) { return f.kind == FactorKind::Maximum; });
    });
  });
  if (branches.size() > kMaxBranches || is_nested) return false;
  std::set<std::string> seen;
  for (const Branch& b : branches) {
    Factor own, opposite;
    own.branches = {b};
    opposite.branches = {{b.binders, b.guard, negated(b.value)}};
    if (seen.count(key(opposite))) return true;
    seen.insert(key(own));
  }
  return false;
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
      return std::any_of(f.branches.begin(), f.branches.end(),
                         [&](const Branch& b) { return is_plain(b) && is_nonnegative(b.value, context, state); }) ||
             has_opposites(f.branches);
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

namespace {

// Powers of one number, or one and an odd function of it that increases.
bool have_one_sign(const Factor& a, const Factor& b) {
  if (key(a, false) == key(b, false)) return true;
  for (const auto& [f, g] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
    if (f->kind != FactorKind::Call || !is_odd_and_increasing(f->function)) continue;
    Factor plain = *g;
    plain.exponent = 1;
    if (const auto times = ratio(as_form(plain), f->args[0])) return times->numerator() > 0;
  }
  return false;
}

bool is_nonnegative_by_terms(const NormalForm& form, const Cond& context, ProofState& state) {
  return std::all_of(form.begin(), form.end(), [&](const Summand& term) {
    if (term.coefficient.numerator() < 0) return false;
    const Cond inner = context && term.guard;
    std::vector<const Factor*> odd;  // of a power and an inverse of one number the signs are the same
    for (const Factor& f : term.factors) {
      if (f.exponent % 2 == 0 || is_nonnegative(f, inner, state)) continue;
      const auto same = std::find_if(odd.begin(), odd.end(), [&](const Factor* o) { return have_one_sign(*o, f); });
      if (same == odd.end())
        odd.push_back(&f);
      else
        odd.erase(same);
    }
    return odd.empty();
  });
}

bool is_rounding(const Factor& f) {
  return f.kind == FactorKind::Call &&
         (f.function == Function::Floor || f.function == Function::Round || f.function == Function::Trunc);
}
bool holds_rounding(const NormalForm& form) {
  return std::any_of(form.begin(), form.end(),
                     [](const Summand& term) { return term.factors.size() == 1 && is_rounding(term.factors[0]); });
}

// Whether bounds may say more: an element of an input has none, unless it is squared.
bool may_be_bounded(const NormalForm& form) {
  constexpr size_t kMaxTerms = 8;
  if (form.size() <= kMaxTerms && holds_rounding(form)) return true;
  return form.size() <= kMaxTerms && std::all_of(form.begin(), form.end(), [](const Summand& term) {
           const auto reads = std::count_if(term.factors.begin(), term.factors.end(), [](const Factor& f) {
             return f.kind == FactorKind::Read || f.kind == FactorKind::Opaque;
           });
           return reads != 1;
         });
}

// c max(a, b) + r is not negative where c a + r is not, for any value that the maximum is over.
bool is_nonnegative_by_branch(const NormalForm& form, const Cond& context, ProofState& state) {
  constexpr size_t kMaxTerms = 4;
  if (form.size() < 2 || form.size() > kMaxTerms) return false;
  for (size_t i = 0; i < form.size(); i++) {
    const Summand& own = form[i];
    if (own.coefficient.numerator() < 0 || own.factors.size() != 1 || !own.binders.empty() || !own.guard.is_true() ||
        own.factors[0].kind != FactorKind::Maximum || own.factors[0].exponent != 1)
      continue;
    std::vector<Factor> others;
    for (size_t j = 0; j < form.size(); j++)
      if (j != i) others.insert(others.end(), form[j].factors.begin(), form[j].factors.end());
    for (const Branch& b : own.factors[0].branches) {
      const auto instance = value_near(b, others, context, state);
      if (!instance) continue;
      NormalForm chosen = *instance;
      for (Summand& term : chosen) term.coefficient = term.coefficient * own.coefficient;
      for (size_t j = 0; j < form.size(); j++)
        if (j != i) chosen.push_back(form[j]);
      chosen = with_like_terms_merged(chosen);
      if (is_nonnegative_by_terms(chosen, context, state)) return true;
    }
  }
  return false;
}

// c e^u + r is not negative where c (1 + u) + r is not.
bool is_nonnegative_by_tangent(const NormalForm& form, const Cond& context, ProofState& state) {
  constexpr size_t kMaxTerms = 4;
  if (form.size() < 2 || form.size() > kMaxTerms) return false;
  for (size_t i = 0; i < form.size(); i++) {
    const Summand& own = form[i];
    if (own.coefficient.numerator() < 0 || own.factors.empty() || !own.binders.empty() || !own.guard.is_true() ||
        !std::all_of(own.factors.begin(), own.factors.end(), is_exponential))
      continue;
    NormalForm rest = one();
    for (const Factor& f : own.factors) {
      for (Summand term : f.args[0]) {
        term.coefficient = term.coefficient * Rational(f.exponent);
        rest.push_back(std::move(term));
      }
    }
    for (Summand& term : rest) term.coefficient = term.coefficient * own.coefficient;
    for (size_t j = 0; j < form.size(); j++)
      if (j != i) rest.push_back(form[j]);
    rest = with_like_terms_merged(rest);
    if (rest.size() < form.size() && is_nonnegative_by_terms(rest, context, state)) return true;
  }
  return false;
}

}  // namespace

bool is_nonnegative(const NormalForm& form, const Cond& context, ProofState& state) {
  return is_nonnegative_by_terms(form, context, state) ||
         (may_be_bounded(form) && range_of(form, context, state).is_nonnegative()) ||
         is_nonnegative_by_branch(form, context, state) || is_nonnegative_by_tangent(form, context, state) ||
         is_logarithm_of_larger(form, context, state);
}

bool is_at_least(const NormalForm& a, const NormalForm& b, const Cond& context, ProofState& state) {
  constexpr size_t kMaxTerms = 12;
  NormalForm difference = with_like_terms_merged(add(a, negated(b), state));
  for (int step = 0; step < 3 && difference.size() <= kMaxTerms; step++) {
    if (is_nonnegative(difference, context, state)) return true;
    const Factor* divisor = nullptr;
    for (const Summand& term : difference)
      for (const Factor& f : term.factors)
        if (f.kind == FactorKind::Reciprocal && term.binders.empty()) divisor = &f;
    if (!divisor || !is_positive(divisor->args[0], context, state)) return false;
    const Factor found = *divisor;
    const std::string text = key(found);
    NormalForm multiplied;
    for (Summand& term : difference) {
      auto it = std::find_if(term.factors.begin(), term.factors.end(), [&](const Factor& f) { return key(f) == text; });
      if (it == term.factors.end()) {
        for (Summand& product : multiply({term}, found.args[0], context, state))
          multiplied.push_back(std::move(product));
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
  if (may_be_bounded(form) && range_of(form, context, state).is_positive()) return true;
  for (size_t i = 0; i < form.size(); i++) {
    const Summand& term = form[i];
    const Cond inner = context && term.guard;
    const bool is_seen =
        term.coefficient.numerator() > 0 &&
        std::ranges::all_of(term.factors, [&](const Factor& f) { return is_positive(f, inner, state); }) &&
        occurs(term, context, state);
    if (!is_seen) continue;
    // What is left without it: the sum of all may be 0 where this is not, as 1 - cos x.
    NormalForm rest = form;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    if (is_nonnegative(rest, context, state)) return true;
  }
  return false;
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
  if (factor.kind == FactorKind::Call && factor.function == Function::Sqrt &&
      is_positive(factor.args[0], context, state))
    return true;
  if (factor.kind == FactorKind::Read || factor.kind == FactorKind::Size) return false;
  Factor single = factor;
  single.exponent = 1;
  const ValueRange range = range_of(single, context, state);
  return range.is_positive() || range.is_negative();
}

}  // namespace gopt::verifier
