// Bounds of forms hold at numbers, and are as near as they are meant to be; what rises with an element does.
#include "normal_form/ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "normal_form/monotone.h"
#include "normal_form/normalize.h"
#include "samples/function_value.h"

namespace gopt {

using namespace verifier;

namespace {

double as_double(const Rational& r) {
  return static_cast<double>(r.numerator()) / static_cast<double>(r.denominator());
}

class RangesTest : public ::testing::Test {
 protected:
  ValueRange range(const Expr& e) { return range_of(normalize(e, Cond(), state_), Cond(), state_); }
  void expect_within(const ValueRange& range, double value, const std::string& what) {
    if (!std::isfinite(value)) return;  // outside the function's domain nothing is claimed
    if (range.low) {
      EXPECT_GE(value, as_double(range.low->value)) << what;
    }
    if (range.high) {
      EXPECT_LE(value, as_double(range.high->value)) << what;
    }
  }
  Solver solver_{SolverOptions{}};
  ProofState state_{solver_, {}, {}, {}, false};
  Expr x_ = read(0, {symbol("i")});
};

TEST_F(RangesTest, HoldForEveryFunctionOfBoundedArguments) {
  const std::vector<Function> functions{
#define GOPT_FUNCTION(name, arity, text, numeric) Function::name,
#include "gopt/function_table.def"
#undef GOPT_FUNCTION
  };
  struct Argument {
    Expr form;
    double (*at)(double);
  };
  const Expr zero = constant(0), one = constant(1);
  const std::vector<Argument> arguments{
      {x_, [](double x) { return x; }},
      {maximum(x_, zero), [](double x) { return std::max(x, 0.0); }},
      {one + maximum(x_, zero), [](double x) { return 1 + std::max(x, 0.0); }},
      {minimum(x_, zero), [](double x) { return std::min(x, 0.0); }},
      {minimum(maximum(x_, constant(-1)), one), [](double x) { return std::clamp(x, -1.0, 1.0); }},
      {minimum(maximum(x_, zero), constant(3)), [](double x) { return std::clamp(x, 0.0, 3.0); }},
      {one / (one + x_ * x_), [](double x) { return 1 / (1 + x * x); }},
  };
  for (Function f : functions) {
    if (f == Function::Pow || f == Function::Fmod) continue;
    for (const Argument& argument : arguments) {
      const ValueRange found = range(call(f, {argument.form}));
      for (double x : {-7.0, -1.5, -1.0, -0.25, 0.0, 0.5, 1.0, 2.5, 9.0})
        expect_within(found, function_value<double>(f, argument.at(x), 0.0), std::string(function_text(f)));
    }
  }
}

TEST_F(RangesTest, AreSeen) {
  const Expr sigmoid = constant(1) / (constant(1) + call(Function::Exp, {constant(0) - x_}));
  EXPECT_TRUE(range(sigmoid).is_positive());
  EXPECT_TRUE(range(sigmoid - constant(1)).is_negative());
  EXPECT_TRUE(range(call(Function::Cos, {x_}) + constant(1)).is_nonnegative());
  EXPECT_FALSE(range(call(Function::Cos, {x_}) + constant(1)).is_positive());
  EXPECT_FALSE(range(call(Function::Cos, {x_}) + constant(0.5)).is_nonnegative());
  EXPECT_TRUE(range(x_ * x_ + constant(1)).is_positive());
  EXPECT_FALSE(range(x_ * x_ * x_ + constant(1)).low.has_value());
  EXPECT_TRUE(range(x_ - call(Function::Floor, {x_})).is_nonnegative());
  EXPECT_TRUE(range(x_ - call(Function::Floor, {x_}) - constant(1)).is_negative());
  EXPECT_FALSE(range(x_ - call(Function::Round, {x_})).is_nonnegative());
}

TEST_F(RangesTest, DirectionsAreThoseOfTheFunction) {
  const auto direction = [&](const Expr& e) {
    const NormalForm form = normalize(e, Cond(), state_);
    const auto element = sole_element(form);
    return element ? direction_of(form, key(*element, false), state_) : std::nullopt;
  };
  const Expr e_to_x = call(Function::Exp, {x_});
  const auto elu = [&](double slope) {
    return choose(is_less(x_, constant(0)), constant(slope) * (e_to_x - constant(1)), x_);
  };
  EXPECT_EQ(direction(elu(1)), 1);
  EXPECT_EQ(direction(elu(-1)), std::nullopt) << "it falls below 0 and rises above";
  EXPECT_EQ(direction(constant(1) / (constant(1) + e_to_x)), -1);
  EXPECT_EQ(direction(x_ * x_ * x_), 1);
  EXPECT_EQ(direction(x_ * x_), std::nullopt);
  EXPECT_EQ(direction(call(Function::Cosh, {x_})), std::nullopt);
  EXPECT_EQ(direction(choose(is_less(x_, constant(1)), constant(2) * x_, x_)), std::nullopt) << "it falls at 1";
  EXPECT_EQ(direction(choose(is_less(x_, constant(-1)), constant(2) * x_, x_)), 1) << "it jumps up at -1";
}

}  // namespace
}  // namespace gopt
