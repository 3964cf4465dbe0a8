// Extents that a graph's nodes broadcast to each other: what each would be if they were equal.
#include <gtest/gtest.h>

#include "gopt/split_model.h"

namespace gopt {
namespace {

TensorType floats(Shape shape) { return {ElementType::Float32, std::move(shape)}; }

class Meeting : public testing::Test {
 protected:
  Meeting() { builder_.set_broadcast_unknown(true); }

  Value input(const std::string& name, Shape shape) { return builder_.input(name, floats(std::move(shape))); }
  Value apply(OpKind kind, const std::string& name, std::vector<Value> inputs) {
    return {*builder_.add(kind, std::move(inputs), {}, 1, name, {name}), 0};
  }
  std::string found(const Value& output) {
    builder_.output("y", output);
    std::string text;
    for (const MeetingExtents& own : meeting_extents(builder_.build()))
      text += to_string(Index::from_atom(own.symbol)) + " = " + to_string(own.value) + " at " + own.where + "; ";
    return text;
  }
  GraphBuilder builder_;
};

TEST_F(Meeting, AMaskIsAsLongAsACacheAndItsNewTokens) {
  const Value past = input("past", {symbol("p"), Index(4)}), fresh = input("new", {symbol("t"), Index(4)}),
              mask = input("mask", {symbol("s"), Index(1)});
  const Value all{*builder_.add(OpKind::Concat, {past, fresh}, {{"axis", Index(0)}}, 1, "all", {"all"}), 0};
  EXPECT_EQ(found(apply(OpKind::Mul, "kept", {all, mask})), "s = p+t at node `kept` (Mul); ");
}

TEST_F(Meeting, WhatIsKnownOfOneIsPutIntoOthers) {
  const Value a = input("a", {symbol("u"), Index(4)}), b = input("b", {symbol("v"), Index(4)}),
              c = input("c", {symbol("w"), Index(4)});
  const Value left = apply(OpKind::Add, "left", {a, b}), right = apply(OpKind::Add, "right", {b, c});
  builder_.output("left", left);
  EXPECT_EQ(found(right), "v = u at node `left` (Add); w = u at node `right` (Add); ");
}

TEST_F(Meeting, ABatchOfProductsIsOne) {
  const Value a = input("a", {symbol("u"), symbol("r"), Index(4)}),
              b = input("b", {symbol("v"), Index(4), symbol("q")});
  EXPECT_EQ(found(apply(OpKind::MatMul, "product", {a, b})), "v = u at node `product` (MatMul); ");
}

TEST_F(Meeting, WhatNoInputHasByItselfIsLeft) {
  const Value a = input("a", {2 * symbol("u")}), b = input("b", {3 * symbol("v")});
  EXPECT_EQ(found(apply(OpKind::Add, "sum", {a, b})), "");
}

// Of s and s + t, t is not 0: s is 1.
TEST_F(Meeting, NoExtentIsTakenToBeNothing) {
  const Value a = input("a", {symbol("s"), Index(4)}), b = input("b", {symbol("t"), Index(4)});
  const Value all{*builder_.add(OpKind::Concat, {a, b}, {{"axis", Index(0)}}, 1, "all", {"all"}), 0};
  EXPECT_EQ(found(apply(OpKind::Add, "sum", {a, all})), "");
}

TEST_F(Meeting, NoExtentIsNegative) {
  const Value a = input("a", {symbol("u"), symbol("v")}), b = input("b", {symbol("u") + symbol("v") + 3});
  EXPECT_EQ(found(apply(OpKind::Add, "sum", {a, b})), "");  // u would be -3
}

}  // namespace
}  // namespace gopt
