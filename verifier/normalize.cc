#include "normalize.h"

#include <algorithm>
#include <cmath>

#include "laws.h"
#include "positivity.h"
#include "select_hoisting.h"
#include "simplify.h"

namespace gopt {
namespace {

enum OpaqueTag { kTruncatingDivision = 1, kConversion = 1000 };

// Whether the form is one factor of this kind with coefficient and guard 1.
const Factor* sole_factor(const NormalForm& form, FactorKind kind, const Cond& context, ProofState& state) {
  if (form.size() != 1 || !(form[0].coefficient == Rational(1)) || !form[0].binders.empty()) return nullptr;
  if (form[0].factors.size() != 1 || form[0].factors[0].kind != kind || form[0].factors[0].exponent != 1)
    return nullptr;
  return state.solver.entails(context, form[0].guard) ? &form[0].factors[0] : nullptr;
}

// The form as a rational number, if it is one.
std::optional<Rational> as_number(const NormalForm& form) {
  if (form.empty()) return Rational(0);
  if (form.size() != 1 || !form[0].binders.empty() || !form[0].factors.empty() || !form[0].guard.is_true())
    return std::nullopt;
  return form[0].coefficient;
}

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
      case ExprKind::Maximum: return maximum_of({(*this)(e->args[0], context), (*this)(e->args[1], context)}, context);
      case ExprKind::Minimum:
        return negated(
            maximum_of({negated((*this)(e->args[0], context)), negated((*this)(e->args[1], context))}, context));
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

  NormalForm sum(NormalForm a, const NormalForm& b) {
    a.insert(a.end(), b.begin(), b.end());
    apply_product_laws(a, state_);
    return a;
  }

  NormalForm product(const NormalForm& a, const NormalForm& b, const Cond& context) {
    NormalForm r;
    for (const Term& x : a) {
      for (const Term& other : b) {
        Term y = freshen(other, state_.pool);
        y.coefficient = x.coefficient * y.coefficient;
        y.binders.insert(y.binders.begin(), x.binders.begin(), x.binders.end());
        y.guard = x.guard && y.guard;
        y.factors.insert(y.factors.begin(), x.factors.begin(), x.factors.end());
        if (y.guard.is_false()) continue;
        merge_factors(y, context && y.guard, state_);
        r.push_back(std::move(y));
      }
    }
    apply_product_laws(r, state_);
    return r;
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
      append_inverse(r[0], std::move(inverse), is_size || is_positive_size(inverse, context, state_), context);
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
    if (e->function == Function::Exp) return exponential(args[0], context);
    NormalForm r = one();
    if (args.size() == 1 && parity_of(e->function) != Parity::None && is_negative(args[0])) {
      args[0] = negated(args[0]);
      if (parity_of(e->function) == Parity::Odd) r[0].coefficient = -1;
    }
    const bool is_partial =
        e->function == Function::Log || (e->function == Function::Sqrt && !is_plainly_nonnegative(args[0]));
    if (is_partial && !is_positive(args[0], context, state_))
      state_.domains.demand(std::string(function_text(e->function)), args[0], context);
    r[0].factors.push_back(make_call(e->function, std::move(args)));
    return r;
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

  // exp of a sum is a product of exps, one a term; the sign of a term is an exponent.
  NormalForm exponential(const NormalForm& form, const Cond& context) {
    NormalForm r = one();
    for (Term term : form) {
      int exponent = 1;
      if (term.coefficient.numerator() < 0) {
        exponent = -1;
        term.coefficient = -term.coefficient;
      }
      Cond guard;
      for (const Cond& literal : conjuncts(term.guard))
        if (!term.binders.empty() || !state_.solver.entails(context, literal)) guard = guard && literal;
      term.guard = guard;
      Factor factor = make_call(Function::Exp, {NormalForm{std::move(term)}});
      factor.exponent = exponent;
      r[0].factors.push_back(std::move(factor));
    }
    merge_factors(r[0], context, state_);
    return r;
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

  // ---- maxima ----

  static Branch plain_branch(NormalForm value) { return Branch{{}, Cond(), std::move(value)}; }

  NormalForm maximum_of(std::vector<NormalForm> values, const Cond& context) {
    std::vector<Branch> branches;
    for (NormalForm& value : values) add_branch(branches, plain_branch(simplified(value, context)), context);
    return maximum_form(std::move(branches));
  }

  // Appends the branch, or the branches of the maximum that it consists of.
  void add_branch(std::vector<Branch>& branches, Branch branch, const Cond& context) {
    const Factor* inner = sole_factor(branch.value, FactorKind::Maximum, context && branch.guard, state_);
    if (!inner) {
      branches.push_back(std::move(branch));
      return;
    }
    for (Branch nested : inner->branches) {
      nested.binders.insert(nested.binders.end(), branch.binders.begin(), branch.binders.end());
      nested.guard = nested.guard && branch.guard;
      branches.push_back(std::move(nested));
    }
  }

  NormalForm maximum_form(std::vector<Branch> branches) {
    if (branches.empty()) throw ProofLimit("a maximum of nothing");
    std::vector<Branch> distinct;
    std::set<std::string> seen;
    for (Branch& b : branches) {
      Factor alone;
      alone.kind = FactorKind::Maximum;
      alone.branches = {b};
      if (seen.insert(key(alone)).second) distinct.push_back(std::move(b));
    }
    if (distinct.size() == 1 && distinct[0].binders.empty() && distinct[0].guard.is_true()) return distinct[0].value;
    NormalForm outside;
    // max_k (x_k + c) = c + max_k x_k over a non-empty range, which definitions ensure.
    if (distinct.size() == 1) {
      Branch& only = distinct[0];
      NormalForm inside;
      for (Term& term : only.value) {
        std::set<AtomId> symbols;
        collect_symbols(NormalForm{term}, symbols);
        const bool depends =
            std::any_of(only.binders.begin(), only.binders.end(), [&](AtomId b) { return symbols.count(b) > 0; });
        (depends ? inside : outside).push_back(std::move(term));
      }
      only.value = std::move(inside);
    }
    Factor factor;
    factor.kind = FactorKind::Maximum;
    factor.branches = std::move(distinct);
    return sum(as_form(std::move(factor)), outside);
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
      add_branch(parts, Branch{domain.binders, guard, negate ? negated(std::move(value)) : std::move(value)}, context);
      for (Branch& b : parts)
        if (simplify_branch(b, context)) branches.push_back(std::move(b));
    }
    return maximum_form(std::move(branches));
  }

  // Eliminates binders as in a sum: the value is carried through as the argument of one factor. A maximum does not
  // count: a sum would multiply by the size of an unused binder's range, which is allowed here only where that size is
  // positive.
  bool simplify_branch(Branch& branch, const Cond& context) {
    Term carrier;
    carrier.binders = branch.binders;
    carrier.guard = branch.guard;
    Factor value;
    value.kind = FactorKind::Opaque;
    value.args = {branch.value};
    carrier.factors = {value};
    if (!simplify(carrier, context, state_)) return false;
    for (size_t i = 1; i < carrier.factors.size(); i++) {
      const Factor& size = carrier.factors[i];
      if (size.kind != FactorKind::Size || !state_.solver.entails(context, at_least(size.subscripts[0], Index(1))))
        return true;
    }
    if (carrier.factors[0].kind != FactorKind::Opaque) return true;
    branch.binders = carrier.binders;
    branch.guard = carrier.guard;
    branch.value = carrier.factors[0].args[0];
    return true;
  }

  NormalForm product_reduction(const Expr& e, const Cond& context) {
    const Domain domain = domain_of(e);
    const Cond inner = context && domain.guard;
    Factor factor;
    factor.kind = FactorKind::Product;
    factor.branches = {Branch{domain.binders, domain.guard,
                              simplified((*this)(substitute(e->args[0], domain.renamed), inner), inner)}};
    return as_form(std::move(factor));
  }

  ProofState& state_;
};

}  // namespace

NormalForm normalize(const Expr& expr, const Cond& context, ProofState& state) {
  return simplify(Normalizer(state)(hoist_selects(expr), context), context, state);
}

}  // namespace gopt
