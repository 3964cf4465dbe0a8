#include "function_facts.h"

namespace gopt::verifier {
namespace {

using Kind = RealExpr::Kind;
using Relation = RealFact::Relation;

RealExprPtr make(Kind kind, std::vector<RealExprPtr> parts) {
  return std::make_shared<const RealExpr>(RealExpr{kind, {}, "", std::move(parts), {}});
}

// The facts about t = f(u) and those about the opposites of both, for an odd function, by the sign of u.
class FunctionFacts {
 public:
  FunctionFacts(RealExprPtr t, RealExprPtr u, int sign)
      : t(sign < 0 ? real_difference(real_number(0), t) : t), u(sign < 0 ? real_difference(real_number(0), u) : u) {}

  void positive(const RealExprPtr& value) { all.push_back({value, Relation::Positive}); }
  void below(const RealExprPtr& a, const RealExprPtr& b) { positive(real_difference(b, a)); }

  const RealExprPtr t, u;  // of an argument that is not negative
  std::vector<RealFact> all;
};

// Within half a turn, which is more than 3, a sine has the sign of its argument.
bool is_within_half_turn(const ValueRange& range, int sign) {
  const std::optional<Bound>& end = sign > 0 ? range.high : range.low;
  return end && (sign > 0 ? Rational(3) + -end->value : end->value + Rational(3)).numerator() >= 0;
}

// 0 < |t| and |t| < |u|, or the other way round, for an odd f.
std::vector<RealFact> of_odd(Function function, const RealExprPtr& value, const RealExprPtr& argument, int sign,
                             const ValueRange& range) {
  if (sign == 0) return {{value, Relation::Zero}};
  FunctionFacts f(value, argument, sign);
  switch (function) {
    case Function::Sin:
      f.below(f.t, f.u);
      f.positive(real_sum(f.t, f.u));
      if (is_within_half_turn(range, sign)) f.positive(f.t);
      break;
    case Function::Tanh:
    case Function::Atan:
    case Function::Asinh:
      f.positive(f.t);
      f.below(f.t, f.u);
      break;
    case Function::Erf:  // the slope at 0 is 2 / sqrt(pi)
      f.positive(f.t);
      f.below(f.t, real_product(real_number({1129, 1000}), f.u));
      break;
    case Function::Sinh: f.below(f.u, f.t); break;
    default: break;
  }
  return f.all;
}

std::vector<RealFact> of_exponential(const RealExprPtr& t, const RealExprPtr& u, int sign) {
  if (sign == 0) return {{real_difference(t, real_number(1)), Relation::Zero}};
  const RealExprPtr square = real_product(u, u), half_square = real_product(real_number({1, 2}), square);
  const RealExprPtr tangent = real_sum(real_number(1), u), parabola = real_sum(tangent, half_square);
  FunctionFacts f(t, u, 1);
  f.positive(t);
  f.below(tangent, t);
  f.below(real_product(real_number({2718, 1000}), u), t);              // e^u >= e u
  f.positive(real_sum(real_product(u, t), real_number({368, 1000})));  // u e^u >= -1/e
  if (sign > 0) {
    f.below(parabola, t);
  } else {
    f.below(t, real_number(1));
    f.below(t, parabola);
  }
  return f.all;
}

// Of a function that is even and 1 at 0, and above or below the parabola 1 + c u^2.
std::vector<RealFact> of_even(const RealExprPtr& t, const RealExprPtr& u, int sign, const Rational& c) {
  if (sign == 0) return {{real_difference(t, real_number(1)), Relation::Zero}};
  const RealExprPtr parabola = real_sum(real_number(1), real_product(real_number(c), real_product(u, u)));
  return {{real_difference(t, parabola), Relation::Positive}};
}

}  // namespace

RealExprPtr real_number(const Rational& value) {
  return std::make_shared<const RealExpr>(RealExpr{Kind::Constant, value, "", {}, {}});
}
RealExprPtr real_product(RealExprPtr a, RealExprPtr b) { return make(Kind::Multiply, {std::move(a), std::move(b)}); }
RealExprPtr real_sum(RealExprPtr a, RealExprPtr b) { return make(Kind::Add, {std::move(a), std::move(b)}); }
RealExprPtr real_difference(RealExprPtr a, RealExprPtr b) {
  return real_sum(std::move(a), real_product(real_number(-1), std::move(b)));
}

bool has_function_facts(Function function) {
  switch (function) {
    case Function::Sin:
    case Function::Tanh:
    case Function::Atan:
    case Function::Asinh:
    case Function::Erf:
    case Function::Sinh:
    case Function::Exp:
    case Function::Cos:
    case Function::Cosh: return true;
    default: return false;
  }
}

std::vector<RealFact> function_facts(Function function, const RealExprPtr& value, const RealExprPtr& argument, int sign,
                                     const ValueRange& range) {
  if (!has_function_facts(function)) return {};
  if (function == Function::Exp) return of_exponential(value, argument, sign);
  if (function == Function::Cos) return of_even(value, argument, sign, {-1, 2});
  if (function == Function::Cosh) return of_even(value, argument, sign, {1, 2});
  return of_odd(function, value, argument, sign, range);
}

}  // namespace gopt::verifier
