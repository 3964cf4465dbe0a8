#include "ranges.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "arithmetic.h"
#include "summands.h"

namespace gopt::verifier {
namespace {

bool is_less(const Rational& a, const Rational& b) { return (a + -b).numerator() < 0; }

Bound sum(const Bound& a, const Bound& b) { return {a.value + b.value, a.is_strict || b.is_strict}; }
Bound opposite(const Bound& a) { return {-a.value, a.is_strict}; }
ValueRange opposite(const ValueRange& r) {
  ValueRange result;
  if (r.high) result.low = opposite(*r.high);
  if (r.low) result.high = opposite(*r.low);
  return result;
}
ValueRange sum(const ValueRange& a, const ValueRange& b) {
  ValueRange r;
  if (a.low && b.low) r.low = sum(*a.low, *b.low);
  if (a.high && b.high) r.high = sum(*a.high, *b.high);
  return r;
}
ValueRange exactly(const Rational& value) { return {Bound{value}, Bound{value}}; }
ValueRange from(const Rational& low, bool is_strict = false) { return {Bound{low, is_strict}, std::nullopt}; }
ValueRange between(const Rational& low, const Rational& high, bool is_strict) {
  return {Bound{low, is_strict}, Bound{high, is_strict}};
}

Bound lesser(const Bound& a, const Bound& b) {
  if (a.value == b.value) return {a.value, a.is_strict && b.is_strict};
  return is_less(a.value, b.value) ? a : b;
}
Bound greater(const Bound& a, const Bound& b) { return opposite(lesser(opposite(a), opposite(b))); }

// Of what is 0 or in the range.
ValueRange with_zero(const ValueRange& r) {
  ValueRange result;
  if (r.low) result.low = lesser(*r.low, Bound{0});
  if (r.high) result.high = greater(*r.high, Bound{0});
  return result;
}
// Of what is in both.
std::optional<Bound> greater_of(const std::optional<Bound>& a, const std::optional<Bound>& b) {
  if (!a || !b) return a ? a : b;
  if (a->value == b->value) return Bound{a->value, a->is_strict || b->is_strict};
  return greater(*a, *b);
}
ValueRange both(const ValueRange& a, const ValueRange& b) {
  const ValueRange x = opposite(a), y = opposite(b);
  return {greater_of(a.low, b.low), opposite(ValueRange{greater_of(x.low, y.low), std::nullopt}).high};
}

// Of a product of what is not negative.
ValueRange product_of_nonnegative(const ValueRange& a, const ValueRange& b) {
  const bool is_positive = a.is_positive() && b.is_positive();
  ValueRange r{Bound{a.low->value * b.low->value, is_positive && (a.low->is_strict || b.low->is_strict)}, std::nullopt};
  if (is_positive && r.low->value.is_zero()) r.low->is_strict = true;
  if (a.high && b.high) {
    r.high = Bound{a.high->value * b.high->value, false};
    r.high->is_strict = !r.high->value.is_zero() && (a.high->is_strict || b.high->is_strict);
  }
  return r;
}
bool is_nonpositive(const ValueRange& r) { return opposite(r).is_nonnegative(); }

ValueRange product(const ValueRange& a, const ValueRange& b) {
  if (a.is_nonnegative() && b.is_nonnegative()) return product_of_nonnegative(a, b);
  if (is_nonpositive(a) && b.is_nonnegative()) return opposite(product_of_nonnegative(opposite(a), b));
  if (a.is_nonnegative() && is_nonpositive(b)) return opposite(product_of_nonnegative(a, opposite(b)));
  if (is_nonpositive(a) && is_nonpositive(b)) return product_of_nonnegative(opposite(a), opposite(b));
  if (!a.low || !a.high || !b.low || !b.high) return {};
  ValueRange r;
  for (const Bound* x : {&*a.low, &*a.high}) {
    for (const Bound* y : {&*b.low, &*b.high}) {
      const Bound corner{x->value * y->value, false};
      r.low = r.low ? lesser(*r.low, corner) : corner;
      r.high = r.high ? greater(*r.high, corner) : corner;
    }
  }
  return r;
}

ValueRange square(const ValueRange& r) {
  if (r.is_nonnegative()) return product_of_nonnegative(r, r);
  if (is_nonpositive(r)) return product_of_nonnegative(opposite(r), opposite(r));
  ValueRange result = from(0);
  if (r.low && r.high) {
    const Bound most = greater(opposite(*r.low), *r.high);
    result.high = Bound{most.value * most.value, most.is_strict};
  }
  return result;
}

ValueRange inverse(const ValueRange& r) {
  if (r.is_negative()) return opposite(inverse(opposite(r)));
  if (!r.is_positive()) return {};
  ValueRange result = from(0, true);
  if (r.high) result.low = Bound{r.high->value.inverse(), r.high->is_strict};
  if (!r.low->value.is_zero()) result.high = Bound{r.low->value.inverse(), r.low->is_strict};
  return result;
}

ValueRange scaled(const ValueRange& r, const Rational& by) {
  if (by.numerator() < 0) return opposite(scaled(r, -by));
  ValueRange result;
  if (r.low) result.low = Bound{r.low->value * by, r.low->is_strict};
  if (r.high) result.high = Bound{r.high->value * by, r.high->is_strict};
  return result;
}

Rational floor_of(const Rational& r) {
  const int64_t q = r.numerator() / r.denominator();
  return r.numerator() % r.denominator() < 0 ? q - 1 : q;
}

// Of a function that does not decrease and whose value at `at` is `value`.
ValueRange increasing_through(const ValueRange& argument, const Rational& at, const Rational& value, bool is_strictly) {
  ValueRange r;
  const auto beside = [&](const Bound& b) { return Bound{value, is_strictly && (b.is_strict || !(b.value == at))}; };
  if (argument.low && !is_less(argument.low->value, at)) r.low = beside(*argument.low);
  if (argument.high && !is_less(at, argument.high->value)) r.high = beside(*argument.high);
  return r;
}

ValueRange rounded(const ValueRange& argument, Function function) {
  ValueRange r;
  const auto at = [&](const Rational& v) {
    if (function == Function::Floor) return floor_of(v);
    if (function == Function::Ceil) return -floor_of(-v);
    return v.numerator() < 0 ? -floor_of(-v) : floor_of(v);  // Trunc
  };
  if (argument.low) r.low = Bound{at(argument.low->value)};
  if (argument.high) r.high = Bound{at(argument.high->value)};
  return r;
}

class RangeFinder {
 public:
  explicit RangeFinder(ProofState& state) : state_(state) {}

  ValueRange of(const NormalForm& form, const Cond& context) {
    if (const auto r = of_rounded(form, context)) return *r;
    ValueRange r = exactly(0);
    for (const Summand& term : form) {
      r = sum(r, of(term, context));
      if (!r.low && !r.high) break;
    }
    return r;
  }

  ValueRange of(const Factor& factor, const Cond& context) {
    Factor single = factor;
    single.exponent = 1;
    ValueRange base = of_base(single, context), r = base;
    const int power = std::abs(factor.exponent);
    for (int k = 1; k < power; k += 2) r = k + 1 == power ? product(r, base) : product(r, square(base));
    if (power % 2 == 0) r = both(r, square_power(base, power));
    return factor.exponent < 0 ? inverse(r) : r;
  }

 private:
  // floor(x) - x is above -1 and at most 0: that of the rest, once x is in the place of what is rounded.
  std::optional<ValueRange> of_rounded(const NormalForm& form, const Cond& context) {
    for (size_t i = 0; i < form.size(); i++) {
      const Summand& own = form[i];
      if (own.factors.size() != 1 || own.factors[0].kind != FactorKind::Call || own.factors[0].exponent != 1 ||
          !own.binders.empty() || !own.guard.is_true())
        continue;
      std::optional<ValueRange> error;
      switch (own.factors[0].function) {
        case Function::Floor: error = ValueRange{Bound{-1, true}, Bound{0}}; break;
        case Function::Round: error = between({-1, 2}, {1, 2}, false); break;
        case Function::Trunc: error = between(-1, 1, true); break;
        default: continue;
      }
      NormalForm rest = form;
      rest.erase(rest.begin() + static_cast<ptrdiff_t>(i));
      for (Summand term : own.factors[0].args[0]) {
        term.coefficient = term.coefficient * own.coefficient;
        rest.push_back(std::move(term));
      }
      rest = with_like_terms_merged(rest);
      if (rest.size() >= form.size()) continue;
      return sum(of(rest, context), scaled(*error, own.coefficient));
    }
    return std::nullopt;
  }

  // c n / s is at most c where n is one of the summands of s.
  void limit_share(const Summand& term, const Cond& context, ValueRange& r) {
    for (size_t i = 0; i < term.factors.size(); i++) {
      const Factor& f = term.factors[i];
      if (f.kind != FactorKind::Reciprocal || f.exponent != -1 || term.coefficient.is_zero()) continue;
      std::vector<Factor> rest = term.factors;
      rest.erase(rest.begin() + static_cast<ptrdiff_t>(i));
      if (!is_summand_of(rest, f.args[0], context, state_)) continue;
      const ValueRange share = scaled({std::nullopt, Bound{1}}, term.coefficient);
      r = both(r, share);
    }
  }

  static ValueRange square_power(const ValueRange& base, int power) {
    ValueRange r = square(base);
    for (int k = 2; k < power; k += 2) r = product(r, square(base));
    return r;
  }

  ValueRange of(const Summand& term, const Cond& context) {
    const Cond inner = context && term.guard;
    std::map<std::string, std::pair<const Factor*, int>> powers;
    for (const Factor& f : term.factors) powers.try_emplace(key(f), &f, 0).first->second.second++;
    std::optional<ValueRange> all;
    for (const auto& [text, power] : powers) {
      const ValueRange own = of(*power.first, inner);
      for (int k = power.second; k > 0; k -= 2) {
        const ValueRange next = k >= 2 ? square(own) : own;
        all = all ? product(*all, next) : next;
      }
    }
    ValueRange r = scaled(all.value_or(exactly(1)), term.coefficient);
    if (term.binders.empty()) limit_share(term, inner, r);
    if (!term.binders.empty()) {
      if (r.is_nonnegative()) return from(0);
      return is_nonpositive(r) ? ValueRange{std::nullopt, Bound{0}} : ValueRange{};
    }
    return term.guard.is_true() ? r : with_zero(r);
  }

  ValueRange of_base(const Factor& f, const Cond& context) {
    switch (f.kind) {
      case FactorKind::Size: {
        const Index& size = f.subscripts[0];
        if (state_.solver.entails(context, at_least(size, Index(1)))) return from(1);
        return state_.solver.entails(context, at_least(size, Index(0))) ? from(0) : ValueRange{};
      }
      case FactorKind::Literal: return from(0, true);
      case FactorKind::IsLess:
      case FactorKind::IsEqual: return between(0, 1, false);
      case FactorKind::Reciprocal: return of(f.args[0], context);
      case FactorKind::Call: return of_call(f, context);
      case FactorKind::Maximum: return of_maximum(f, context);
      case FactorKind::Product:
        return of(f.branches[0].value, context && f.branches[0].guard).is_nonnegative() ? from(0) : ValueRange{};
      case FactorKind::Read:
      case FactorKind::Opaque: return {};
    }
    return {};
  }

  // At least what every plain branch is, at most the largest that any branch may be.
  ValueRange of_maximum(const Factor& f, const Cond& context) {
    ValueRange r;
    std::optional<Bound> least;
    bool has_low = true, has_high = true;
    for (const Branch& b : f.branches) {
      const ValueRange own = of(b.value, context && b.guard);
      if (b.binders.empty() && b.guard.is_true() && own.low) r.low = r.low ? greater(*r.low, *own.low) : own.low;
      has_low = has_low && own.low;
      has_high = has_high && own.high;
      if (has_low) least = least ? lesser(*least, *own.low) : own.low;
      if (has_high) r.high = r.high ? greater(*r.high, *own.high) : own.high;
    }
    if (!has_high) r.high.reset();
    if (has_low && least) r.low = r.low ? greater(*r.low, *least) : least;
    return r;
  }

  // Within half a turn, which is more than 3, a sine has the sign of its argument.
  static ValueRange of_sine(const ValueRange& argument) {
    if (!argument.low || !argument.high) return {};
    if (argument.is_nonnegative() && !is_less(3, argument.high->value)) return from(0, argument.is_positive());
    const ValueRange other = opposite(argument);
    if (other.is_nonnegative() && !is_less(3, other.high->value)) return opposite(from(0, other.is_positive()));
    return {};
  }
  static ValueRange of_cosine(const ValueRange& argument) {
    const Rational most(3, 2);  // below a quarter turn
    const bool is_within =
        argument.low && argument.high && !is_less(argument.low->value, -most) && !is_less(most, argument.high->value);
    return is_within ? from(0, true) : ValueRange{};
  }

  ValueRange of_call(const Factor& f, const Cond& context) {
    const auto argument = [&] { return of(f.args[0], context); };
    const Rational past_quarter_turn(11, 7);  // above pi/2
    switch (f.function) {
      case Function::Exp: return both(from(0, true), increasing_through(argument(), 0, 1, true));
      case Function::Cosh: return from(1);
      case Function::Sin: return both(between(-1, 1, false), of_sine(argument()));
      case Function::Cos: return both(between(-1, 1, false), of_cosine(argument()));
      case Function::Tanh:
      case Function::Erf: return both(between(-1, 1, true), increasing_through(argument(), 0, 0, true));
      case Function::Atan:
        return both(between(-past_quarter_turn, past_quarter_turn, true), increasing_through(argument(), 0, 0, true));
      case Function::Asin:
        return both(between(-past_quarter_turn, past_quarter_turn, true), increasing_through(argument(), 0, 0, true));
      case Function::Acos: return {Bound{0}, Bound{past_quarter_turn * Rational(2), true}};
      case Function::Acosh: return from(0);
      case Function::Sinh:
      case Function::Asinh:
      case Function::Atanh: return increasing_through(argument(), 0, 0, true);
      case Function::Log: return increasing_through(argument(), 1, 0, true);
      case Function::Sqrt: {
        const ValueRange a = argument();
        return both(both(from(0), increasing_through(a, 1, 1, true)), increasing_through(a, 0, 0, true));
      }
      case Function::Floor:
      case Function::Ceil:
      case Function::Trunc: return rounded(argument(), f.function);
      case Function::Round: return increasing_through(argument(), 0, 0, false);
      case Function::IsNan: return between(0, 1, false);
      case Function::Pow: return argument().is_nonnegative() ? from(0) : ValueRange{};
      case Function::Tan:
      case Function::Narrow:
      case Function::Fmod: return {};
    }
    return {};
  }

  ProofState& state_;
};

}  // namespace

ValueRange range_of(const NormalForm& form, const Cond& context, ProofState& state) {
  try {
    return RangeFinder(state).of(form, context);
  } catch (const std::overflow_error&) {
    return {};
  }
}
ValueRange range_of(const Factor& factor, const Cond& context, ProofState& state) {
  try {
    return RangeFinder(state).of(factor, context);
  } catch (const std::overflow_error&) {
    return {};
  }
}

}  // namespace gopt::verifier
