#include "monotone_maximum.h"

#include <algorithm>

#include "arithmetic.h"
#include "equality/binder_change.h"
#include "equality/positivity.h"
#include "functions.h"
#include "maximum.h"
#include "monotone.h"
#include "rebuild.h"

namespace gopt::verifier {
namespace {

void scale(NormalForm& form, const Rational& by) {
  for (Summand& term : form) term.coefficient = term.coefficient * by;
}

bool is_number(const Summand& term) { return term.binders.empty() && term.factors.empty() && term.guard.is_true(); }

bool is_increasing(Function f) {
  switch (f) {
    case Function::Tanh:
    case Function::Erf:
    case Function::Atan:
    case Function::Sinh:
    case Function::Asinh:
    case Function::Floor:
    case Function::Round:
    case Function::Trunc: return true;
    default: return false;
  }
}

// coefficient * f(argument), for a monotone f: an exponential, a named function, or the reciprocal of what is positive.
struct Monotone {
  enum class Kind { Exponential, Call, Reciprocal } kind;
  Function function = Function::Exp;
  NormalForm argument;
};

std::optional<Monotone> as_monotone(const Summand& term, ProofState& state) {
  if (!term.binders.empty() || !term.guard.is_true() || term.factors.empty()) return std::nullopt;
  const Factor& first = term.factors[0];
  if (first.kind == FactorKind::Call && first.function == Function::Exp) {
    NormalForm argument;
    for (const Factor& f : term.factors) {
      if (f.kind != FactorKind::Call || f.function != Function::Exp) return std::nullopt;
      for (Summand part : f.args[0]) {
        part.coefficient = part.coefficient * Rational(f.exponent);
        argument.push_back(std::move(part));
      }
    }
    return Monotone{Monotone::Kind::Exponential, Function::Exp, std::move(argument)};
  }
  if (term.factors.size() != 1) return std::nullopt;
  const bool is_root = first.kind == FactorKind::Call && first.function == Function::Sqrt && first.exponent == 1 &&
                       is_nonnegative(first.args[0], Cond(), state);
  if (is_root || (first.kind == FactorKind::Call && first.exponent == 1 && is_increasing(first.function)))
    return Monotone{Monotone::Kind::Call, first.function, first.args[0]};
  if (first.kind == FactorKind::Reciprocal && first.exponent == -1 && is_positive(first.args[0], Cond(), state))
    return Monotone{Monotone::Kind::Reciprocal, Function::Exp, first.args[0]};
  return std::nullopt;
}

}  // namespace

std::optional<NormalForm> monotone_taken_out(const std::vector<Branch>& branches, ProofState& state) {
  std::optional<Monotone> common;
  Rational coefficient = 1;
  for (const Branch& b : branches) {
    if (b.value.size() != 1) continue;
    if (const auto found = as_monotone(b.value[0], state)) {
      common = found;
      coefficient = b.value[0].coefficient;
      break;
    }
  }
  if (!common) return std::nullopt;
  const bool decreases = (coefficient.numerator() < 0) != (common->kind == Monotone::Kind::Reciprocal);
  std::vector<Branch> inner;
  for (Branch b : branches) {
    const auto number = as_number(b.value);
    const auto own = b.value.size() == 1 ? as_monotone(b.value[0], state) : std::nullopt;
    if (own && own->kind == common->kind && own->function == common->function &&
        b.value[0].coefficient == coefficient) {
      b.value = own->argument;
    } else if (common->kind == Monotone::Kind::Exponential && number == coefficient) {
      b.value.clear();
    } else if (common->kind == Monotone::Kind::Call && b.value.empty()) {
      b.value.clear();  // each of these functions is 0 at 0
    } else {
      return std::nullopt;
    }
    if (decreases) b.value = negated(std::move(b.value));
    add_branch(inner, std::move(b), Cond(), state);
  }
  NormalForm argument = maximum_over(std::move(inner), state);
  if (decreases) argument = negated(std::move(argument));
  if (common->kind == Monotone::Kind::Reciprocal && !is_positive(argument, Cond(), state)) return std::nullopt;
  NormalForm r = common->kind == Monotone::Kind::Reciprocal
                     ? reciprocal(std::move(argument), Cond(), state)
                     : apply(common->function, {std::move(argument)}, Cond(), state);
  scale(r, coefficient);
  return r;
}

std::optional<NormalForm> monotone_but_for_a_number(const std::vector<Branch>& branches, ProofState& state) {
  for (const Branch& b : branches) {
    const auto own = std::find_if(b.value.begin(), b.value.end(), is_number);
    if (b.value.size() != 2 || own == b.value.end()) continue;
    NormalForm number = one();
    number[0].coefficient = own->coefficient;
    std::vector<Branch> rest = branches;
    for (Branch& r : rest) r.value = with_like_terms_merged(add(r.value, negated(number), state));
    if (auto found = monotone_taken_out(rest, state)) return add(*std::move(found), number, state);
  }
  return std::nullopt;
}

std::optional<NormalForm> monotone_of_two(const NormalForm& a, const NormalForm& b, const Cond& context,
                                          ProofState& state) {
  const auto x = sole_element(a), y = sole_element(b);
  if (!x || !y) return std::nullopt;
  const std::string text = key(*x, false);
  const DemandsSoFar demanded(state);
  const NormalForm element = as_form(*x), other = as_form(*y);
  if (key(with_element(a, text, other, context, state)) != key(with_like_terms_merged(b))) return std::nullopt;
  const auto direction = direction_of(a, text, state);
  if (!direction || *direction == 0) return std::nullopt;
  const NormalForm inner =
      *direction > 0 ? maximum(element, other, context, state) : minimum(element, other, context, state);
  return with_element(a, text, inner, context, state);
}

namespace {

// Whether the maximum is over something: that of nothing is -inf, of which functions make something else.
bool is_over_something(const Branch& branch, const Cond& context, ProofState& state) {
  Cond some = branch.guard;
  for (AtomId binder : branch.binders) some = where_some(some, binder);
  return !some.is_false() && state.solver.entails(context, some);
}

}  // namespace

void take_monotone_out(Branch& branch, const Cond& context, ProofState& state) {
  branch.value = with_like_terms_merged(branch.value);
  const auto element = sole_element(branch);
  if (!element) return;
  const std::string text = key(*element, false);
  const auto direction = direction_of(branch.value, text, state);
  if (!direction || *direction == 0 || !is_over_something(branch, context, state)) return;
  NormalForm inner = as_form(*element);
  if (*direction < 0) inner = negated(std::move(inner));
  Branch only{branch.binders, branch.guard, std::move(inner)};
  if (!simplify_branch(only, context, state)) return;
  inner = maximum_over({std::move(only)}, state);
  if (*direction < 0) inner = negated(std::move(inner));
  const DemandsSoFar demanded(state);
  branch = Branch{{}, Cond(), with_element(branch.value, text, inner, context, state)};
}

}  // namespace gopt::verifier
