#include "expand_functions.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>

#include "arithmetic.h"
#include "functions.h"
#include "maximum.h"
#include "powers.h"
#include "rebuild.h"
#include "simplify.h"

namespace gopt::verifier {
namespace {

void check_terms(size_t terms, const ProofState& state) {
  const size_t most = state.solver.limits().terms_of_a_form;
  if (terms > most) throw BudgetExceeded(BudgetExceeded::Budget::Terms, most);
}

// A size that is no single symbol as the sum of its terms.
NormalForm expanded_size(const Index& size) {
  NormalForm form;
  for (const Index::Term& monomial : size.terms()) {
    Summand term;
    term.coefficient = monomial.coefficient;
    for (AtomId id : monomial.atoms) multiply_by_size(term, Index::from_atom(id), 1);
    form.push_back(std::move(term));
  }
  if (size.constant() != 0) {
    form.emplace_back();
    form.back().coefficient = size.constant();
  }
  return form;
}

// 1/(a b) as one divisor, whatever the order in which it was divided.
void join_divisors(Summand& term) {
  Index joined(1);
  std::erase_if(term.factors, [&](const Factor& f) {
    if (f.kind != FactorKind::Size || f.exponent >= 0 || f.subscripts[0].as_atom()) return false;
    for (int i = f.exponent; i < 0; i++) joined = joined * f.subscripts[0];
    return true;
  });
  if (joined == Index(1)) return;
  Factor divisor;
  divisor.kind = FactorKind::Size;
  divisor.subscripts = {joined};
  divisor.exponent = -1;
  term.factors.push_back(std::move(divisor));
}

bool is_angle_function(Function f) { return f == Function::Sin || f == Function::Cos || f == Function::Tan; }

bool is_made_of_others(Function f) {
  switch (f) {
    case Function::Sin:
    case Function::Cos:
    case Function::Tan:
    case Function::Sinh:
    case Function::Cosh:
    case Function::Tanh:
    case Function::Asinh:
    case Function::Acosh:
    case Function::Atanh:
    case Function::Fmod: return true;
    default: return false;
  }
}
bool holds_function(const Factor& factor);
bool holds_function(const NormalForm& form) {
  return std::any_of(form.begin(), form.end(), [](const Summand& term) {
    return std::any_of(term.factors.begin(), term.factors.end(), [](const Factor& f) { return holds_function(f); });
  });
}
bool holds_function(const Factor& factor) {
  if (factor.kind == FactorKind::Call && is_made_of_others(factor.function)) return true;
  const auto holds = [](const NormalForm& form) { return holds_function(form); };
  return std::any_of(factor.args.begin(), factor.args.end(), holds) ||
         std::any_of(factor.branches.begin(), factor.branches.end(),
                     [](const Branch& b) { return holds_function(b.value); });
}

Rational greatest_common_divisor(const Rational& a, const Rational& b) {
  const Rational common(a.denominator(), std::gcd(a.denominator(), b.denominator()));
  const int64_t denominator = (common * Rational(b.denominator())).numerator();
  const auto scaled = [&](const Rational& r) { return (r * Rational(denominator)).numerator(); };
  return {std::gcd(scaled(a), scaled(b)), denominator};
}

std::string key_of_unit(Summand term) {
  term.coefficient = 1;
  return key(NormalForm{std::move(term)});
}

// Angles are multiples of these, one for each summand that occurs in one.
class Angles {
 public:
  void collect(const NormalForm& form) {
    for (const Summand& term : form)
      for (const Factor& f : term.factors) collect(f);
  }
  std::optional<Rational> find(const Summand& term) const {
    const auto it = units_.find(key_of_unit(term));
    return it == units_.end() ? std::nullopt : std::optional(it->second);
  }

 private:
  void collect(const Factor& factor) {
    for (const NormalForm& argument : factor.args) collect(argument);
    for (const Branch& b : factor.branches) collect(b.value);
    if (factor.kind != FactorKind::Call || !is_angle_function(factor.function)) return;
    for (const Summand& term : factor.args[0]) {
      const auto [it, is_new] = units_.try_emplace(key_of_unit(term), term.coefficient);
      it->second = greatest_common_divisor(it->second, term.coefficient);
    }
  }
  std::map<std::string, Rational> units_;
};

// sin(x)^2 = 1 - cos(x)^2, until no sine is squared.
NormalForm without_squared_sines(NormalForm form, const Cond& context, ProofState& state) {
  const auto is_sine = [](const Factor& f) {
    return f.kind == FactorKind::Call && f.function == Function::Sin && f.exponent == 1;
  };
  NormalForm r;
  while (!form.empty()) {
    Summand term = std::move(form.back());
    form.pop_back();
    std::map<std::string, size_t> seen;
    std::optional<std::pair<size_t, size_t>> square;
    for (size_t i = 0; i < term.factors.size() && !square; i++) {
      if (!is_sine(term.factors[i])) continue;
      const auto [it, is_new] = seen.try_emplace(key(term.factors[i]), i);
      if (!is_new) square = {it->second, i};
    }
    if (!square) {
      r.push_back(std::move(term));
      continue;
    }
    Factor cosine = term.factors[square->first];
    cosine.function = Function::Cos;
    term.factors.erase(term.factors.begin() + static_cast<ptrdiff_t>(square->second));
    term.factors.erase(term.factors.begin() + static_cast<ptrdiff_t>(square->first));
    Summand other = freshen(term, state.pool);
    other.coefficient = -other.coefficient;
    other.factors.push_back(cosine);
    other.factors.push_back(cosine);
    form.push_back(std::move(term));
    form.push_back(std::move(other));
    check_terms(form.size() + r.size(), state);
  }
  return simplify(with_like_terms_merged(r), context, state);
}

class FunctionExpander {
 public:
  FunctionExpander(const std::vector<NormalForm>& forms, ProofState& state) : state_(state) {
    for (const NormalForm& form : forms) angles_.collect(form);
  }

  NormalForm operator()(const NormalForm& form, const Cond& context, bool with_sizes) {
    NormalForm r;
    for (const Summand& term : form) {
      const Cond inner = context && term.guard;
      Summand rest = term;
      rest.factors.clear();
      NormalForm product{rest};
      for (const Factor& factor : term.factors) {
        product = multiply(product, expanded(factor, inner, with_sizes), inner, state_);
        check_terms(product.size(), state_);
      }
      for (Summand& made : product) {
        if (with_sizes) join_divisors(made);
        r.push_back(std::move(made));
      }
    }
    check_terms(r.size(), state_);
    return without_squared_sines(std::move(r), context, state_);
  }

 private:
  NormalForm inside(const NormalForm& form, const Cond& context) { return (*this)(form, context, false); }

  NormalForm expanded(const Factor& factor, const Cond& context, bool with_sizes) {
    if (factor.kind == FactorKind::Size && with_sizes && factor.exponent > 0 && !factor.subscripts[0].as_atom())
      return powered(expanded_size(factor.subscripts[0]), factor.exponent, context, state_);
    if (!holds_function(factor)) return as_form(factor);
    switch (factor.kind) {
      case FactorKind::Reciprocal: return reciprocal(inside(factor.args[0], context), context, state_);
      case FactorKind::IsLess:
      case FactorKind::IsEqual:
        return powered(comparison(factor.kind, inside(factor.args[0], context), context, state_), factor.exponent,
                       context, state_);
      case FactorKind::Maximum: {
        std::vector<Branch> branches;
        for (Branch b : factor.branches) {
          b.value = inside(b.value, context && b.guard);
          add_branch(branches, std::move(b), context, state_);
        }
        return powered(maximum_over(std::move(branches), state_), factor.exponent, context, state_);
      }
      case FactorKind::Call: break;
      case FactorKind::Read:
      case FactorKind::Size:
      case FactorKind::Literal:
      case FactorKind::Product:
      case FactorKind::Opaque: return as_form(factor);
    }
    std::vector<NormalForm> args;
    for (const NormalForm& a : factor.args) args.push_back(inside(a, context));
    return powered(call(factor.function, args, context), factor.exponent, context, state_);
  }

  NormalForm call(Function function, const std::vector<NormalForm>& args, const Cond& context) {
    const NormalForm& x = args[0];
    switch (function) {
      case Function::Sin: return angle(x, context).sine;
      case Function::Cos: return angle(x, context).cosine;
      case Function::Tan: {
        const Angle of_x = angle(x, context);
        return multiply(of_x.sine, reciprocal(of_x.cosine, context, state_), context, state_);
      }
      case Function::Sinh: return halved(sum(e_to(x, 1, context), negated(e_to(x, -1, context))));
      case Function::Cosh: return halved(sum(e_to(x, 1, context), e_to(x, -1, context)));
      case Function::Tanh: {  // 1 - 2 / (1 + e^2x)
        NormalForm quotient = reciprocal(sum(one(), e_to(x, 2, context)), context, state_);
        for (Summand& term : quotient) term.coefficient = term.coefficient * Rational(-2);
        return sum(one(), quotient);
      }
      case Function::Asinh: return logarithm(sum(x, root_of_square_and(x, 1, context)), context, state_);
      case Function::Acosh: return logarithm(sum(x, root_of_square_and(x, -1, context)), context, state_);
      case Function::Atanh:
        return halved(sum(logarithm(sum(one(), x), context, state_),
                          negated(logarithm(sum(one(), negated(x)), context, state_))));
      case Function::Fmod: {  // x - y trunc(x / y)
        NormalForm quotient = multiply(x, reciprocal(args[1], context, state_), context, state_);
        quotient = apply(Function::Trunc, {simplify(quotient, context, state_)}, context, state_);
        return sum(x, negated(multiply(args[1], quotient, context, state_)));
      }
      default: return apply(function, args, context, state_);
    }
  }

  NormalForm sum(const NormalForm& a, const NormalForm& b) { return with_like_terms_merged(add(a, b, state_)); }
  static NormalForm halved(NormalForm form) {
    for (Summand& term : form) term.coefficient = term.coefficient * Rational(1, 2);
    return form;
  }
  NormalForm e_to(NormalForm x, int times, const Cond& context) {
    for (Summand& term : x) term.coefficient = term.coefficient * Rational(times);
    return exponential(x, context, state_);
  }
  NormalForm root_of_square_and(const NormalForm& x, int number, const Cond& context) {
    NormalForm added = one();
    added[0].coefficient = number;
    return square_root_of(sum(multiply(x, x, context, state_), added), context, state_);
  }

  // By those of its parts, if these are few; an argument that was rewritten itself is left as one.
  struct Angle {
    NormalForm sine, cosine;
  };
  Angle angle(const NormalForm& x, const Cond& context) {
    constexpr int64_t kMostParts = 6;
    int64_t parts = 0;
    std::vector<std::pair<NormalForm, int64_t>> multiples;
    for (const Summand& term : x) {
      const auto unit = angles_.find(term);
      if (!unit) return whole(x, context);
      const Rational times = term.coefficient * unit->inverse();
      Summand one_time = term;
      one_time.coefficient = *unit;
      parts += std::abs(times.numerator());
      if (times.denominator() != 1 || parts > kMostParts) return whole(x, context);
      multiples.emplace_back(NormalForm{std::move(one_time)}, times.numerator());
    }
    Angle r{{}, one()};
    for (const auto& [part, times] : multiples) {
      Angle own = whole(part, context);
      if (times < 0) own.sine = negated(std::move(own.sine));
      for (int64_t k = 0; k < std::abs(times); k++) r = together(r, own, context);
    }
    return r;
  }
  Angle whole(const NormalForm& x, const Cond& context) {
    return {apply(Function::Sin, {x}, context, state_), apply(Function::Cos, {x}, context, state_)};
  }
  Angle together(const Angle& a, const Angle& b, const Cond& context) {
    const auto times = [&](const NormalForm& x, const NormalForm& y) { return multiply(x, y, context, state_); };
    return {without_squared_sines(sum(times(a.sine, b.cosine), times(a.cosine, b.sine)), context, state_),
            without_squared_sines(sum(times(a.cosine, b.cosine), negated(times(a.sine, b.sine))), context, state_)};
  }

  Angles angles_;
  ProofState& state_;
};

}  // namespace

std::vector<NormalForm> with_functions_expanded(const std::vector<NormalForm>& forms, const Cond& context,
                                                ProofState& state) {
  // What is demanded here was demanded where the forms were made.
  const DemandsSoFar demanded(state);
  try {
    FunctionExpander expand(forms, state);
    std::vector<NormalForm> r;
    for (const NormalForm& form : forms) r.push_back(expand(form, context, true));
    return r;
  } catch (const BudgetExceeded& exceeded) {
    if (exceeded.budget() != BudgetExceeded::Budget::Terms) throw;
    return forms;
  } catch (const NotExpressible&) {
    return forms;
  }
}

NormalForm with_functions_expanded(const NormalForm& form, const Cond& context, ProofState& state) {
  return with_functions_expanded(std::vector<NormalForm>{form}, context, state)[0];
}

std::optional<NormalForm> with_logarithms_joined(const NormalForm& form, const Cond& context, ProofState& state) {
  constexpr int64_t kMostTimes = 4;
  int64_t common = 1;
  bool has_logarithm = false;
  for (const Summand& term : form) {
    const bool is_logarithm = term.binders.empty() && term.guard.is_true() && term.factors.size() == 1 &&
                              term.factors[0].kind == FactorKind::Call && term.factors[0].function == Function::Log &&
                              term.factors[0].exponent == 1;
    if (!is_logarithm) continue;
    has_logarithm = true;
    common = std::lcm(common, term.coefficient.denominator());
    if (common > kMostTimes || std::abs(term.coefficient.numerator()) > kMostTimes) return std::nullopt;
  }
  if (!has_logarithm) return std::nullopt;
  NormalForm exponent = form;
  for (Summand& term : exponent) term.coefficient = term.coefficient * Rational(common);
  const DemandsSoFar demanded(state);
  return add(exponential(exponent, context, state), negated(one()), state);
}

}  // namespace gopt::verifier
