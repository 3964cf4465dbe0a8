// The checker's own arithmetic, by rows that a person computed.
#include <gtest/gtest.h>

#include "assignments.h"

namespace gopt::checker {
namespace {

Poly poly(const std::string& text) { return Poly::parse(parse_sexprs("(+ " + text + ")")[0]); }

TEST(Polynomial, EqualValuesHaveEqualTexts) {
  EXPECT_EQ(poly("a b").text(), poly("b a").text());
  EXPECT_EQ((poly("a") * poly("a b 1")).text(), poly("(* a a) (* b a) a").text());
  EXPECT_EQ((poly("a") - poly("a")).text(), "0");
  EXPECT_EQ(substitute(poly("(* 2 k) n"), {{"k", poly("j 3")}}).text(), poly("(* 2 j) n 6").text());
}

TEST(Polynomial, WhatADivisorDividesIsTakenOut) {
  EXPECT_EQ(poly("(// (+ (* 4 k) 5) 4)").text(), poly("k 1").text());
  EXPECT_EQ(poly("(// (+ (* n k) j) n)").text(), poly("k (// j n)").text());
  EXPECT_EQ(poly("(// -1 4)").text(), "-1");
  EXPECT_EQ(poly("(// k 1)").text(), "k" == poly("k").text() ? "k" : poly("k").text());
}

TEST(Assignments, AreAllThatSatisfyTheGuard) {
  const Condition guard =
      Condition::parse(parse_sexprs("(and (>= i) (>= (+ (* -1 i) n -1)) (>= (+ j (* -1 i))) (>= (+ (* -1 j) 2)))")[0]);
  Values values{{"n", 2}};
  int count = 0;
  for_each_assignment({"i", "j"}, guard, values, 1, 1000, [&] { count++; });
  EXPECT_EQ(count, 5);  // i = 0: j = 0, 1, 2; i = 1: j = 1, 2
  EXPECT_THROW(for_each_assignment({"k"}, Condition::parse(parse_sexprs("(>= k)")[0]), values, 1, 1000, [] {}), Fault);
}

TEST(Assignments, QuotientsBound) {
  const Condition guard = Condition::parse(parse_sexprs("(and (>= (// k 3)) (>= (+ (* -1 (// k 3)) 1)))")[0]);
  Values values;
  int count = 0;
  for_each_assignment({"k"}, guard, values, 1, 1000, [&] { count++; });
  EXPECT_EQ(count, 6);
}

TEST(Assignments, AreDrawnWhereEquationsHold) {
  const Condition condition = Condition::parse(parse_sexprs(
      "(and (>= a) (>= b) (>= c) (>= (+ d (* -1 a b))) (>= (+ (* a b) (* -1 d))) (>= (+ c -1 (* -1 a))))")[0]);
  std::mt19937_64 random(7);
  Values values;
  ASSERT_TRUE(draw_assignment({"a", "b", "c", "d"}, condition, random, values, 1));
  EXPECT_EQ(values["d"], values["a"] * values["b"]);
  EXPECT_GT(values["c"], values["a"]);
}

}  // namespace
}  // namespace gopt::checker
