// The questions that the proof asks, and rational coefficients.
#include "solver/solver.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "solver/smt_text.h"

namespace gopt {

using namespace verifier;

namespace {

Index a() { return symbol("a"); }
Index b() { return symbol("b"); }
Cond positive(const Index& i) { return at_least(i, Index(1)); }

TEST(Solver, EntailsLinearAndNonLinear) {
  Solver solver({});
  EXPECT_TRUE(solver.entails(at_least(a(), Index(3)), at_least(a(), Index(1))));
  EXPECT_FALSE(solver.entails(at_least(a(), Index(1)), at_least(a(), Index(3))));
  EXPECT_TRUE(solver.entails(positive(a()) && positive(b()), positive(a() * b())));
  EXPECT_FALSE(solver.entails(Cond(), at_least(a() * b(), Index(0))));
}

TEST(Solver, KnowsFloorDivision) {
  Solver solver({});
  const Index q = floor_div(a(), Index(4));
  EXPECT_TRUE(solver.entails(Cond(), within(a() - Index(4) * q, Index(0), Index(4))));
  EXPECT_FALSE(solver.entails(at_least(a(), Index(0)), equal(a(), Index(4) * q)));
}

TEST(Solver, CountsCancel) {
  Solver solver({});
  const Cond all = within(a(), Index(0), Index(10)), low = within(a(), Index(0), Index(4)),
             high = within(a(), Index(4), Index(10));
  EXPECT_TRUE(solver.sums_to_zero(Cond(), {{1, all}, {-1, low}, {-1, high}}));
  EXPECT_FALSE(solver.sums_to_zero(Cond(), {{1, all}, {-1, low}}));
}

TEST(Solver, WhatIsDoneWithoutAQuestionCountsToo) {
  Solver solver({});
  solver.work(1'000);
  EXPECT_TRUE(solver.entails(at_least(a(), Index(3)), at_least(a(), Index(1))));
  solver.work(uint64_t{1} << 40);
  EXPECT_THROW(solver.work(1), std::overflow_error);
  EXPECT_THROW(solver.entails(at_least(b(), Index(3)), at_least(a(), Index(1))), std::overflow_error);
}

TEST(Solver, FactsOfRealsExcludeOthers) {
  Solver solver({});
  const auto variable = [](const char* name) {
    return std::make_shared<const RealExpr>(RealExpr{RealExpr::Kind::Variable, {}, name, {}, {}});
  };
  const RealExprPtr x = variable("x"), y = variable("y");
  const auto product = std::make_shared<const RealExpr>(RealExpr{RealExpr::Kind::Multiply, {}, "", {x, y}, {}});
  using Relation = RealFact::Relation;
  EXPECT_TRUE(solver.is_impossible({{x, Relation::Positive}, {y, Relation::Positive}, {product, Relation::Zero}}));
  EXPECT_FALSE(solver.is_impossible({{x, Relation::NotNegative}, {product, Relation::Zero}}));
  EXPECT_TRUE(solver.is_impossible({{x, Relation::Zero}, {product, Relation::NotZero}}));
}

TEST(Solver, SameQuestionsSameDigest) {
  std::string digests[2];
  for (std::string& digest : digests) {
    Solver solver({});
    EXPECT_TRUE(solver.entails(positive(a()) && positive(b()), positive(a() + b())));
    EXPECT_EQ(solver.obligations(), 1);
    digest = solver.digest();
  }
  EXPECT_EQ(digests[0], digests[1]);
}

TEST(Solver, KeepsObligationsAsText) {
  Solver solver({20'000'000, true});
  solver.set_topic("a sum is positive");
  ASSERT_TRUE(solver.entails(positive(a()), positive(a() + a())));
  ASSERT_EQ(solver.kept().size(), 1u);
  EXPECT_EQ(solver.kept()[0].what, "a sum is positive");
  EXPECT_EQ(solver.kept()[0].smtlib,
            "(set-logic ALL)\n(declare-const a Int)\n(assert (>= (+ a (- 1)) 0))\n(assert (>= (* (- 2) a) "
            "0))\n(check-sat)\n");
}

TEST(Rational, IsExact) {
  EXPECT_EQ(Rational(6, -4), Rational(-3, 2));
  EXPECT_EQ(Rational(1, 3) + Rational(1, 6), Rational(1, 2));
  EXPECT_EQ(Rational::from_double(0.375), Rational(3, 8));
  EXPECT_FALSE(Rational::from_double(0.1).has_value());
  EXPECT_THROW(Rational(INT64_MAX) * Rational(2), std::overflow_error);
}

}  // namespace
}  // namespace gopt
