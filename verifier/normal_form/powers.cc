#include "powers.h"

#include <algorithm>
#include <map>

#include "arithmetic.h"
#include "common_factors.h"
#include "equality/positivity.h"
#include "functions.h"
#include "maximum.h"
#include "simplify.h"

namespace gopt::verifier {
namespace {

// sqrt(c^2 x^2 ...) = |c x ...|, and half the exponent of an exponential.
std::optional<NormalForm> exact_root(const NormalForm& radicand, const Cond& context, ProofState& state) {
  if (radicand.size() != 1 || !radicand[0].binders.empty() || !state.solver.entails(context, radicand[0].guard))
    return std::nullopt;
  const auto coefficient = square_root(radicand[0].coefficient);
  if (!coefficient) return std::nullopt;
  std::map<std::string, std::pair<Factor, int>> powers;
  NormalForm exponentials = one();
  for (const Factor& f : radicand[0].factors) {
    if (is_exponential(f)) {
      NormalForm half = f.args[0];
      for (Summand& term : half) term.coefficient = term.coefficient * Rational(f.exponent, 2);
      exponentials = multiply(exponentials, exponential(half, context, state), context, state);
      continue;
    }
    // A reciprocal is its own root's reciprocal only where its argument's root is known.
    if (f.exponent < 0) return std::nullopt;
    auto [it, is_new] = powers.try_emplace(key(f, false), f, 0);
    it->second.second += f.exponent;
  }
  NormalForm root = one();
  root[0].coefficient = *coefficient;
  for (const auto& [text, power] : powers) {
    if (power.second % 2 != 0) return std::nullopt;
    Factor single = power.first;
    single.exponent = 1;
    for (int k = 0; k < power.second / 2; k++) root = multiply(root, as_form(single), context, state);
  }
  if (!is_nonnegative(root, context, state)) root = maximum(root, negated(root), context, state);
  return multiply(root, exponentials, context, state);
}

// The largest q seen whose square divides n.
int64_t root_of_square_part(int64_t n) {
  constexpr int64_t kMaxPrime = 1000;
  int64_t q = 1;
  n = std::abs(n);
  for (int64_t p = 2; p <= kMaxPrime && p * p <= n; p++)
    for (; n % (p * p) == 0; n /= p * p) q *= p;
  return q;
}

// sqrt(c^2 f^2 r) = |c f| sqrt(r), where the rest r is not negative if there are factors f: where f is 0, the left has
// a value whatever r is. The radicand becomes r; |c f| is returned.
NormalForm taken_out_of_root(NormalForm& radicand, const Cond& context, ProofState& state) {
  NormalForm outside = one(), rest = radicand;
  while (const auto shared = shared_square(rest)) {
    const std::string text = key(*shared);
    for (Summand& term : rest)
      for (int copy = 0; copy < 2; copy++)
        term.factors.erase(std::find_if(term.factors.begin(), term.factors.end(),
                                        [&](const Factor& other) { return key(other) == text; }));
    outside[0].factors.push_back(*shared);
  }
  if (!outside[0].factors.empty() && is_nonnegative(rest, context, state)) {
    radicand = std::move(rest);
    if (!is_nonnegative(outside, context, state)) outside = maximum(outside, negated(outside), context, state);
  } else {
    outside = one();
  }
  const Rational leading = leading_coefficient(radicand);
  const Rational root(root_of_square_part(leading.numerator()), root_of_square_part(leading.denominator()));
  for (Summand& term : radicand) term.coefficient = term.coefficient * (root * root).inverse();
  for (Summand& term : outside) term.coefficient = term.coefficient * root;
  return outside;
}

// Of a factor of the argument that is not negative, so that it and the rest are positive where the argument is, and for
// which it is plainer than that of the argument: a divisor, a root, one of several factors.
std::optional<NormalForm> logarithm_of_factor(const Factor& f, const NormalForm& argument, const Cond& context,
                                              ProofState& state) {
  if (f.kind == FactorKind::Reciprocal && f.exponent == -1 && is_positive(f.args[0], context, state))
    return negated(logarithm(f.args[0], context, state));
  if (f.exponent == -1 && f.kind != FactorKind::Size && f.kind != FactorKind::Reciprocal) {
    Factor divisor = f;
    divisor.exponent = 1;
    if (is_nonnegative(as_form(divisor), context, state)) return negated(logarithm(as_form(divisor), context, state));
  }
  if (f.kind == FactorKind::Size || f.exponent != 1 || !is_nonnegative(as_form(f), context, state)) return std::nullopt;
  if (f.kind == FactorKind::Call && f.function == Function::Sqrt) {
    NormalForm half = logarithm(f.args[0], context, state);
    for (Summand& term : half) term.coefficient = term.coefficient * Rational(1, 2);
    return half;
  }
  const bool is_alone = argument.size() == 1 && argument[0].factors.size() == 1;
  return is_alone ? std::nullopt : std::optional(logarithm(as_form(f), context, state));
}

// ln(1 + e^-|x|) = ln(1 + e^x) - max(x, 0), and ln(1 + e^|x|) is |x| more.
std::optional<NormalForm> softplus_of_magnitude(const NormalForm& argument, const Cond& context, ProofState& state) {
  if (argument.size() != 2) return std::nullopt;
  const bool is_first = !argument[0].factors.empty();
  const Summand &exponential_term = argument[is_first ? 0 : 1], &number = argument[is_first ? 1 : 0];
  if (!(as_number({number}) == Rational(1)) || !(exponential_term.coefficient == Rational(1)) ||
      !exponential_term.binders.empty() || !exponential_term.guard.is_true() || exponential_term.factors.size() != 1)
    return std::nullopt;
  const Factor& e = exponential_term.factors[0];
  if (!is_exponential(e)) return std::nullopt;
  const Factor* magnitude = sole_factor(e.args[0], FactorKind::Maximum, context, state);
  if (!magnitude || magnitude->branches.size() != 2) return std::nullopt;
  NormalForm x = magnitude->branches[0].value;
  for (const Branch& b : magnitude->branches)
    if (!b.binders.empty() || !b.guard.is_true()) return std::nullopt;
  if (!(ratio(x, magnitude->branches[1].value) == Rational(-1))) return std::nullopt;
  if (leading_coefficient(x).numerator() < 0) x = negated(std::move(x));
  for (Summand& term : x) term.coefficient = term.coefficient * Rational(std::abs(e.exponent));
  NormalForm r = logarithm(add(one(), exponential(x, context, state), state), context, state);
  r = add(std::move(r), negated(maximum(x, {}, context, state)), state);
  if (e.exponent < 0) return r;
  NormalForm size = e.args[0];
  for (Summand& term : size) term.coefficient = term.coefficient * Rational(e.exponent);
  return add(std::move(r), size, state);
}

// sqrt(1 / x) = 1 / sqrt(x): both have a value where x is positive.
std::optional<NormalForm> inverse_root(const NormalForm& radicand, const Cond& context, ProofState& state) {
  if (radicand.size() != 1 || radicand[0].factors.size() != 1 || radicand[0].factors[0].exponent != -1 ||
      !radicand[0].binders.empty() || !radicand[0].guard.is_true() || radicand[0].coefficient.numerator() < 0)
    return std::nullopt;
  const Factor& f = radicand[0].factors[0];
  if (f.kind == FactorKind::Size || is_exponential(f)) return std::nullopt;
  Factor single = f;
  single.exponent = 1;
  NormalForm inside = f.kind == FactorKind::Reciprocal ? f.args[0] : as_form(single);
  for (Summand& term : inside) term.coefficient = term.coefficient * radicand[0].coefficient.inverse();
  return reciprocal(square_root_of(std::move(inside), context, state), context, state);
}

}  // namespace

// ln(e^a b / c) = a + ln b - ln c, for every exponential by which the argument can be divided, and what it is divided
// by where that is positive.
NormalForm logarithm(NormalForm argument, const Cond& context, ProofState& state) {
  NormalForm outside;
  for (const Factor& least : least_exponentials(argument)) {
    Factor inverse = least;
    inverse.exponent = -least.exponent;
    for (Summand& term : argument) {
      term.factors.push_back(inverse);
      merge_factors(term, context, state);
    }
    for (Summand term : least.args[0]) {
      term.coefficient = term.coefficient * Rational(least.exponent);
      outside.push_back(std::move(term));
    }
  }
  if (as_number(argument) == Rational(1)) return outside;
  if (auto plainer = softplus_of_magnitude(argument, context, state))
    return with_like_terms_merged(add(*std::move(plainer), outside, state));
  // ln(x^2) = 2 ln|x|.
  if (const auto root = exact_root(argument, context, state)) {
    for (Summand& term : logarithm(*root, context, state)) {
      term.coefficient = term.coefficient * Rational(2);
      outside.push_back(std::move(term));
    }
    return outside;
  }
  for (size_t i = 0; !argument.empty() && i < argument[0].factors.size();) {
    const Factor shared = argument[0].factors[i];
    const auto own = logarithm_of_factor(shared, argument, context, state);
    const auto positions = own ? shared_positions(argument, i) : std::nullopt;
    if (!positions) {
      i++;
      continue;
    }
    remove_factors(argument, *positions);
    outside = add(std::move(outside), *own, state);
  }
  if (as_number(argument) == Rational(1)) return outside;
  if (!is_positive(argument, context, state)) state.domains.demand("log", argument, context);
  return add(as_form(make_call(Function::Log, {std::move(argument)})), outside, state);
}

NormalForm square_root_of(NormalForm radicand, const Cond& context, ProofState& state) {
  if (auto root = exact_root(radicand, context, state)) return *std::move(root);
  if (auto inverse = inverse_root(radicand, context, state)) return *std::move(inverse);
  const NormalForm outside = taken_out_of_root(radicand, context, state);
  if (!is_nonnegative(radicand, context, state)) state.domains.demand("sqrt", radicand, context);
  return multiply(outside, as_form(make_call(Function::Sqrt, {std::move(radicand)})), context, state);
}

namespace {

// x^(n/2) as products, a root and what is divided by; nothing where there would be too many factors.
std::optional<NormalForm> power_of_halves(const NormalForm& base, const Rational& exponent, const Cond& context,
                                          ProofState& state) {
  constexpr int64_t kMaxPower = 8, kMaxPowerOfSum = 4;
  const int64_t halves = std::abs((exponent * Rational(2)).numerator()), whole = halves / 2;
  if (exponent.denominator() > 2 || whole > (base.size() > 1 ? kMaxPowerOfSum : kMaxPower)) return std::nullopt;
  NormalForm r = one();
  for (int64_t i = 0; i < whole; i++) r = multiply(r, base, context, state);
  if (exponent.numerator() < 0) r = whole == 0 ? one() : reciprocal(r, context, state);
  if (halves % 2 == 0) return r;
  const NormalForm root = square_root_of(base, context, state);
  return multiply(r, exponent.numerator() < 0 ? reciprocal(root, context, state) : root, context, state);
}

}  // namespace

NormalForm power(const NormalForm& base, const NormalForm& exponent, const Cond& context, ProofState& state) {
  if (const auto number = as_number(exponent))
    if (auto known = power_of_halves(base, *number, context, state)) return *std::move(known);
  // x^y = e^(y ln x) for a positive x.
  if (is_positive(base, context, state))
    return exponential(multiply(exponent, logarithm(base, context, state), context, state), context, state);
  state.domains.demand("pow " + key(exponent), base, context);
  return as_form(make_call(Function::Pow, {base, exponent}));
}

}  // namespace gopt::verifier
