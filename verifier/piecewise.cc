#include "piecewise.h"

#include <algorithm>
#include <map>

#include "laws.h"

namespace gopt {
namespace {

using Kind = RealExpr::Kind;

RealExprPtr make(RealExpr e) { return std::make_shared<const RealExpr>(std::move(e)); }
RealExprPtr number(const Rational& value) { return make({Kind::Constant, value, "", {}, {}}); }

bool has_cases(const NormalForm& form) {
  return std::any_of(form.begin(), form.end(), [](const Term& term) {
    return std::any_of(term.factors.begin(), term.factors.end(), [](const Factor& f) {
      return f.kind == FactorKind::Maximum || f.kind == FactorKind::IsLess || f.kind == FactorKind::IsEqual ||
             std::any_of(f.args.begin(), f.args.end(), has_cases);
    });
  });
}

class PiecewiseEncoder {
 public:
  RealExprPtr operator()(const NormalForm& form) {
    RealExpr sum{Kind::Add, {}, "", {number(0)}, {}};
    for (const Term& term : form) sum.parts.push_back(encode(term));
    return make(std::move(sum));
  }

 private:
  RealExprPtr encode(const Term& term) {
    RealExpr product{Kind::Multiply, {}, "", {number(term.coefficient)}, {}};
    if (!term.binders.empty()) {
      // A sum over binders is one number; equal keys are equal numbers.
      Term bare = term;
      bare.coefficient = 1;
      product.parts.push_back(variable(key(NormalForm{bare})));
      return make(std::move(product));
    }
    for (const Factor& factor : term.factors) product.parts.push_back(encode(factor));
    return make({Kind::Guarded, {}, "", {make(std::move(product))}, term.guard});
  }

  RealExprPtr encode(const Factor& factor) {
    if (factor.kind == FactorKind::IsLess || factor.kind == FactorKind::IsEqual)
      return make({factor.kind == FactorKind::IsLess ? Kind::IsLess : Kind::IsEqual,
                   {},
                   "",
                   {(*this)(factor.args[0]), (*this)(factor.args[1])},
                   {}});
    if (factor.kind == FactorKind::Maximum) {
      std::vector<RealExprPtr> parts;
      std::vector<Branch> open;  // with binders or guards: together one number
      for (const Branch& b : factor.branches) {
        if (b.binders.empty() && b.guard.is_true()) {
          parts.push_back((*this)(b.value));
        } else {
          open.push_back(b);
        }
      }
      if (!open.empty()) {
        Factor rest = factor;
        rest.branches = open;
        parts.push_back(variable(key(rest)));
      }
      return make({Kind::Maximum, {}, "", std::move(parts), {}});
    }
    return variable(key(factor));
  }

  RealExprPtr variable(const std::string& factor_key) {
    const size_t number = names_.try_emplace(factor_key, names_.size()).first->second;
    return make({Kind::Variable, {}, "r" + std::to_string(number), {}, {}});
  }

  std::map<std::string, size_t> names_;
};

}  // namespace

bool is_zero_piecewise(const NormalForm& terms, const Cond& context, ProofState& state) {
  if (!has_cases(terms)) return false;
  return state.solver.is_zero(context, PiecewiseEncoder()(terms));
}

}  // namespace gopt
