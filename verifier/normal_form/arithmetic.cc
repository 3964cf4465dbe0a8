#include "arithmetic.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "laws.h"
#include "simplify.h"

namespace gopt::verifier {

NormalForm add(NormalForm a, const NormalForm& b, ProofState& state) {
  a.insert(a.end(), b.begin(), b.end());
  apply_product_laws(a, state);
  return a;
}

NormalForm multiply(const NormalForm& a, const NormalForm& b, const Cond& context, ProofState& state) {
  state.solver.work(state.solver.limits().units_of_a_term * a.size() * b.size());
  NormalForm r;
  for (const Summand& x : a) {
    for (const Summand& other : b) {
      Summand y = freshen(other, state.pool);
      y.coefficient = x.coefficient * y.coefficient;
      y.binders.insert(y.binders.begin(), x.binders.begin(), x.binders.end());
      y.guard = x.guard && y.guard;
      y.factors.insert(y.factors.begin(), x.factors.begin(), x.factors.end());
      if (y.guard.is_false()) continue;
      merge_factors(y, context && y.guard, state);
      r.push_back(std::move(y));
    }
  }
  apply_product_laws(r, state);
  return r;
}

NormalForm with_like_terms_merged(const NormalForm& form) {
  NormalForm r;
  std::map<std::string, size_t> places;
  for (const Summand& term : form) {
    Summand unit = term;
    unit.coefficient = 1;
    const auto [it, is_new] = places.try_emplace(key(NormalForm{std::move(unit)}), r.size());
    if (is_new) {
      r.push_back(term);
    } else {
      r[it->second].coefficient = r[it->second].coefficient + term.coefficient;
    }
  }
  std::erase_if(r, [](const Summand& term) { return term.coefficient.is_zero(); });
  return r;
}

namespace {

// The argument, where the term is a logarithm alone: e^(ln x) is x, wherever there is a logarithm.
const NormalForm* argument_of_logarithm(const Summand& term) {
  const bool is_logarithm = term.coefficient == Rational(1) && term.binders.empty() && term.guard.is_true() &&
                            term.factors.size() == 1 && term.factors[0].kind == FactorKind::Call &&
                            term.factors[0].function == Function::Log && term.factors[0].exponent == 1;
  return is_logarithm ? &term.factors[0].args[0] : nullptr;
}

}  // namespace

NormalForm exponential(const NormalForm& form, const Cond& context, ProofState& state) {
  NormalForm r = one();
  for (Summand term : with_like_terms_merged(form)) {
    // e^(n x / d) = (e^(x/d))^n.
    constexpr int64_t kMaxExponent = 16;
    const int64_t numerator = term.coefficient.numerator();
    int exponent = numerator < 0 ? -1 : 1;
    if (std::abs(numerator) <= kMaxExponent) exponent = static_cast<int>(numerator);
    term.coefficient = term.coefficient * Rational(1, exponent);
    Cond guard;
    for (const Cond& literal : conjuncts(term.guard))
      if (!term.binders.empty() || !state.solver.entails(context, literal)) guard = guard && literal;
    term.guard = guard;
    if (const NormalForm* argument = argument_of_logarithm(term)) {
      Factor inverse;
      inverse.kind = FactorKind::Reciprocal;
      inverse.exponent = -1;
      inverse.args = {*argument};
      for (int k = 0; k < exponent; k++) r = multiply(r, *argument, context, state);
      for (int k = exponent; k < 0; k++)
        for (Summand& t : r) t.factors.push_back(inverse);
      continue;
    }
    Factor factor = make_call(Function::Exp, {NormalForm{std::move(term)}});
    factor.exponent = exponent;
    for (Summand& t : r) t.factors.push_back(factor);
  }
  for (Summand& t : r) merge_factors(t, context && t.guard, state);
  return r;
}

std::optional<Rational> ratio(const NormalForm& a, const NormalForm& b) {
  if (a.empty() || a.size() != b.size()) return std::nullopt;
  std::optional<Rational> found;
  for (const Summand& term : a) {
    Summand unit = term;
    unit.coefficient = 1;
    const std::string text = key(NormalForm{unit});
    auto it = std::find_if(b.begin(), b.end(), [&](const Summand& other) {
      Summand bare = other;
      bare.coefficient = 1;
      return key(NormalForm{bare}) == text;
    });
    if (it == b.end()) return std::nullopt;
    const Rational own = it->coefficient * term.coefficient.inverse();
    if (found && !(*found == own)) return std::nullopt;
    found = own;
  }
  return found;
}

const Factor* sole_factor(const NormalForm& form, FactorKind kind, const Cond& context, ProofState& state) {
  if (form.size() != 1 || !(form[0].coefficient == Rational(1)) || !form[0].binders.empty()) return nullptr;
  if (form[0].factors.size() != 1 || form[0].factors[0].kind != kind || form[0].factors[0].exponent != 1)
    return nullptr;
  return state.solver.entails(context, form[0].guard) ? &form[0].factors[0] : nullptr;
}

std::optional<Rational> as_number(const NormalForm& form) {
  if (form.empty()) return Rational(0);
  if (form.size() != 1 || !form[0].binders.empty() || !form[0].factors.empty() || !form[0].guard.is_true())
    return std::nullopt;
  return form[0].coefficient;
}

}  // namespace gopt::verifier
