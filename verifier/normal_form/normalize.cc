#include "normalize.h"

#include <algorithm>
#include <cmath>

#include "arithmetic.h"
#include "common_factors.h"
#include "functions.h"
#include "maximum.h"
#include "monotone_maximum.h"
#include "select_hoisting.h"
#include "simplify.h"
#include "truth_table.h"

namespace gopt::verifier {
namespace {

enum OpaqueTag { kTruncatingDivision = 1, kConversion = 1000 };

class Normalizer {
 public:
  explicit Normalizer(ProofState& state) : state_(state) {}

  NormalForm operator()(const Expr& e, const Cond& context) {
    switch (e->kind) {
      case ExprKind::Constant: return constant_form(e->value);
      case ExprKind::Size: {
        NormalForm form = one();
        multiply_by_size(form[0], e->index, 1);
        if (form[0].coefficient.is_zero()) form.clear();
        return form;
      }
      case ExprKind::Read: return read_form(e, context);
      case ExprKind::Add: return sum((*this)(e->args[0], context), (*this)(e->args[1], context));
      case ExprKind::Subtract: return sum((*this)(e->args[0], context), negated((*this)(e->args[1], context)));
      case ExprKind::Multiply: {
        NormalForm a = (*this)(e->args[0], context);
        return product(a, (*this)(e->args[1], context), context);
      }
      case ExprKind::Divide: return quotient(e, context);
      case ExprKind::Maximum: {
        if (const Expr rest = beside_infinity(e, -1)) return (*this)(rest, context);
        const NormalForm a = simplified((*this)(e->args[0], context), context);
        return maximum(a, simplified((*this)(e->args[1], context), context), context, state_);
      }
      case ExprKind::Minimum: {
        if (const Expr rest = beside_infinity(e, 1)) return (*this)(rest, context);
        const NormalForm a = simplified((*this)(e->args[0], context), context);
        return minimum(a, simplified((*this)(e->args[1], context), context), context, state_);
      }
      case ExprKind::Less: return compared(FactorKind::IsLess, e, context);
      case ExprKind::Equal: return compared(FactorKind::IsEqual, e, context);
      case ExprKind::Call: return call_form(e, context);
      case ExprKind::Select: return select_form(e, context);
      case ExprKind::Choose: return choose_form(e, context);
      case ExprKind::Convert: {
        // Every type has 0 and 1.
        NormalForm value = simplified((*this)(e->args[0], context), context);
        if (is_indicator(value)) return value;
        Factor factor;
        factor.kind = FactorKind::Opaque;
        factor.tag = kConversion + static_cast<int>(e->type);
        factor.args = {std::move(value)};
        return as_form(std::move(factor));
      }
      case ExprKind::Reduce: return reduction(e, context);
    }
    return {};
  }

 private:
  NormalForm simplified(const NormalForm& form, const Cond& context) { return simplify(form, context, state_); }

  // 1 or -1 where the expression is infinite whatever the inputs are, which are finite; else 0.
  static int infinity_of(const Expr& e) {
    const auto arg = [&](size_t i) { return infinity_of(e->args[i]); };
    switch (e->kind) {
      case ExprKind::Constant: return std::isinf(e->value) ? (e->value < 0 ? -1 : 1) : 0;
      case ExprKind::Maximum: return std::max(arg(0), arg(1)) == 1 ? 1 : arg(0) == -1 && arg(1) == -1 ? -1 : 0;
      case ExprKind::Minimum: return std::min(arg(0), arg(1)) == -1 ? -1 : arg(0) == 1 && arg(1) == 1 ? 1 : 0;
      case ExprKind::Add: return arg(0) == -arg(1) ? 0 : arg(0) + arg(1) > 0 ? 1 : -1;
      case ExprKind::Subtract: return arg(0) == arg(1) ? 0 : arg(0) - arg(1) > 0 ? 1 : -1;
      default: return 0;
    }
  }
  // The other argument of a maximum or minimum, where one is the infinity that never counts.
  static Expr beside_infinity(const Expr& e, int neutral) {
    for (size_t i : {0, 1})
      if (infinity_of(e->args[i]) == neutral) return e->args[1 - i];
    return Expr();
  }

  // test ? yes : no, of which one is infinite, perhaps with something added.
  struct Choice {
    Expr test, yes, no;
  };
  static std::optional<Choice> infinite_choice(const Expr& e) {
    if (e->kind == ExprKind::Choose) {
      if (infinity_of(e->args[1]) == 0 && infinity_of(e->args[2]) == 0) return std::nullopt;
      return Choice{e->args[0], e->args[1], e->args[2]};
    }
    if (e->kind != ExprKind::Add && e->kind != ExprKind::Subtract) return std::nullopt;
    const auto join = [&](const Expr& a, const Expr& b) { return e->kind == ExprKind::Add ? a + b : a - b; };
    if (const auto first = infinite_choice(e->args[0]))
      return Choice{first->test, join(first->yes, e->args[1]), join(first->no, e->args[1])};
    if (const auto second = infinite_choice(e->args[1]))
      return Choice{second->test, join(e->args[0], second->yes), join(e->args[0], second->no)};
    return std::nullopt;
  }

  NormalForm constant_form(double value) {
    if (value == 0) return {};
    if (!std::isfinite(value)) throw NotExpressible("a constant is not finite");
    NormalForm form = one();
    if (auto rational = Rational::from_double(value)) {
      form[0].coefficient = *rational;
      return form;
    }
    Factor factor;
    factor.kind = FactorKind::Literal;
    factor.literal = std::fabs(value);
    form[0].coefficient = value < 0 ? -1 : 1;
    form[0].factors.push_back(std::move(factor));
    return form;
  }

  NormalForm read_form(const Expr& e, const Cond& context) {
    Factor factor;
    factor.kind = FactorKind::Read;
    factor.input = e->input;
    for (const Index& s : e->subscripts) factor.subscripts.push_back(simplify(s, context, state_));
    if (!state_.booleans.count(e->input)) return as_form(std::move(factor));
    // A truth value is 1 where it is not 0: as a comparison its laws are known.
    return sum(one(), negated(comparison(FactorKind::IsEqual, as_form(std::move(factor)), context, state_)));
  }

  NormalForm sum(NormalForm a, const NormalForm& b) { return add(std::move(a), b, state_); }
  NormalForm product(const NormalForm& a, const NormalForm& b, const Cond& context) {
    return multiply(a, b, context, state_);
  }

  NormalForm quotient(const Expr& e, const Cond& context) {
    const NormalForm numerator = (*this)(e->args[0], context);
    const NormalForm denominator = simplified((*this)(e->args[1], context), context);
    if (state_.truncating_division) {
      Factor factor;
      factor.kind = FactorKind::Opaque;
      factor.tag = kTruncatingDivision;
      factor.args = {simplified(numerator, context), denominator};
      return as_form(std::move(factor));
    }
    return product(numerator, reciprocal(denominator, context, state_), context);
  }

  NormalForm compared(FactorKind kind, const Expr& e, const Cond& context) {
    const int a = infinity_of(e->args[0]), b = infinity_of(e->args[1]);
    if (a != 0 || b != 0) return (kind == FactorKind::IsLess ? a < b : a == b) ? one() : NormalForm{};
    const NormalForm difference = sum((*this)(e->args[0], context), negated((*this)(e->args[1], context)));
    return comparison(kind, simplified(difference, context), context, state_);
  }

  NormalForm call_form(const Expr& e, const Cond& context) {
    if (e->function == Function::Exp) {
      if (infinity_of(e->args[0]) < 0) return {};
      if (const auto parts = infinite_choice(e->args[0]))
        return (*this)(choose(parts->test, call(Function::Exp, {parts->yes}), call(Function::Exp, {parts->no})),
                       context);
    }
    std::vector<NormalForm> args;
    for (const Expr& a : e->args) args.push_back(simplified((*this)(a, context), context));
    return apply(e->function, std::move(args), context, state_);
  }

  NormalForm select_form(const Expr& e, const Cond& context) {
    NormalForm r;
    for (int side = 0; side < 2; side++) {
      const Cond guard = simplify(side == 0 ? e->cond : !e->cond, context, state_);
      const Cond inner = context && guard;
      if (state_.solver.is_infeasible(inner)) continue;
      for (Summand term : (*this)(e->args[static_cast<size_t>(side)], inner)) {
        term.guard = term.guard && guard;
        r.push_back(std::move(term));
      }
    }
    return simplified(r, context);
  }

  // test != 0 ? a : b is b + [test != 0] (a - b); a comparison is its own indicator.
  NormalForm choose_form(const Expr& e, const Cond& context) {
    return chosen(simplified((*this)(e->args[0], context), context), (*this)(e->args[1], context),
                  (*this)(e->args[2], context), context);
  }

  NormalForm chosen(NormalForm test, const NormalForm& a, const NormalForm& b, const Cond& context) {
    if (auto number = as_number(test)) return number->is_zero() ? b : a;
    if (auto piecewise = extremum_of_choice(test, a, b, context)) return *std::move(piecewise);
    if (auto remainder = floored_remainder(test, a, b, context)) return *std::move(remainder);
    if (!is_indicator(test))
      test = sum(one(), negated(comparison(FactorKind::IsEqual, std::move(test), context, state_)));
    return sum(b, product(test, sum(a, negated(b)), context));
  }

  // d < 0 ? a : b is the larger of the two, or the smaller, where a - b is a multiple of d.
  std::optional<NormalForm> extremum_of_choice(const NormalForm& test, const NormalForm& a, const NormalForm& b,
                                               const Cond& context) {
    if (test.size() != 1 || test[0].factors.size() != 1 || test[0].factors[0].kind != FactorKind::IsLess ||
        !is_indicator(test))
      return std::nullopt;
    const NormalForm x = simplified(a, context), y = simplified(b, context);
    const auto multiple = ratio(test[0].factors[0].args[0], with_like_terms_merged(sum(x, negated(y))));
    if (!multiple) return std::nullopt;
    return multiple->numerator() < 0 ? maximum(x, y, context, state_) : minimum(x, y, context, state_);
  }

  // fmod(x, y) has the sign of x: with y added where the signs differ it is x - y floor(x / y).
  std::optional<NormalForm> floored_remainder(const NormalForm& test, const NormalForm& a, const NormalForm& b,
                                              const Cond& context) {
    const NormalForm r = simplified(b, context);
    const Factor* remainder = sole_factor(r, FactorKind::Call, context, state_);
    if (!remainder || remainder->function != Function::Fmod) return std::nullopt;
    const NormalForm &x = remainder->args[0], &y = remainder->args[1];
    const NormalForm added = with_like_terms_merged(simplified(sum(a, negated(r)), context));
    // First: what follows is a choice between remainders itself.
    if (key(added) != key(y)) return std::nullopt;
    const NormalForm r_by_sign = chosen(comparison(FactorKind::IsLess, y, context, state_), negated(r), r, context);
    const NormalForm expected = comparison(FactorKind::IsLess, simplified(r_by_sign, context), context, state_);
    if (key(test) != key(expected)) return std::nullopt;
    const NormalForm quotient = product(x, reciprocal(y, context, state_), context);
    return sum(x,
               negated(product(y, apply(Function::Floor, {simplified(quotient, context)}, context, state_), context)));
  }

  // ---- reductions ----

  NormalForm reduction(const Expr& e, const Cond& context) {
    switch (e->reduce) {
      case ReduceKind::Sum: return sum_reduction(e, context);
      case ReduceKind::Max: return max_reduction(e, false, context);
      case ReduceKind::Min: return negated(max_reduction(e, true, context));
      case ReduceKind::Product: return product_reduction(e, context);
    }
    return {};
  }

  struct Domain {
    std::vector<AtomId> binders;
    Cond guard;
    Substitution renamed;
  };
  Domain domain_of(const Expr& e) {
    Domain domain;
    for (const Binder& b : e->binders) {
      const AtomId fresh = state_.pool.fresh();
      domain.binders.push_back(fresh);
      domain.renamed[b.symbol] = Index::from_atom(fresh);
      domain.guard = domain.guard && within(Index::from_atom(fresh), Index(0), b.extent);
    }
    return domain;
  }

  Cond guard_of(const GuardedPart& part, const Domain& domain, const Cond& context) {
    return simplify(substitute(part.guard, domain.renamed), context && domain.guard, state_) && domain.guard;
  }

  NormalForm sum_reduction(const Expr& e, const Cond& context) {
    const Domain domain = domain_of(e);
    NormalForm form = (*this)(substitute(e->args[0], domain.renamed), context && domain.guard);
    for (Summand& term : form) {
      term.binders.insert(term.binders.end(), domain.binders.begin(), domain.binders.end());
      term.guard = term.guard && domain.guard;
    }
    return simplified(form, context);
  }

  NormalForm max_reduction(const Expr& e, bool negate, const Cond& context) {
    std::vector<Branch> branches;
    std::vector<GuardedPart> counted = guarded_parts(e->args[0], Cond());
    std::erase_if(counted, [&](const GuardedPart& p) { return infinity_of(p.value) == (negate ? 1 : -1); });
    for (const GuardedPart& part : counted) {
      const Domain domain = domain_of(e);
      const Cond guard = guard_of(part, domain, context);
      const Cond inner = context && guard;
      if (state_.solver.is_infeasible(inner)) continue;
      NormalForm value = simplified((*this)(substitute(part.value, domain.renamed), inner), inner);
      std::vector<Branch> parts;
      Branch all{domain.binders, guard, negate ? negated(std::move(value)) : std::move(value)};
      if (counted.size() == 1) take_monotone_out(all, context, state_);
      add_branch(parts, std::move(all), context, state_);
      for (Branch& b : parts)
        if (simplify_branch(b, context, state_)) branches.push_back(std::move(b));
    }
    return maximum_over(std::move(branches), state_);
  }

  // A product over a range whose parts differ is the product of those over its parts.
  NormalForm product_reduction(const Expr& e, const Cond& context) {
    NormalForm r = one();
    for (const GuardedPart& part : guarded_parts(e->args[0], Cond())) {
      const Domain domain = domain_of(e);
      const Cond guard = guard_of(part, domain, context);
      const Cond inner = context && guard;
      if (state_.solver.is_infeasible(inner)) continue;
      Branch all{domain.binders, guard, simplified((*this)(substitute(part.value, domain.renamed), inner), inner)};
      for (Branch& b : factors_of(all))
        if (!(as_number(b.value) == Rational(1))) r = product(r, product_over(std::move(b), inner, context), context);
    }
    return r;
  }

  // A product of products is that of the products of each factor.
  static std::vector<Branch> factors_of(const Branch& all) {
    if (all.value.size() != 1 || !all.value[0].binders.empty() || !all.value[0].guard.is_true()) return {all};
    std::vector<Branch> parts;
    const auto add = [&](NormalForm value) { parts.push_back({all.binders, all.guard, std::move(value)}); };
    NormalForm number = one();
    number[0].coefficient = all.value[0].coefficient;
    add(std::move(number));
    for (Factor f : all.value[0].factors) {
      const int count = f.kind == FactorKind::Reciprocal ? 1 : std::abs(f.exponent);
      if (f.kind != FactorKind::Reciprocal) f.exponent = f.exponent < 0 ? -1 : 1;
      for (int i = 0; i < count; i++) add(as_form(f));
    }
    return parts;
  }

  // A product of exponentials is that of the sum.
  std::optional<NormalForm> product_of_exponentials(const Branch& all, const Cond& context) {
    if (all.value.size() != 1 || !(all.value[0].coefficient == Rational(1)) || all.value[0].factors.empty() ||
        !all.value[0].binders.empty() || !all.value[0].guard.is_true())
      return std::nullopt;
    NormalForm exponent;
    for (const Factor& f : all.value[0].factors) {
      if (!is_exponential(f)) return std::nullopt;
      for (Summand term : f.args[0]) {
        term.coefficient = term.coefficient * Rational(f.exponent);
        term.binders.insert(term.binders.end(), all.binders.begin(), all.binders.end());
        term.guard = term.guard && all.guard;
        exponent.push_back(std::move(term));
      }
    }
    return exponential(simplified(exponent, context), context, state_);
  }

  NormalForm product_over(Branch all, const Cond& inner, const Cond& context) {
    if (auto together = product_of_exponentials(all, context)) return *std::move(together);
    // A product of products is one over both ranges.
    if (const Factor* product = sole_factor(all.value, FactorKind::Product, inner, state_)) {
      const Branch nested = product->branches[0];
      all.binders.insert(all.binders.end(), nested.binders.begin(), nested.binders.end());
      all.guard = all.guard && nested.guard;
      all.value = nested.value;
    }
    Factor factor;
    factor.kind = FactorKind::Product;
    factor.branches = {std::move(all)};
    return as_form(std::move(factor));
  }

  ProofState& state_;
};

}  // namespace

NormalForm normalize(const Expr& expr, const Cond& context, ProofState& state) {
  return simplify(Normalizer(state)(hoist_selects(expr), context), context, state);
}

}  // namespace gopt::verifier
