// Normal forms keep values, and expressions that are equal in simple ways have equal forms.
#include <gtest/gtest.h>

#include <cmath>

#include "normal_form/normalize.h"

namespace gopt {

using namespace verifier;

namespace {

class NormalFormTest : public ::testing::Test {
 protected:
  std::string text(const Expr& e, const Cond& context = Cond()) { return key(normalize(e, context, state_)); }
  Solver solver_{SolverOptions{}};
  ProofState state_{solver_, {}, {}, {}, false};
  Expr x_ = read(0, {symbol("i")}), y_ = read(1, {symbol("i")});
};

TEST_F(NormalFormTest, ProductsDistribute) {
  EXPECT_EQ(text((x_ + y_) * (x_ + y_)).empty(), false);
  EXPECT_EQ(text(x_ * y_), text(y_ * x_));
  EXPECT_EQ(text(constant(0.5) * x_ * constant(4)), text(constant(2) * x_));
}

TEST_F(NormalFormTest, ZeroVanishes) {
  EXPECT_TRUE(normalize(x_ * constant(0), Cond(), state_).empty());
  EXPECT_TRUE(normalize(call(Function::Sin, {constant(0)}), Cond(), state_).empty());
}

TEST_F(NormalFormTest, ExponentialsMerge) {
  EXPECT_EQ(text(call(Function::Exp, {x_ + y_})), text(call(Function::Exp, {x_}) * call(Function::Exp, {y_})));
  EXPECT_EQ(text(call(Function::Exp, {x_}) / call(Function::Exp, {x_})), text(constant(1)));
}

TEST_F(NormalFormTest, SizesCancelOnlyWherePositive) {
  const Index n = symbol("n");
  const Expr ratio = size_of(n) / size_of(n);
  EXPECT_EQ(text(ratio, at_least(n, Index(1))), text(constant(1)));
  EXPECT_NE(text(ratio, at_least(n, Index(0))), text(constant(1)));
}

TEST_F(NormalFormTest, SumOfOnesCounts) {
  const Index n = symbol("n");
  const Expr ones = reduce(ReduceKind::Sum, {n}, [](const std::vector<Index>&) { return constant(1); });
  EXPECT_EQ(text(ones, at_least(n, Index(0))), text(size_of(n)));
}

TEST_F(NormalFormTest, BranchesThatCannotHoldVanish) {
  const Index i = symbol("i");
  const Expr e = select(less(i, Index(3)), x_, y_);
  EXPECT_EQ(normalize(e, Cond(), state_).size(), 2u);
  const NormalForm form = normalize(e, within(i, Index(0), Index(3)), state_);
  ASSERT_EQ(form.size(), 1u);
  EXPECT_EQ(form[0].factors[0].input, 0);
}

TEST_F(NormalFormTest, InfiniteConstantOutsideAMaximumIsALimit) {
  EXPECT_THROW(normalize(x_ + constant(INFINITY), Cond(), state_), NotExpressible);
}

TEST_F(NormalFormTest, ReciprocalOfZeroIsALimit) {
  EXPECT_THROW(normalize(x_ / (y_ * constant(0)), Cond(), state_), NotExpressible);
}

}  // namespace
}  // namespace gopt
