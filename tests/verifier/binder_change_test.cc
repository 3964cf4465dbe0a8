// Guesses of how the binders of two terms correspond never speak of binders inside their factors.
#include "equality/binder_change.h"

#include <gtest/gtest.h>

namespace gopt {

using namespace verifier;

namespace {

Factor read_at(int input, const Index& subscript) {
  Factor factor;
  factor.input = input;
  factor.subscripts = {subscript};
  return factor;
}

// max(SUM over k of x[outer + k] v[k]), or without v.
Factor window(const Index& outer, AtomId k, bool has_weights) {
  Summand term;
  term.binders = {k};
  term.guard = within(Index::from_atom(k), Index(0), Index(3));
  term.factors = {read_at(0, outer + Index::from_atom(k))};
  if (has_weights) term.factors.push_back(read_at(1, Index::from_atom(k)));
  Factor factor;
  factor.kind = FactorKind::Maximum;
  factor.branches = {Branch{{}, Cond(), {term}}};
  return factor;
}

class BinderChangeTest : public ::testing::Test {
 protected:
  void compare(bool has_weights) {
    const Factor known = window(Index::from_atom(h_), pool_.fresh(), has_weights);
    const Factor other = window(Index::from_atom(g_) + Index(1), pool_.fresh(), has_weights);
    append_equations(known, other, equations_);
    inside_.add(known, other);
  }
  BinderPool pool_;
  AtomId h_ = pool_.fresh(), g_ = pool_.fresh();
  std::vector<Index> equations_;
  InnerBinders inside_;
};

TEST_F(BinderChangeTest, WhatASumInsideReadsSaysHowTheOuterBinderIsShifted) {
  compare(true);
  const auto change = solve_binders(equations_, {g_}, {h_}, inside_, 0);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->size(), 1U);
  EXPECT_EQ(change->at(g_), Index::from_atom(h_) - Index(1));
}

TEST_F(BinderChangeTest, AnOuterBinderThatDependsOnAnInnerOneIsOpen) {
  compare(false);
  const PartialSolution solution = solve_partially(equations_, {g_}, inside_);
  EXPECT_TRUE(solution.values.empty());
  EXPECT_EQ(solution.open, std::vector<AtomId>{g_});
}

TEST_F(BinderChangeTest, InnerBindersOfTheOtherSideAreNoValuesEither) {
  const Factor known = window(Index::from_atom(h_), pool_.fresh(), true);
  inside_.add(known, read_at(2, Index(0)));
  ASSERT_EQ(inside_.of_known.size(), 1U);
  equations_ = {Index::from_atom(g_) - Index::from_atom(inside_.of_known[0])};
  EXPECT_TRUE(solve_partially(equations_, {g_}, inside_).values.empty());
}

}  // namespace
}  // namespace gopt
