// What floats forbid: rules with marks that are not safe, matches in other element types than the rule was proved for,
// constants of another precision, and reassociations that take away rounding which is meant.
#include <gtest/gtest.h>

#include "count_cost.h"
#include "gopt/text.h"

namespace gopt {
namespace {

struct Row {
  std::string name;
  std::string rule;   // below "rule r"
  std::string graph;  // below "graph g"
  std::string allowed;
  bool is_applied;
};
std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

class FloatRules : public testing::TestWithParam<Row> {};

TEST_P(FloatRules, AreAppliedWhereTheyMayBe) {
  const Row& row = GetParam();
  const auto rules = parse_rules("rule r\n" + row.rule + "end\n", "test");
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  const auto graph = parse_graph("graph g\n" + row.graph + "end\n");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  CountCost costs;
  SearchOptions options = untimed();
  options.disabled_passes = {"drop-identities", "fold-constants", "merge-commuted-nodes"};
  if (!row.allowed.empty()) options.allowed_marks.*(find_mark(row.allowed)->flag) = true;
  const auto result = optimize(*graph, *rules, costs, options);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(!result->applied.empty(), row.is_applied) << print_graph(result->graph);
}

std::string relu_twice(const std::string& rest) {
  return "var x f32[...]\nleft\na = Relu(x)\nb = Relu(a)\nreturn b\nright\nc = Relu(x)\nreturn c\n" + rest;
}
std::string relu_twice_of(const std::string& element) {
  return "input x : " + element + "[4]\na = Relu(x)\nb = Relu(a)\noutput b = b\n";
}

// (x + y) - z -> x + (y - z), or the same with + z, which a cost that prefers weights to be put together takes.
std::string reassociate(const std::string& last) {
  return "var x f32[...]\nvar y f32[]\nvar z f32[]\nleft\na = Add(x, y)\nb = " + last +
         "(a, z)\nc = Relu(b)\nd = Relu(c)\nreturn d\nright\na = " + last +
         "(y, z)\nb = Add(x, a)\nc = Relu(b)\nreturn c\nmarks reassociates\n";
}
std::string shifted_by(const std::string& c, const std::string& d, const std::string& last = "Sub") {
  return "input x : f32[4]\nconstant c = f32[] {" + c + "}\nconstant d = f32[] {" + d +
         "}\na = Add(x, c)\nb = " + last + "(a, d)\ne = Relu(b)\nf = Relu(e)\noutput f = f\n";
}

// w - (x + y) -> (w - x) - y.
const char* const kTakenFrom =
    "var w f32[...]\nvar x f32[...]\nvar y f32[...]\nleft\na = Add(x, y)\nb = Sub(w, a)\nc = Relu(b)\nd = "
    "Relu(c)\nreturn d\nright\na = Sub(w, x)\nb = Sub(a, y)\nc = Relu(b)\nreturn c\nmarks reassociates\n";
std::string sum_taken_from(const std::string& value) {
  return "input x : f32[4]\ninput u : f32[4]\ninput w : f32[4]\na = Add(x, u)\nb = Sub(" + value +
         ", a)\nc = Relu(b)\nd = Relu(c)\noutput d = d\n";
}

std::string relu_of_scaled(const std::string& constant) {
  return "var x f32[...]\nleft\nconstant c = " + constant +
         "\na = Mul(x, c)\nb = Relu(a)\nd = Relu(b)\nreturn d\nright\nconstant c = " + constant +
         "\na = Mul(x, c)\nb = Relu(a)\nreturn b\n";
}
std::string scaled_by(const std::string& element, const std::string& number) {
  return "input x : " + element + "[4]\nconstant c = " + element + "[] {" + number +
         "}\na = Mul(x, c)\nb = Relu(a)\nd = Relu(b)\noutput d = d\n";
}

const char* const kDivided =
    "var x f32[...]\nvar s f32[] weight\nleft\na = Div(x, s)\nb = Relu(a)\nc = Relu(b)\nreturn c\nright\n"
    "r = Reciprocal(s)\na = Mul(x, r)\nb = Relu(a)\nreturn b\nmarks reassociates\n";
std::string divided_by(const std::string& element, const std::string& number) {
  return "input x : " + element + "[4]\nconstant c = " + element + "[] {" + number +
         "}\na = Div(x, c)\nb = Relu(a)\nd = Relu(b)\noutput d = d\n";
}
INSTANTIATE_TEST_SUITE_P(
    All, FloatRules,
    testing::Values(
        Row{"Unmarked", relu_twice(""), relu_twice_of("f32"), "", true},
        Row{"SafeMarks", relu_twice("marks reassociates changes-rounding\n"), relu_twice_of("f32"), "", true},
        Row{"FiniteOnly", relu_twice("marks finite-only\n"), relu_twice_of("f32"), "", false},
        Row{"LosesRange", relu_twice("marks loses-range\n"), relu_twice_of("f32"), "", false},
        Row{"Cancels", relu_twice("marks cancels\n"), relu_twice_of("f32"), "", false},
        Row{"DropsRounding", relu_twice("marks drops-rounding\n"), relu_twice_of("f32"), "", false},
        Row{"Allowed", relu_twice("marks cancels\n"), relu_twice_of("f32"), "cancels", true},
        Row{"AnotherIsAllowed", relu_twice("marks cancels finite-only\n"), relu_twice_of("f32"), "cancels", false},
        Row{"EveryType", relu_twice(""), relu_twice_of("f64"), "", true},
        Row{"OneOfItsTypes", relu_twice("types f16 f32\n"), relu_twice_of("f16"), "", true},
        Row{"NoneOfItsTypes", relu_twice("types f16 f32\n"), relu_twice_of("f64"), "", false},
        Row{"ConstantOfThatValue", relu_of_scaled("f32[] {0.5}"), scaled_by("f64", "0.5"), "", true},
        Row{"ConstantOfAnotherPrecision", relu_of_scaled("f32[] {0.1}"), scaled_by("f64", "0.10000000000000001"), "",
            false},
        Row{"Reassociated", reassociate("Sub"), shifted_by("3", "1"), "", true},
        Row{"RoundsByALargeConstant", reassociate("Sub"), shifted_by("12582912", "12582912"), "", false},
        Row{"RoundsAndShifts", reassociate("Sub"), shifted_by("12582912", "12582911"), "", false},
        Row{"SumTakenFromAnother", kTakenFrom, sum_taken_from("w"), "", true},
        Row{"SumTakenFromItself", kTakenFrom, sum_taken_from("a"), "", false},
        Row{"SumTakenFromItsPart", kTakenFrom, sum_taken_from("x"), "", false},
        Row{"DividedByANumber", kDivided, divided_by("f32", "3"), "", true},
        Row{"DividedByWhatHasNoReciprocal", kDivided, divided_by("f32", "1e-40"), "", false},
        Row{"DividedByWhatHasNoReciprocalInHalves", kDivided, divided_by("f16", "0.00001"), "", false},
        Row{"DividedByWhatHasASmallReciprocal", kDivided, divided_by("f16", "60000"), "", false},
        Row{"RaisedTwice", reassociate("Add"), shifted_by("3", "4", "Add"), "", true},
        Row{"RaisedBeyondTheType", reassociate("Add"), shifted_by("3e38", "2.1e38", "Add"), "", false},
        Row{"RoundingMayGo", reassociate("Sub"), shifted_by("12582912", "12582911"), "drops-rounding", true}),
    [](const auto& info) { return info.param.name; });

// What ONNX allows and its runtime refuses is not made, but may stay. (That the sides are equal is not asked here.)
TEST(FloatRules, MakeNothingThatTheRuntimeRefuses) {
  const auto applied = [](const std::string& rule, const std::string& graph_text) {
    const auto rules = parse_rules("rule r\n" + rule + "end\n", "test");
    EXPECT_TRUE(rules.ok()) << rules.error().message;
    const auto graph = parse_graph("graph g\n" + graph_text + "end\n");
    EXPECT_TRUE(graph.ok()) << graph.error().message;
    CountCost costs;
    const auto result = optimize(*graph, *rules, costs, untimed());
    return result.ok() && !result->applied.empty();
  };
  const auto bordered = [](const std::string& width) {
    const std::string pad = "[0,0," + width + ",0,0,0,0," + width + "]", pads = "[" + width + ",0,0," + width + "]";
    return "var x f32[n,c,h,w]\nleft\np = Pad(x) {pads=" + pad +
           "}\na = AveragePool(p) {kernel_shape=[2,2]}\nreturn a\nright\na = AveragePool(x) {kernel_shape=[2,2], "
           "pads=" +
           pads + ", count_include_pad=1}\nreturn a\n";
  };
  const auto pooled = [](const std::string& width) {
    return "input x : f32[1,2,5,5]\np = Pad(x) {pads=[0,0," + width + ",0,0,0,0," + width +
           "]}\na = AveragePool(p) {kernel_shape=[2,2]}\noutput a = a\n";
  };
  EXPECT_TRUE(applied(bordered("1"), pooled("1")));
  EXPECT_FALSE(applied(bordered("2"), pooled("2")));
  const auto of = [](const std::string& type, const std::string& first) {
    return "input x : " + type + "[4]\na = " + first + "(x)\nb = Neg(a)\noutput b = b\n";
  };
  const auto to_erf = [](const std::string& first) {
    return "var x f32[...]\nleft\na = " + first + "(x)\nb = Neg(a)\nreturn b\nright\nc = Erf(x)\nreturn c\n";
  };
  EXPECT_TRUE(applied(to_erf("Neg"), of("f32", "Neg")));
  EXPECT_FALSE(applied(to_erf("Neg"), of("f64", "Neg")));
  EXPECT_TRUE(applied(to_erf("Erf"), of("f64", "Erf")));
}

// Rules that only move elements hold for every type; those that compute with them do not.
TEST(FloatRules, WhatOnlyMovesElementsHoldsForAllOfThem) {
  const auto rules = parse_rules(
      "rule moves\nvar x f32[a,b]\nleft\ny = Transpose(x) {perm=[1,0]}\nz = Transpose(y) {perm=[1,0]}\nreturn z\n"
      "right\nreturn x\nend\n"
      "rule computes\nvar x f32[...]\nleft\ny = Neg(x)\nz = Neg(y)\nreturn z\nright\nreturn x\nend\n"
      "rule pads\nvar x f32[a]\nleft\ny = Pad(x) {pads=[1,0]}\nz = Pad(y) {pads=[1,0]}\nreturn z\n"
      "right\nz = Pad(x) {pads=[2,0]}\nreturn z\nend\n",
      "test");
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  const auto applied = [&](const std::string& body) {
    const auto graph = parse_graph("graph g\n" + body + "end\n");
    EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
    CountCost costs;
    SearchOptions options = untimed();
    options.disabled_passes = pass_names();
    const auto result = optimize(*graph, *rules, costs, options);
    return result.ok() ? result->applied.size() : 99;
  };
  const std::string moved =
      "y = Transpose(x) {perm=[1,0]}\nz = Transpose(y) {perm=[1,0]}\nw = Identity(z)\noutput w = w\n";
  for (const char* type : {"f32", "i64", "u8", "bool"})
    EXPECT_EQ(applied(std::string("input x : ") + type + "[2,3]\n" + moved), 1u) << type;
  for (const char* type : {"f32", "i64"}) {
    const std::string input = std::string("input x : ") + type + "[3]\n";
    const size_t expected = type == std::string("f32") ? 1 : 0;
    EXPECT_EQ(applied(input + "y = Neg(x)\nz = Neg(y)\nw = Identity(z)\noutput w = w\n"), expected) << type;
    EXPECT_EQ(applied(input + "y = Pad(x) {pads=[1,0]}\nz = Pad(y) {pads=[1,0]}\noutput w = z\n"), expected) << type;
  }
}

TEST(FloatRules, ANamedRuleIsAskedFor) {
  const auto rules = parse_rules("rule r\n" + relu_twice("marks finite-only\n") + "end\n", "test");
  const auto graph = parse_graph("graph g\n" + relu_twice_of("f32") + "end\n");
  CountCost costs;
  SearchOptions options = untimed();
  options.enabled_rules = {"r"};
  const auto result = optimize(*graph, *rules, costs, options);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->applied.size(), 1u);
}

}  // namespace
}  // namespace gopt
