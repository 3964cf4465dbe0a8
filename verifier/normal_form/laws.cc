#include "laws.h"

#include <algorithm>
#include <map>

namespace gopt::verifier {

std::optional<Rational> value_at_zero(Function function) {
  switch (function) {
    case Function::Exp:
    case Function::Cos:
    case Function::Cosh: return Rational(1);
    case Function::Sqrt:
    case Function::Sin:
    case Function::Tan:
    case Function::Asin:
    case Function::Atan:
    case Function::Sinh:
    case Function::Asinh:
    case Function::Atanh:
    case Function::Tanh:
    case Function::Erf:
    case Function::Floor:
    case Function::Ceil:
    case Function::Round:
    case Function::Trunc:
    case Function::Narrow:
    case Function::IsNan: return Rational(0);
    case Function::Log:
    case Function::Acos:
    case Function::Acosh:
    case Function::Pow:
    case Function::Fmod: return std::nullopt;
  }
  return std::nullopt;
}

bool has_partial_domain(Function function) {
  switch (function) {
    case Function::Sqrt:
    case Function::Asin:
    case Function::Acos:
    case Function::Acosh:
    case Function::Atanh: return true;
    default: return false;
  }
}

Parity parity_of(Function function) {
  switch (function) {
    case Function::Sin:
    case Function::Tan:
    case Function::Asin:
    case Function::Atan:
    case Function::Sinh:
    case Function::Asinh:
    case Function::Atanh:
    case Function::Tanh:
    case Function::Erf:
    case Function::Round:
    case Function::Trunc:
    case Function::Narrow: return Parity::Odd;
    case Function::Cos:
    case Function::Cosh: return Parity::Even;
    case Function::Exp:
    case Function::Log:
    case Function::Sqrt:
    case Function::Acos:
    case Function::Acosh:
    case Function::Floor:
    case Function::Ceil:
    case Function::IsNan:
    case Function::Pow:
    case Function::Fmod: return Parity::None;
  }
  return Parity::None;
}

bool is_odd_and_increasing(Function function) {
  return function == Function::Tanh || function == Function::Erf || function == Function::Atan ||
         function == Function::Sinh || function == Function::Asinh;
}

namespace {

bool is_call(const Factor& factor, Function function) {
  return factor.kind == FactorKind::Call && factor.function == function && factor.exponent == 1;
}

// Positions of two equal factors that call `function`, if there are any.
std::optional<std::pair<size_t, size_t>> find_square(const Summand& term, Function function) {
  for (size_t i = 0; i < term.factors.size(); i++) {
    if (!is_call(term.factors[i], function)) continue;
    for (size_t j = i + 1; j < term.factors.size(); j++)
      if (is_call(term.factors[j], function) && key(term.factors[i]) == key(term.factors[j])) return std::pair{i, j};
  }
  return std::nullopt;
}

Summand without(Summand term, std::pair<size_t, size_t> positions) {
  term.factors.erase(term.factors.begin() + static_cast<ptrdiff_t>(positions.second));
  term.factors.erase(term.factors.begin() + static_cast<ptrdiff_t>(positions.first));
  return term;
}

// c sin(x)^2 r + c cos(x)^2 r = c r.
bool apply_pythagoras(NormalForm& form) {
  for (size_t i = 0; i < form.size(); i++) {
    const auto sines = find_square(form[i], Function::Sin);
    if (!sines) continue;
    Summand expected = form[i];
    expected.factors[sines->first].function = expected.factors[sines->second].function = Function::Cos;
    const std::string wanted = key(NormalForm{expected});
    for (size_t j = 0; j < form.size(); j++) {
      if (j == i || key(NormalForm{form[j]}) != wanted) continue;
      form[i] = without(form[i], *sines);
      form.erase(form.begin() + static_cast<ptrdiff_t>(j));
      return true;
    }
  }
  return false;
}

bool is_plainly_nonnegative(const Factor& factor) {
  if (factor.kind == FactorKind::Call)
    return factor.function == Function::Exp || factor.function == Function::Cosh || factor.function == Function::Sqrt;
  return factor.kind == FactorKind::Maximum &&
         std::any_of(factor.branches.begin(), factor.branches.end(),
                     [](const Branch& b) { return b.value.empty() && b.guard.is_true(); });
}
}  // namespace

bool is_plainly_nonnegative(const NormalForm& form) {
  return std::all_of(form.begin(), form.end(), [](const Summand& term) {
    std::map<std::string, int> odd;
    for (const Factor& factor : term.factors)
      if (!is_plainly_nonnegative(factor)) odd[key(factor)] ^= 1;
    return term.coefficient.numerator() > 0 &&
           std::all_of(odd.begin(), odd.end(), [](const auto& o) { return o.second == 0; });
  });
}

namespace {

bool apply_square_root(NormalForm& form, ProofState& state) {
  for (size_t i = 0; i < form.size(); i++) {
    const auto roots = find_square(form[i], Function::Sqrt);
    if (!roots) continue;
    const NormalForm radicand = form[i].factors[roots->first].args[0];
    if (!is_plainly_nonnegative(radicand)) continue;
    const Summand rest = without(form[i], *roots);
    form.erase(form.begin() + static_cast<ptrdiff_t>(i));
    for (const Summand& part : radicand) {
      Summand product = freshen(part, state.pool);
      product.coefficient = product.coefficient * rest.coefficient;
      product.guard = rest.guard && product.guard;
      product.binders.insert(product.binders.end(), rest.binders.begin(), rest.binders.end());
      product.factors.insert(product.factors.end(), rest.factors.begin(), rest.factors.end());
      form.push_back(std::move(product));
    }
    return true;
  }
  return false;
}

// 1 and 0 are their own squares.
bool drop_repeated_comparisons(NormalForm& form) {
  bool changed = false;
  for (Summand& term : form) {
    std::set<std::string> seen;
    changed |= std::erase_if(term.factors, [&](const Factor& f) {
                 const bool is_comparison = f.kind == FactorKind::IsLess || f.kind == FactorKind::IsEqual;
                 return is_comparison && f.exponent > 0 && !seen.insert(key(f, false)).second;
               }) > 0;
  }
  return changed;
}

}  // namespace

bool apply_product_laws(NormalForm& form, ProofState& state) {
  bool changed = drop_repeated_comparisons(form);
  while (apply_square_root(form, state) || apply_pythagoras(form)) changed = true;
  return changed;
}

}  // namespace gopt::verifier
