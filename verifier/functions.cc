#include "functions.h"

#include <algorithm>
#include <map>

#include "arithmetic.h"
#include "laws.h"
#include "maximum.h"
#include "positivity.h"
#include "simplify.h"
#include "truth_table.h"

namespace gopt {
namespace {

// Where each term holds factor i of the first term, if all do and it is free of binders.
std::optional<std::vector<size_t>> shared_positions(const NormalForm& form, size_t i) {
  std::set<AtomId> symbols;
  collect_symbols(form[0].factors[i], symbols);
  for (const Term& term : form)
    for (AtomId binder : term.binders)
      if (symbols.count(binder)) return std::nullopt;
  const std::string wanted = key(form[0].factors[i]);
  std::vector<size_t> positions;
  for (const Term& term : form) {
    auto it = std::find_if(term.factors.begin(), term.factors.end(), [&](const Factor& f) { return key(f) == wanted; });
    if (it == term.factors.end()) return std::nullopt;
    positions.push_back(static_cast<size_t>(it - term.factors.begin()));
  }
  return positions;
}

void append_inverse(Term& term, Factor factor, bool is_size, const Cond& context, ProofState& state) {
  if (!is_size && !is_never_zero(factor, context, state)) {
    Factor bare = factor;
    bare.exponent = std::abs(factor.exponent);
    state.domains.demand("divisor", as_form(std::move(bare)), context);
  }
  factor.exponent = -factor.exponent;
  term.factors.push_back(std::move(factor));
}

// The coefficient of the term whose key comes first (of numbers, only where there is nothing else): it says which of a
// form and its multiples stands for all.
Rational leading_coefficient(const NormalForm& form) {
  const Term* first = nullptr;
  std::string smallest;
  for (const Term& term : form) {
    if (term.factors.empty() && form.size() > 1) continue;
    Term unsigned_term = term;
    unsigned_term.coefficient = 1;
    std::string text = key(NormalForm{unsigned_term});
    if (!first || text < smallest) {
      first = &term;
      smallest = std::move(text);
    }
  }
  return first ? first->coefficient : Rational(1);
}
bool is_negative(const NormalForm& form) { return leading_coefficient(form).numerator() < 0; }

bool is_exponential(const Factor& f) { return f.kind == FactorKind::Call && f.function == Function::Exp; }

bool holds_binder(const Term& term, const Factor& factor) {
  std::set<AtomId> symbols;
  collect_symbols(factor, symbols);
  return std::any_of(term.binders.begin(), term.binders.end(), [&](AtomId b) { return symbols.count(b) > 0; });
}

// What a term divides by, other than sizes, which are not 0 where the term counts.
std::optional<Factor> inner_divisor(const NormalForm& form) {
  for (const Term& term : form)
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
  for (Term& term : form) {
    auto it = std::find_if(term.factors.begin(), term.factors.end(),
                           [&](const Factor& f) { return f.exponent < 0 && key(f, false) == text; });
    if (it == term.factors.end()) {
      for (Term& product : multiply({term}, divisor, context, state)) r.push_back(std::move(product));
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
    for (size_t t = 0; t < rest.size(); t++)
      rest[t].factors.erase(rest[t].factors.begin() + static_cast<ptrdiff_t>((*positions)[t]));
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
  if (form.empty()) throw ProofLimit("a divisor is 0 everywhere");
  NormalForm r = one();
  const bool is_size = is_positive_size(form, context, state);
  const Rational coefficient = leading_coefficient(form);
  r[0].coefficient = coefficient.inverse();
  for (Term& term : form) term.coefficient = term.coefficient * r[0].coefficient;
  for (size_t i = 0; i < form[0].factors.size();) {
    const auto positions = shared_positions(form, i);
    if (!positions) {
      i++;
      continue;
    }
    Factor inverse = form[0].factors[i];
    for (size_t t = 0; t < form.size(); t++)
      form[t].factors.erase(form[t].factors.begin() + static_cast<ptrdiff_t>((*positions)[t]));
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
  const auto is_plain = [](const Term& term) { return term.binders.empty() && term.guard.is_true(); };
  if (!std::all_of(difference.begin(), difference.end(), is_plain)) return std::nullopt;
  if (difference.size() == 1 && difference[0].factors.size() == 1) {
    const Factor& f = difference[0].factors[0];
    if (f.kind != FactorKind::Call || f.exponent != 1 || !is_odd_and_increasing(f.function)) return std::nullopt;
    NormalForm argument = f.args[0];
    for (Term& term : argument) term.coefficient = term.coefficient * difference[0].coefficient;
    return argument;
  }
  if (difference.size() != 2 || !(difference[0].coefficient == -difference[1].coefficient)) return std::nullopt;
  NormalForm exponents;
  for (const Term& term : difference) {
    for (const Factor& f : term.factors) {
      if (!is_exponential(f)) return std::nullopt;
      for (Term part : f.args[0]) {
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
  if (kind == FactorKind::IsEqual && is_negative(difference)) difference = negated(std::move(difference));
  Factor factor;
  factor.kind = kind;
  factor.args = {std::move(difference), {}};
  return as_form(std::move(factor));
}

namespace {

// The least power of each exponential, free of binders, by which a sum of them may be divided so that the least power
// that is left is 0: one way to write e^a (1 + e^b) = e^a + e^(a+b).
std::vector<Factor> least_exponentials(const NormalForm& form) {
  std::set<AtomId> binders;
  for (const Term& term : form) binders.insert(term.binders.begin(), term.binders.end());
  std::map<std::string, Factor> found;
  for (const Term& term : form) {
    for (const Factor& f : term.factors) {
      if (!is_exponential(f)) continue;
      std::set<AtomId> symbols;
      collect_symbols(f, symbols);
      const bool is_bound = std::any_of(symbols.begin(), symbols.end(), [&](AtomId s) { return binders.count(s) > 0; });
      if (!is_bound) found.emplace(key(f, false), f);
    }
  }
  std::vector<Factor> least;
  for (auto& [text, factor] : found) {
    std::optional<int> lowest;
    for (const Term& term : form) {
      int power = 0;
      for (const Factor& f : term.factors)
        if (f.kind == FactorKind::Call && key(f, false) == text) power += f.exponent;
      lowest = lowest ? std::min(*lowest, power) : power;
    }
    if (*lowest == 0) continue;
    factor.exponent = *lowest;
    least.push_back(std::move(factor));
  }
  return least;
}

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
      for (Term& term : half) term.coefficient = term.coefficient * Rational(f.exponent, 2);
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

// ln(e^a b / c) = a + ln b - ln c, for every exponential by which the argument can be divided, and what it is divided
// by where that is positive.
NormalForm logarithm(NormalForm argument, const Cond& context, ProofState& state) {
  NormalForm outside;
  for (const Factor& least : least_exponentials(argument)) {
    Factor inverse = least;
    inverse.exponent = -least.exponent;
    for (Term& term : argument) {
      term.factors.push_back(inverse);
      merge_factors(term, context, state);
    }
    for (Term term : least.args[0]) {
      term.coefficient = term.coefficient * Rational(least.exponent);
      outside.push_back(std::move(term));
    }
  }
  if (as_number(argument) == Rational(1)) return outside;
  // ln(x^2) = 2 ln|x|.
  if (const auto root = exact_root(argument, context, state)) {
    for (Term& term : logarithm(*root, context, state)) {
      term.coefficient = term.coefficient * Rational(2);
      outside.push_back(std::move(term));
    }
    return outside;
  }
  if (!is_positive(argument, context, state)) state.domains.demand("log", argument, context);
  for (size_t i = 0; !argument.empty() && i < argument[0].factors.size();) {
    const Factor shared = argument[0].factors[i];
    const auto positions =
        shared.kind == FactorKind::Reciprocal && shared.exponent == -1 && is_positive(shared.args[0], context, state)
            ? shared_positions(argument, i)
            : std::nullopt;
    if (!positions) {
      i++;
      continue;
    }
    for (size_t t = 0; t < argument.size(); t++)
      argument[t].factors.erase(argument[t].factors.begin() + static_cast<ptrdiff_t>((*positions)[t]));
    outside = add(std::move(outside), negated(logarithm(shared.args[0], context, state)), state);
  }
  if (as_number(argument) == Rational(1)) return outside;
  return add(as_form(make_call(Function::Log, {std::move(argument)})), outside, state);
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

// A factor, free of binders, that every term holds twice.
std::optional<Factor> shared_square(const NormalForm& form) {
  for (size_t i = 0; !form.empty() && i < form[0].factors.size(); i++) {
    const Factor& f = form[0].factors[i];
    const std::string text = key(f);
    const bool is_shared = std::all_of(form.begin(), form.end(), [&](const Term& term) {
      return std::count_if(term.factors.begin(), term.factors.end(),
                           [&](const Factor& other) { return key(other) == text; }) >= 2;
    });
    if (is_shared && shared_positions(form, i)) return f;
  }
  return std::nullopt;
}

// sqrt(c^2 f^2 r) = |c f| sqrt(r), where the rest r is not negative if there are factors f: where f is 0, the left has
// a value whatever r is. The radicand becomes r; |c f| is returned.
NormalForm taken_out_of_root(NormalForm& radicand, const Cond& context, ProofState& state) {
  NormalForm outside = one(), rest = radicand;
  while (const auto shared = shared_square(rest)) {
    const std::string text = key(*shared);
    for (Term& term : rest)
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
  for (Term& term : radicand) term.coefficient = term.coefficient * (root * root).inverse();
  for (Term& term : outside) term.coefficient = term.coefficient * root;
  return outside;
}

NormalForm square_root_of(NormalForm radicand, const Cond& context, ProofState& state) {
  if (auto root = exact_root(radicand, context, state)) return *std::move(root);
  const NormalForm outside = taken_out_of_root(radicand, context, state);
  if (!is_nonnegative(radicand, context, state)) state.domains.demand("sqrt", radicand, context);
  return multiply(outside, as_form(make_call(Function::Sqrt, {std::move(radicand)})), context, state);
}

NormalForm power(std::vector<NormalForm> args, const Cond& context, ProofState& state) {
  const auto exponent = as_number(args[1]);
  constexpr int64_t kMaxPower = 4;
  if (exponent && exponent->denominator() == 1 && exponent->numerator() >= 0 && exponent->numerator() <= kMaxPower) {
    NormalForm r = one();
    for (int64_t i = 0; i < exponent->numerator(); i++) r = multiply(r, args[0], context, state);
    return r;
  }
  if (exponent == Rational(-1)) return reciprocal(args[0], context, state);
  if (exponent == Rational(1, 2)) return square_root_of(std::move(args[0]), context, state);
  state.domains.demand("pow " + key(args[1]), args[0], context);
  return as_form(make_call(Function::Pow, std::move(args)));
}

// Whether the term is an integer whatever the inputs are.
bool is_integral(const Term& term) {
  return term.coefficient.denominator() == 1 &&
         std::all_of(term.factors.begin(), term.factors.end(), [](const Factor& f) {
           if (f.exponent < 1) return false;
           if (is_comparison(f) || f.kind == FactorKind::Size) return true;
           return f.kind == FactorKind::Call &&
                  (f.function == Function::Floor || f.function == Function::Round || f.function == Function::Trunc);
         });
}

// floor(n + x) = n + floor(x) for an integer n, and what is an integer is left as it is by all roundings.
NormalForm rounded(Function function, const NormalForm& argument, ProofState& state) {
  NormalForm whole, rest;
  for (const Term& term : argument) (is_integral(term) ? whole : rest).push_back(term);
  if (rest.empty()) return whole;
  if (function != Function::Floor) return as_form(make_call(function, {argument}));
  return add(std::move(whole), as_form(make_call(function, {std::move(rest)})), state);
}

}  // namespace

NormalForm apply(Function function, std::vector<NormalForm> args, const Cond& context, ProofState& state) {
  for (NormalForm& a : args) a = with_like_terms_merged(a);
  if (function == Function::Pow) return power(std::move(args), context, state);
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
  if (function == Function::Floor || function == Function::Round || function == Function::Trunc) {
    NormalForm r = rounded(function, args[0], state);
    return is_opposite ? negated(std::move(r)) : r;
  }
  if (has_partial_domain(function)) state.domains.demand(std::string(function_text(function)), args.back(), context);
  NormalForm r = as_form(make_call(function, std::move(args)));
  return is_opposite ? negated(std::move(r)) : r;
}

}  // namespace gopt
