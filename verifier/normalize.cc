#include "normalize.h"

#include <algorithm>
#include <cmath>

#include "arithmetic.h"
#include "laws.h"
#include "maximum.h"
#include "positivity.h"
#include "select_hoisting.h"
#include "simplify.h"

namespace gopt {
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
        const NormalForm a = simplified((*this)(e->args[0], context), context);
        return maximum(a, simplified((*this)(e->args[1], context), context), context, state_);
      }
      case ExprKind::Minimum: {
        const NormalForm a = simplified((*this)(e->args[0], context), context);
        return minimum(a, simplified((*this)(e->args[1], context), context), context, state_);
      }
      case ExprKind::Less: return comparison(FactorKind::IsLess, e, context);
      case ExprKind::Equal: return comparison(FactorKind::IsEqual, e, context);
      case ExprKind::Call: return call_form(e, context);
      case ExprKind::Select: return select_form(e, context);
      case ExprKind::Choose: return choose_form(e, context);
      case ExprKind::Convert: {
        Factor factor;
        factor.kind = FactorKind::Opaque;
        factor.tag = kConversion + static_cast<int>(e->type);
        factor.args = {simplified((*this)(e->args[0], context), context)};
        return as_form(std::move(factor));
      }
      case ExprKind::Reduce: return reduction(e, context);
    }
    return {};
  }

 private:
  NormalForm simplified(const NormalForm& form, const Cond& context) { return simplify(form, context, state_); }

  NormalForm constant_form(double value) {
    if (value == 0) return {};
    if (!std::isfinite(value)) throw ProofLimit("a constant is not finite");
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
    return as_form(std::move(factor));
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
    return product(numerator, reciprocal(denominator, context), context);
  }

  // 1 / (c * f * rest) = 1/c * 1/f * 1/rest, for every factor f that all terms share.
  NormalForm reciprocal(NormalForm form, const Cond& context) {
    if (form.empty()) throw ProofLimit("a divisor is 0 everywhere");
    NormalForm r = one();
    const bool is_size = is_positive_size(form, context, state_);
    if (form.size() == 1) {
      r[0].coefficient = form[0].coefficient.inverse();
      form[0].coefficient = Rational(1);
    }
    for (size_t i = 0; i < form[0].factors.size();) {
      const auto positions = shared_positions(form, i);
      if (!positions) {
        i++;
        continue;
      }
      Factor inverse = form[0].factors[i];
      for (size_t t = 0; t < form.size(); t++)
        form[t].factors.erase(form[t].factors.begin() + static_cast<ptrdiff_t>((*positions)[t]));
      const bool counts = is_size || is_positive_size(inverse, context, state_);
      append_inverse(r[0], std::move(inverse), counts, context);
    }
    const bool trivial = form.size() == 1 && form[0].binders.empty() && form[0].factors.empty() &&
                         state_.solver.entails(context, form[0].guard);
    if (!trivial) {
      if (!is_positive(form, context, state_)) state_.domains.demand("divisor", form, context);
      Factor factor;
      factor.kind = FactorKind::Reciprocal;
      factor.exponent = -1;
      factor.args = {std::move(form)};
      r[0].factors.push_back(std::move(factor));
    }
    merge_factors(r[0], context, state_);
    return r;
  }

  void append_inverse(Term& term, Factor factor, bool is_size, const Cond& context) {
    if (!is_size && !is_never_zero(factor, context, state_)) {
      Factor bare = factor;
      bare.exponent = std::abs(factor.exponent);
      state_.domains.demand("divisor", as_form(std::move(bare)), context);
    }
    factor.exponent = -factor.exponent;
    term.factors.push_back(std::move(factor));
  }

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
      auto it =
          std::find_if(term.factors.begin(), term.factors.end(), [&](const Factor& f) { return key(f) == wanted; });
      if (it == term.factors.end()) return std::nullopt;
      positions.push_back(static_cast<size_t>(it - term.factors.begin()));
    }
    return positions;
  }

  NormalForm comparison(FactorKind kind, const Expr& e, const Cond& context) {
    // Only the difference matters: a < b is a - b < 0.
    NormalForm difference =
        simplified(sum((*this)(e->args[0], context), negated((*this)(e->args[1], context))), context);
    if (auto number = as_number(difference)) {
      const bool holds = kind == FactorKind::IsLess ? number->numerator() < 0 : number->is_zero();
      return holds ? one() : NormalForm{};
    }
    if (kind == FactorKind::IsEqual && is_negative(difference)) difference = negated(std::move(difference));
    Factor factor;
    factor.kind = kind;
    factor.args = {std::move(difference), {}};
    return as_form(std::move(factor));
  }

  NormalForm call_form(const Expr& e, const Cond& context) {
    std::vector<NormalForm> args;
    for (const Expr& a : e->args) args.push_back(simplified((*this)(a, context), context));
    if (e->function == Function::Pow) return power(std::move(args), context);
    if (args.size() == 1 && args[0].empty())
      if (auto value = value_at_zero(e->function)) return value->is_zero() ? NormalForm{} : one();
    if (e->function == Function::Exp) return exponential(args[0], context, state_);
    if (e->function == Function::Log) return logarithm(std::move(args[0]), context);
    NormalForm r = one();
    if (args.size() == 1 && parity_of(e->function) != Parity::None && is_negative(args[0])) {
      args[0] = negated(args[0]);
      if (parity_of(e->function) == Parity::Odd) r[0].coefficient = -1;
    }
    const bool is_root_in_domain =
        e->function == Function::Sqrt && (is_plainly_nonnegative(args[0]) || is_positive(args[0], context, state_));
    if (has_partial_domain(e->function) && !is_root_in_domain)
      state_.domains.demand(std::string(function_text(e->function)), args.back(), context);
    r[0].factors.push_back(make_call(e->function, std::move(args)));
    return r;
  }

  // ln(e^a b) = a + ln b, for every exponential that all terms share.
  NormalForm logarithm(NormalForm argument, const Cond& context) {
    if (!is_positive(argument, context, state_)) state_.domains.demand("log", argument, context);
    NormalForm outside;
    for (size_t i = 0; !argument.empty() && i < argument[0].factors.size();) {
      const bool is_exponential =
          argument[0].factors[i].kind == FactorKind::Call && argument[0].factors[i].function == Function::Exp;
      const auto positions = is_exponential ? shared_positions(argument, i) : std::nullopt;
      if (!positions) {
        i++;
        continue;
      }
      const Factor shared = argument[0].factors[i];
      for (size_t t = 0; t < argument.size(); t++)
        argument[t].factors.erase(argument[t].factors.begin() + static_cast<ptrdiff_t>((*positions)[t]));
      for (Term term : shared.args[0]) {
        term.coefficient = term.coefficient * Rational(shared.exponent);
        outside.push_back(std::move(term));
      }
    }
    if (as_number(argument) == Rational(1)) return outside;
    return sum(as_form(make_call(Function::Log, {std::move(argument)})), outside);
  }

  // Which of x and -x stands for both: the sign of the term whose key comes first.
  static bool is_negative(const NormalForm& form) {
    const Term* first = nullptr;
    std::string smallest;
    for (const Term& term : form) {
      Term unsigned_term = term;
      unsigned_term.coefficient = 1;
      std::string text = key(NormalForm{unsigned_term});
      if (!first || text < smallest) {
        first = &term;
        smallest = std::move(text);
      }
    }
    return first && first->coefficient.numerator() < 0;
  }

  NormalForm power(std::vector<NormalForm> args, const Cond& context) {
    const auto exponent = as_number(args[1]);
    constexpr int64_t kMaxPower = 4;
    if (exponent && exponent->denominator() == 1 && exponent->numerator() >= 0 && exponent->numerator() <= kMaxPower) {
      NormalForm r = one();
      for (int64_t i = 0; i < exponent->numerator(); i++) r = product(r, args[0], context);
      return r;
    }
    if (exponent == Rational(-1)) return reciprocal(args[0], context);
    if (exponent == Rational(1, 2)) {
      if (!is_plainly_nonnegative(args[0]) && !is_positive(args[0], context, state_))
        state_.domains.demand("sqrt", args[0], context);
      return as_form(make_call(Function::Sqrt, {args[0]}));
    }
    state_.domains.demand("pow " + key(args[1]), args[0], context);
    return as_form(make_call(Function::Pow, std::move(args)));
  }

  NormalForm select_form(const Expr& e, const Cond& context) {
    NormalForm r;
    for (int side = 0; side < 2; side++) {
      const Cond guard = side == 0 ? e->cond : !e->cond;
      const Cond inner = context && guard;
      if (state_.solver.is_infeasible(inner)) continue;
      for (Term term : (*this)(e->args[static_cast<size_t>(side)], inner)) {
        term.guard = term.guard && guard;
        r.push_back(std::move(term));
      }
    }
    return simplified(r, context);
  }

  // test != 0 ? a : b is b + [test != 0] (a - b); a comparison is its own indicator.
  NormalForm choose_form(const Expr& e, const Cond& context) {
    NormalForm test = simplified((*this)(e->args[0], context), context);
    const NormalForm a = (*this)(e->args[1], context), b = (*this)(e->args[2], context);
    if (auto number = as_number(test)) return number->is_zero() ? b : a;
    const bool indicator = sole_factor(test, FactorKind::IsLess, context, state_) ||
                           sole_factor(test, FactorKind::IsEqual, context, state_);
    if (!indicator) {
      Factor is_zero;
      is_zero.kind = FactorKind::IsEqual;
      is_zero.args = {test, {}};
      test = sum(one(), negated(as_form(std::move(is_zero))));
    }
    return sum(b, product(test, sum(a, negated(b)), context));
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

  NormalForm sum_reduction(const Expr& e, const Cond& context) {
    const Domain domain = domain_of(e);
    NormalForm form = (*this)(substitute(e->args[0], domain.renamed), context && domain.guard);
    for (Term& term : form) {
      term.binders.insert(term.binders.end(), domain.binders.begin(), domain.binders.end());
      term.guard = term.guard && domain.guard;
    }
    return simplified(form, context);
  }

  NormalForm max_reduction(const Expr& e, bool negate, const Cond& context) {
    std::vector<Branch> branches;
    for (const GuardedPart& part : guarded_parts(e->args[0], Cond())) {
      const bool is_neutral =
          part.value->kind == ExprKind::Constant && part.value->value == (negate ? INFINITY : -INFINITY);
      if (is_neutral) continue;
      const Domain domain = domain_of(e);
      const Cond guard = substitute(part.guard, domain.renamed) && domain.guard;
      const Cond inner = context && guard;
      if (state_.solver.is_infeasible(inner)) continue;
      NormalForm value = simplified((*this)(substitute(part.value, domain.renamed), inner), inner);
      std::vector<Branch> parts;
      add_branch(parts, Branch{domain.binders, guard, negate ? negated(std::move(value)) : std::move(value)}, context,
                 state_);
      for (Branch& b : parts)
        if (simplify_branch(b, context, state_)) branches.push_back(std::move(b));
    }
    return maximum_over(std::move(branches), state_);
  }

  NormalForm product_reduction(const Expr& e, const Cond& context) {
    const Domain domain = domain_of(e);
    const Cond inner = context && domain.guard;
    Branch all{domain.binders, domain.guard, simplified((*this)(substitute(e->args[0], domain.renamed), inner), inner)};
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

}  // namespace gopt
