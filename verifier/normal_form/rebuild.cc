#include "rebuild.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "arithmetic.h"
#include "equality/covers.h"
#include "functions.h"
#include "maximum.h"

namespace gopt::verifier {
namespace {

class Replacer {
 public:
  Replacer(std::string element, const NormalForm& value, ProofState& state)
      : element_(std::move(element)), value_(value), state_(state) {}

  NormalForm operator()(const NormalForm& form, const Cond& context) {
    NormalForm r;
    for (const Summand& term : form) {
      const Cond inner = context && term.guard;
      Summand rest = term;
      rest.factors.clear();
      if (auto least = minimum_of(term, inner)) {
        rest.coefficient = -rest.coefficient;
        r = add(std::move(r), multiply({rest}, *least, inner, state_), state_);
        continue;
      }
      NormalForm product{rest};
      for (const Factor& factor : term.factors) product = multiply(product, replaced(factor, inner), inner, state_);
      r = add(std::move(r), product, state_);
    }
    return with_like_terms_merged(r);
  }

 private:
  bool is_touched(const NormalForm& form) const {
    return std::any_of(form.begin(), form.end(), [&](const Summand& term) {
      return std::any_of(term.factors.begin(), term.factors.end(), [&](const Factor& f) { return is_touched(f); });
    });
  }
  bool is_touched(const Factor& factor) const {
    if (factor.kind == FactorKind::Read) return key(factor, false) == element_;
    return std::any_of(factor.args.begin(), factor.args.end(), [&](const NormalForm& a) { return is_touched(a); }) ||
           std::any_of(factor.branches.begin(), factor.branches.end(),
                       [&](const Branch& b) { return is_touched(b.value); });
  }

  // A negated maximum of the negated is a minimum, which is moved into maxima.
  std::optional<NormalForm> minimum_of(const Summand& term, const Cond& context) {
    if (term.coefficient.numerator() > 0 || term.factors.size() != 1 || !is_touched(term.factors[0]))
      return std::nullopt;
    const Factor& f = term.factors[0];
    if (f.kind != FactorKind::Maximum || f.exponent != 1) return std::nullopt;
    std::optional<NormalForm> least;
    for (const Branch& b : f.branches) {
      if (!b.binders.empty() || !b.guard.is_true()) return std::nullopt;
      const NormalForm own = negated((*this)(b.value, context));
      least = least ? minimum(*least, own, context, state_) : own;
    }
    return least;
  }

  NormalForm replaced(const Factor& factor, const Cond& context) {
    if (!is_touched(factor)) return as_form(factor);
    return powered(base(factor, context), factor.kind == FactorKind::Reciprocal ? 1 : factor.exponent, context, state_);
  }

  // With binders of its own wherever it is put.
  NormalForm fresh(const NormalForm& form) {
    NormalForm r;
    for (const Summand& term : form) {
      r.push_back(freshen(term, state_.pool));
      for (Factor& f : r.back().factors)
        for (Branch& b : f.branches) b = freshen(b, state_.pool);
    }
    return r;
  }

  NormalForm base(const Factor& factor, const Cond& context) {
    switch (factor.kind) {
      case FactorKind::Read: return fresh(value_);
      case FactorKind::Reciprocal: return reciprocal((*this)(factor.args[0], context), context, state_);
      case FactorKind::IsLess:
      case FactorKind::IsEqual: return comparison(factor.kind, (*this)(factor.args[0], context), context, state_);
      case FactorKind::Maximum: {
        std::vector<Branch> branches;
        for (Branch b : factor.branches) {
          b.value = (*this)(b.value, context && b.guard);
          add_branch(branches, std::move(b), context, state_);
        }
        return maximum_over(std::move(branches), state_);
      }
      case FactorKind::Call: {
        std::vector<NormalForm> args;
        for (const NormalForm& a : factor.args) args.push_back((*this)(a, context));
        return apply(factor.function, std::move(args), context, state_);
      }
      case FactorKind::Product:
      case FactorKind::Opaque: {
        Factor r = factor;
        r.exponent = 1;
        for (NormalForm& a : r.args) a = (*this)(a, context);
        for (Branch& b : r.branches) b.value = (*this)(b.value, context && b.guard);
        return as_form(std::move(r));
      }
      case FactorKind::Size:
      case FactorKind::Literal: return as_form(factor);
    }
    return {};
  }

  const std::string element_;
  const NormalForm& value_;
  ProofState& state_;
};

}  // namespace

NormalForm powered(const NormalForm& base, int exponent, const Cond& context, ProofState& state) {
  NormalForm r = one();
  const NormalForm step = exponent < 0 ? reciprocal(base, context, state) : base;
  for (int i = 0; i < std::abs(exponent); i++) r = multiply(r, step, context, state);
  return r;
}

NormalForm with_element(const NormalForm& form, const std::string& element, const NormalForm& value,
                        const Cond& context, ProofState& state) {
  return Replacer(element, value, state)(form, context);
}

}  // namespace gopt::verifier
