// Numbers with a bound on their rounding: the real value lies within it, and only what surely differs counts as a
// difference.
#include "samples/bounded.h"

#include <gtest/gtest.h>

namespace gopt {

using namespace verifier;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Bounded, SmallIntegersAreExact) {
  const Bounded sum = (Bounded(0.25) + 3.0) * -8.0 / 2.0;
  EXPECT_EQ(sum.value, -13);
  EXPECT_EQ(sum.error, 0);
}

TEST(Bounded, WhatIsLostIsBounded) {
  const Bounded x = Bounded(0.1) + 1e30 - 1e30;
  EXPECT_FALSE(surely_differ(x, 0.1)) << "it may be 0.1";
  EXPECT_FALSE(surely_differ(x, -0.05)) << "nothing tells";
  EXPECT_TRUE(surely_differ(x, 0.5)) << "no more than 0.1 is lost";
  EXPECT_TRUE(surely_differ(x, 1e30));
  const Bounded third = Bounded(1) / 3.0;
  EXPECT_FALSE(surely_differ(third * 3.0, 1));
  EXPECT_TRUE(surely_differ(third, 0.3333));
}

TEST(Bounded, FunctionsWidenByTheirSlope) {
  const Bounded x = (Bounded(1) / 3.0) * 3.0;
  const Bounded y = call_function(Function::Exp, x, 0);
  EXPECT_GT(y.error, 0);
  EXPECT_FALSE(surely_differ(y, call_function(Function::Exp, 1, 0)));
  EXPECT_FALSE(surely_differ(call_function(Function::Floor, x, 0), 0)) << "it may be just below 1";
  EXPECT_FALSE(call_function(Function::Exp, 1e6, 0).is_known()) << "it exceeds all numbers of this type";
}

TEST(Bounded, ComparisonsAreKnownOrNot) {
  const Bounded x = (Bounded(1) / 3.0) * 3.0;
  EXPECT_FALSE(is_less(x, 1).is_known());
  EXPECT_EQ(is_less(x, 2).value, 1);
  EXPECT_EQ(is_equal(Bounded(2) + 2.0, 4).value, 1);
}

TEST(Bounded, DivisionByZeroHasNoValueAndByNearlyZeroNoneThatIsKnown) {
  EXPECT_TRUE(surely_differ(Bounded(1) / 0.0, 5));
  EXPECT_FALSE(surely_differ(Bounded(1) / 0.0, Bounded(0) / 0.0));
  const Bounded nearly = (Bounded(1) / 3.0) * 3.0 - 1.0;
  EXPECT_FALSE((Bounded(1) / nearly).is_known());
}

TEST(Bounded, InfiniteConstantsAreMeant) {
  const Bounded x = (Bounded(1) / 3.0) * 3.0;
  EXPECT_EQ(largest(-kInfinity, x).value, x.value);
  EXPECT_EQ(call_function(Function::Exp, x + -kInfinity, 0).value, 0);
}

}  // namespace
}  // namespace gopt
