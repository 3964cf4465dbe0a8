// What becomes of proofs that may take less than the shipped rules were proved with.
#include <gtest/gtest.h>

#include "equality/real_cells.h"
#include "rule_files.h"
#include "rules/rule_verifier.h"

namespace gopt::verifier {
namespace {

// (x + y) * z = x * z + y * z
constexpr const char* kDistribute = R"(
rule distribute
  var x f32[n]
  var y f32[n]
  var z f32[n]
  left
    a = Add(x, y)
    b = Mul(a, z)
    return b
  right
    a = Mul(x, z)
    b = Mul(y, z)
    c = Add(a, b)
    return c
end
)";

// Each side is the largest of three.
constexpr const char* kMaxima = R"(
rule maxima
  var x f32[n]
  var y f32[n]
  var z f32[n]
  left
    a = Max(x, y)
    b = Max(a, z)
    return b
  right
    a = Max(z, y)
    b = Max(x, a)
    return b
end
)";

Verification verified(const char* text, const ProofLimits& limits) {
  const RewriteRule rule = rule_of(text);
  return RuleVerifier(rule, {}, limits).run();
}

TEST(ProofLimits, ThoseByDefaultAreWhatRulesAreProvedWith) {
  for (const char* text : {kDistribute, kMaxima}) EXPECT_EQ(verified(text, {}).verdict, Verdict::Proved) << text;
}

TEST(ProofLimits, WithoutUnitsNothingIsProved) {
  ProofLimits limits;
  limits.solver.units_in_all = 0;
  const Verification v = verified(kDistribute, limits);
  EXPECT_EQ(v.verdict, Verdict::Unknown);
  EXPECT_EQ(v.reason, "the proof needs more work than is done for one");
}

TEST(ProofLimits, WhatIsExceededIsSaid) {
  ProofLimits limits;
  limits.solver.units_in_all = 100;
  Solver solver({.limits = limits});
  solver.work(101);
  try {
    solver.work(1);
    FAIL() << "more units than there are";
  } catch (const BudgetExceeded& exceeded) {
    EXPECT_EQ(exceeded.budget(), BudgetExceeded::Budget::Units);
    EXPECT_EQ(exceeded.limit(), 100u);
  }
}

TEST(ProofLimits, WithoutDepthFormsAreNotCompared) {
  ProofLimits limits;
  limits.comparison.depth = -1;
  EXPECT_EQ(verified(kDistribute, limits).verdict, Verdict::Unknown);
}

// max(max(x, y), z) - max(x, max(z, y)) is 0 in each of its cells.
TEST(ProofLimits, AreOfTheCellsThatAreLookedAt) {
  using Kind = RealExpr::Kind;
  const auto make = [](RealExpr e) { return std::make_shared<const RealExpr>(std::move(e)); };
  const auto variable = [&](const char* name) { return make({Kind::Variable, {}, name, {}, {}}); };
  const auto largest = [&](const RealExprPtr& a, const RealExprPtr& b) {
    return make({Kind::Maximum, {}, "", {a, b}, {}});
  };
  const RealExprPtr x = variable("x"), y = variable("y"), z = variable("z");
  const RealExprPtr left = largest(largest(x, y), z), right = largest(x, largest(z, y));
  const RealExprPtr opposite = make({Kind::Multiply, {}, "", {make({Kind::Constant, -1, "", {}, {}}), right}, {}});
  const RealExprPtr value = make({Kind::Add, {}, "", {left, opposite}, {}});
  const auto is_zero = [&](const CellLimits& limits) {
    return is_zero_in_cells(
        value, {}, [](const auto&, const auto&) { return false; }, [] { return true; }, [](uint64_t) {}, limits);
  };
  EXPECT_TRUE(is_zero({}));
  EXPECT_FALSE(is_zero({.cells = 2}));
}

}  // namespace
}  // namespace gopt::verifier
