#include "functions.h"

#include <algorithm>
#include <map>

#include "arithmetic.h"
#include "common_factors.h"
#include "equality/positivity.h"
#include "laws.h"
#include "maximum.h"
#include "powers.h"
#include "simplify.h"
#include "truth_table.h"

namespace gopt::verifier {
namespace {

void append_inverse(Summand& term, Factor factor, bool is_size, const Cond& context, ProofState& state) {
  if (!is_size && !is_never_zero(factor, context, state)) {
    Factor bare = factor;
    bare.exponent = std::abs(factor.exponent);
    state.domains.demand("divisor", as_form(std::move(bare)), context);
  }
  factor.exponent = -factor.exponent;
  term.factors.push_back(std::move(factor));
}

bool is_negative(const NormalForm& form) { return leading_coefficient(form).numerator() < 0; }

bool holds_binder(const Summand& term, const Factor& factor) {
  std::set<AtomId> symbols;
  collect_symbols(factor, symbols);
  return std::any_of(term.binders.begin(), term.binders.end(), [&](AtomId b) { return symbols.count(b) > 0; });
}

// What a term divides by, other than sizes, which are not 0 where the term counts.
std::optional<Factor> inner_divisor(const NormalForm& form) {
  for (const Summand& term : form)
    for (const Factor& f : term.factors)
      if (f.exponent < 0 && f.kind != FactorKind::Size && f.kind != FactorKind::Literal && !is_exponential(f) &&
          !holds_binder(term, f))
        return f;
  return std::nullopt;
}

// a + b/d as (a d + b) / d: the form becomes a d + b, and d is returned. What d may be was demanded where b was divided
// by it.
NormalForm divisor_taken_out(NormalForm& form, const Factor& inverse, const Cond& context, ProofState& state) {
  Factor plain = inverse;
  plain.exponent = 1;
  const NormalForm divisor = inverse.kind == FactorKind::Reciprocal ? inverse.args[0] : as_form(plain);
  const std::string text = key(inverse, false);
  NormalForm r;
  for (Summand& term : form) {
    auto it = std::find_if(term.factors.begin(), term.factors.end(),
                           [&](const Factor& f) { return f.exponent < 0 && key(f, false) == text; });
    if (it == term.factors.end()) {
      for (Summand& product : multiply({term}, divisor, context, state)) r.push_back(std::move(product));
      continue;
    }
    if (++it->exponent == 0) term.factors.erase(it);
    r.push_back(std::move(term));
  }
  form = with_like_terms_merged(r);
  return divisor;
}

bool is_comparison(const Factor& f) { return f.kind == FactorKind::IsLess || f.kind == FactorKind::IsEqual; }

}  // namespace

namespace {

// S / S = 1 for a positive S, where the form is nothing else.
void cancel_quotient(NormalForm& form, const Cond& context, ProofState& state) {
  if (form.empty()) return;
  for (size_t i = 0; i < form[0].factors.size(); i++) {
    const Factor f = form[0].factors[i];
    if (f.kind != FactorKind::Reciprocal || f.exponent != -1) continue;
    const auto positions = shared_positions(form, i);
    if (!positions) continue;
    NormalForm rest = form;
    remove_factors(rest, *positions);
    if (key(rest) != key(f.args[0]) || !is_positive(f.args[0], context, state)) continue;
    form = one();
    return;
  }
}

}  // namespace

// 1 / (c * f * rest) = 1/c * 1/f * 1/rest, for every factor f that all terms share; the rest has no divisors of its own
// and a leading coefficient of 1.
NormalForm reciprocal(NormalForm form, const Cond& context, ProofState& state) {
  constexpr int kMaxDivisors = 4;
  form = with_like_terms_merged(form);
  cancel_quotient(form, context, state);
  NormalForm outside = one();
  for (int step = 0; step < kMaxDivisors && form.size() > 1; step++) {
    const auto inner = inner_divisor(form);
    if (!inner) break;
    outside = multiply(outside, divisor_taken_out(form, *inner, context, state), context, state);
  }
  if (form.empty()) throw NotExpressible("a divisor is 0 everywhere");
  NormalForm r = one();
  const bool is_size = is_positive_size(form, context, state);
  const Rational coefficient = leading_coefficient(form);
  r[0].coefficient = coefficient.inverse();
  for (Summand& term : form) term.coefficient = term.coefficient * r[0].coefficient;
  for (size_t i = 0; i < form[0].factors.size();) {
    const auto positions = shared_positions(form, i);
    if (!positions) {
      i++;
      continue;
    }
    Factor inverse = form[0].factors[i];
    remove_factors(form, *positions);
    if (inverse.kind == FactorKind::Reciprocal && inverse.exponent == -1) {
      // 1 / (1 / x) = x, wherever there is a 1 / x.
      outside = multiply(outside, inverse.args[0], context, state);
      continue;
    }
    const bool counts = is_size || is_positive_size(inverse, context, state);
    append_inverse(r[0], std::move(inverse), counts, context, state);
  }
  const bool trivial = form.size() == 1 && form[0].binders.empty() && form[0].factors.empty() &&
                       state.solver.entails(context, form[0].guard);
  if (!trivial) {
    if (!is_positive(form, context, state)) state.domains.demand("divisor", form, context);
    Factor factor;
    factor.kind = FactorKind::Reciprocal;
    factor.exponent = -1;
    factor.args = {std::move(form)};
    r[0].factors.push_back(std::move(factor));
  }
  merge_factors(r[0], context, state);
  return multiply(outside, r, context, state);
}

namespace {

// What has the same sign: x - y for e^x - e^y, x for an odd function f(x) that increases; c times that for a number c.
std::optional<NormalForm> of_same_sign(const NormalForm& difference) {
  const auto is_plain = [](const Summand& term) { return term.binders.empty() && term.guard.is_true(); };
  if (!std::all_of(difference.begin(), difference.end(), is_plain)) return std::nullopt;
  if (difference.size() == 1 && difference[0].factors.size() == 1) {
    const Factor& f = difference[0].factors[0];
    if (f.kind != FactorKind::Call || f.exponent != 1 || !is_odd_and_increasing(f.function)) return std::nullopt;
    NormalForm argument = f.args[0];
    for (Summand& term : argument) term.coefficient = term.coefficient * difference[0].coefficient;
    return argument;
  }
  if (difference.size() != 2 || !(difference[0].coefficient == -difference[1].coefficient)) return std::nullopt;
  NormalForm exponents;
  for (const Summand& term : difference) {
    for (const Factor& f : term.factors) {
      if (!is_exponential(f)) return std::nullopt;
      for (Summand part : f.args[0]) {
        part.coefficient = part.coefficient * term.coefficient * Rational(f.exponent);
        exponents.push_back(std::move(part));
      }
    }
  }
  return with_like_terms_merged(exponents);
}

// Divisors that are positive do not change a sign.
NormalForm without_positive_divisors(NormalForm difference, const Cond& context, ProofState& state) {
  constexpr int kMaxDivisors = 3;
  for (int step = 0; step < kMaxDivisors; step++) {
    const auto inverse = inner_divisor(difference);
    if (!inverse || inverse->kind != FactorKind::Reciprocal || !is_positive(inverse->args[0], context, state)) break;
    divisor_taken_out(difference, *inverse, context, state);
  }
  return difference;
}

}  // namespace

// Only the difference matters: a < b is a - b < 0.
NormalForm comparison(FactorKind kind, NormalForm difference, const Cond& context, ProofState& state) {
  difference = without_positive_divisors(with_like_terms_merged(difference), context, state);
  if (auto simpler = of_same_sign(difference)) return comparison(kind, *std::move(simpler), context, state);
  if (auto number = as_number(difference)) {
    const bool holds = kind == FactorKind::IsLess ? number->numerator() < 0 : number->is_zero();
    return holds ? one() : NormalForm{};
  }
  if (auto table = by_truth_table({&difference}, [&](const std::vector<Rational>& d) {
        return Rational(kind == FactorKind::IsLess ? d[0].numerator() < 0 : d[0].is_zero());
      }))
    return *std::move(table);
  if (kind == FactorKind::IsLess && is_nonnegative(difference, context, state)) return {};
  if (kind == FactorKind::IsLess && is_nonnegative(negated(difference), context, state))
    return add(one(), negated(comparison(FactorKind::IsEqual, difference, context, state)), state);
  if (is_positive(difference, context, state) || is_positive(negated(difference), context, state)) return {};
  if (kind == FactorKind::IsEqual && is_negative(difference)) difference = negated(std::move(difference));
  Factor factor;
  factor.kind = kind;
  factor.args = {std::move(difference), {}};
  return as_form(std::move(factor));
}

namespace {

// Whether the term is an integer whatever the inputs are.
bool is_integral(const Summand& term) {
  return term.coefficient.denominator() == 1 &&
         std::all_of(term.factors.begin(), term.factors.end(), [](const Factor& f) {
           if (f.exponent < 1) return false;
           if (is_comparison(f) || f.kind == FactorKind::Size) return true;
           return f.kind == FactorKind::Call &&
                  (f.function == Function::Floor || f.function == Function::Round || f.function == Function::Trunc);
         });
}

// x - trunc(x), or its opposite.
bool is_fraction(const NormalForm& form) {
  for (size_t i = 0; i < form.size(); i++) {
    const Summand& whole = form[i];
    if (whole.factors.size() != 1 || whole.factors[0].kind != FactorKind::Call || !whole.binders.empty() ||
        whole.factors[0].function != Function::Trunc || whole.factors[0].exponent != 1)
      continue;
    NormalForm rest = form;
    rest.erase(rest.begin() + static_cast<ptrdiff_t>(i));
    for (Summand& term : rest) term.coefficient = -term.coefficient;
    if (std::abs(whole.coefficient.numerator()) == 1 && whole.guard.is_true() &&
        ratio(whole.factors[0].args[0], rest) == whole.coefficient)
      return true;
  }
  return false;
}

// floor(n + x) = n + floor(x) for an integer n, as round does for an even one, since it rounds halves to even numbers;
// what is an integer is left as it is by all roundings.
NormalForm rounded(Function function, const NormalForm& argument, ProofState& state) {
  if (std::all_of(argument.begin(), argument.end(), is_integral)) return argument;
  if (function == Function::Trunc && is_fraction(argument)) return {};
  NormalForm whole, rest;
  for (const Summand& term : argument) {
    const bool may_be_taken_out =
        function == Function::Floor || (function == Function::Round && term.coefficient.numerator() % 2 == 0);
    (is_integral(term) && may_be_taken_out ? whole : rest).push_back(term);
  }
  return add(std::move(whole), as_form(make_call(function, {std::move(rest)})), state);
}

}  // namespace

NormalForm apply(Function function, std::vector<NormalForm> args, const Cond& context, ProofState& state) {
  for (NormalForm& a : args) a = with_like_terms_merged(a);
  if (function == Function::Pow) return power(args[0], args[1], context, state);
  if (args.size() == 1 && args[0].empty())
    if (auto value = value_at_zero(function)) return value->is_zero() ? NormalForm{} : one();
  if (function == Function::Exp) return exponential(args[0], context, state);
  if (function == Function::Log) return logarithm(std::move(args[0]), context, state);
  if (function == Function::Sqrt) return square_root_of(std::move(args[0]), context, state);
  if (function == Function::Ceil) return negated(rounded(Function::Floor, negated(std::move(args[0])), state));
  bool is_opposite = false;
  if (args.size() == 1 && parity_of(function) != Parity::None && is_negative(args[0])) {
    args[0] = negated(args[0]);
    is_opposite = parity_of(function) == Parity::Odd;
  }
  // They divide by that: what they demand is what the quotient does.
  if (function == Function::Tan) reciprocal(apply(Function::Cos, {args[0]}, context, state), context, state);
  if (function == Function::Fmod) {
    reciprocal(args[1], context, state);
    const Factor* inner = sole_factor(args[0], FactorKind::Call, context, state);
    if (inner && inner->function == Function::Fmod && key(inner->args[1]) == key(args[1])) return args[0];
  }
  if (function == Function::Floor || function == Function::Round || function == Function::Trunc) {
    NormalForm r = rounded(function, args[0], state);
    return is_opposite ? negated(std::move(r)) : r;
  }
  if (has_partial_domain(function)) state.domains.demand(std::string(function_text(function)), args.back(), context);
  NormalForm r = as_form(make_call(function, std::move(args)));
  return is_opposite ? negated(std::move(r)) : r;
}

}  // namespace gopt::verifier
