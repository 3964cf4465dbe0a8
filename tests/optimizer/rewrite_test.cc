// What one rule makes of one graph: matching, binding of symbols, rewriting.
#include <gtest/gtest.h>

#include "count_cost.h"
#include "gopt/text.h"
#include "graph_of.h"

namespace gopt {
namespace {

struct Row {
  std::string name;
  std::string rule;      // below "rule r"
  std::string graph;     // below "graph g"
  std::string expected;  // the same; empty: unchanged
};
std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

class RewriteTest : public testing::TestWithParam<Row> {};

TEST_P(RewriteTest, GivesTheExpectedGraph) {
  const Row& row = GetParam();
  const auto rules = parse_rules("rule r\n" + row.rule + "end\n", "test");
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  const Graph graph = graph_of(row.graph), expected = row.expected.empty() ? graph : graph_of(row.expected);
  CountCost costs;
  SearchOptions options = untimed();
  options.disabled_passes = {"drop-identities", "fold-constants", "merge-commuted-nodes"};
  const auto result = optimize(graph, *rules, costs, options);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->graph.hash(), expected.hash()) << print_graph(result->graph) << "expected\n"
                                                   << print_graph(expected);
  EXPECT_EQ(result->applied.empty(), row.expected.empty());
  EXPECT_TRUE(validate(result->graph).ok());
}

const char* const kReluTwice = R"(
  var x f32[...]
  left
    a = Relu(x)
    b = Relu(a)
    return b
  right
    c = Relu(x)
    return c
)";

const char* const kMergeMatMuls = R"(
  var x f32[...,m,k]
  var u f32[k,n] weight
  var v f32[k,p] weight
  left
    a = MatMul(x, u)
    b = MatMul(x, v)
    return a, b
  right
    w = Concat(u, v) {axis=1}
    c = MatMul(x, w)
    d, e = Split(c) {axis=-1, split=[n,p]}
    return d, e
)";

const char* const kDistribute = R"(
  var x f32[...]
  var y f32[...]
  var z f32[...]
  left
    a = Mul(x, y)
    b = Mul(x, z)
    c = Add(a, b)
    return c
  right
    a = Add(y, z)
    b = Mul(x, a)
    return b
)";

const char* const kSliceOfSlice = R"(
  var x f32[2*n+1,k]
  left
    a = Slice(x) {starts=[0], ends=[n], axes=[0]}
    b = Relu(a)
    c = Relu(b)
    return c
  right
    a = Slice(x) {starts=[0], ends=[n], axes=[0]}
    b = Relu(a)
    return b
)";

const char* const kWideSoftmax = R"(
  var x f32[m,n]
  left
    a = Neg(x)
    b = Neg(a)
    return b
  right
    return x
  when m >= 4
)";

const char* const kElu = R"(
  var x f32[...]
  float a
  left
    b = Elu(x) {alpha=$a}
    c = Relu(b)
    return c
  right
    c = Relu(x)
    return c
)";

INSTANTIATE_TEST_SUITE_P(Table, RewriteTest,
                         testing::Values(Row{"AnyRankByPrefix", kReluTwice, R"(
  input x : f32[2,3,4]
  a = Relu(x)
  b = Relu(a)
  output y = b
)",
                                             R"(
  input x : f32[2,3,4]
  a = Relu(x)
  output y = a
)"},
                                         Row{"ChainShrinksToOne", kReluTwice, R"(
  input x : f32[5]
  a = Relu(x)
  b = Relu(a)
  c = Relu(b)
  d = Relu(c)
  output y = d
)",
                                             R"(
  input x : f32[5]
  a = Relu(x)
  output y = a
)"},
                                         Row{"AnyFloatingType", kReluTwice, R"(
  input x : f16[5]
  a = Relu(x)
  b = Relu(a)
  output y = b
)",
                                             R"(
  input x : f16[5]
  a = Relu(x)
  output y = a
)"},
                                         Row{"NoIntegers", kReluTwice, R"(
  input x : i32[5]
  a = Relu(x)
  b = Relu(a)
  output y = b
)",
                                             ""},
                                         Row{"SymbolicExtents", kReluTwice, R"(
  input x : f32[batch,7]
  a = Relu(x)
  b = Relu(a)
  output y = b
)",
                                             R"(
  input x : f32[batch,7]
  a = Relu(x)
  output y = a
)"},
                                         Row{"InnerNodeWithAnotherUserIsKept", kReluTwice, R"(
  input x : f32[5]
  a = Relu(x)
  b = Relu(a)
  output y = b
  output z = a
)",
                                             R"(
  input x : f32[5]
  a = Relu(x)
  output y = a
  output z = a
)"},
                                         Row{"SiblingsThroughTheSharedOperand", kMergeMatMuls, R"(
  input x : f32[2,3,4]
  constant u = f32[4,2] {1,2,3,4,5,6,7,8}
  constant v = f32[4,1] {1,2,3,4}
  a = MatMul(x, u)
  b = MatMul(x, v)
  output y = a
  output z = b
)",
                                             R"(
  input x : f32[2,3,4]
  constant u = f32[4,2] {1,2,3,4,5,6,7,8}
  constant v = f32[4,1] {1,2,3,4}
  w = Concat(u, v) {axis=1}
  a = MatMul(x, w)
  b, c = Split(a) {axis=2, split=[2,1]}
  output y = b
  output z = c
)"},
                                         Row{"SiblingsNeedWeights", kMergeMatMuls, R"(
  input x : f32[2,3,4]
  input u : f32[4,2]
  constant v = f32[4,1] {1,2,3,4}
  a = MatMul(x, u)
  b = MatMul(x, v)
  output y = a
  output z = b
)",
                                             ""},
                                         Row{"SiblingThatDependsOnTheOtherMakesNoCycle", kMergeMatMuls, R"(
  input x : f32[4,4]
  constant u = f32[4,4] {1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8}
  a = MatMul(x, u)
  b = MatMul(a, u)
  output y = b
)",
                                             ""},
                                         Row{"CommutativeOperandsInAnyOrder", kDistribute, R"(
  input p : f32[3]
  input q : f32[3]
  input r : f32[3]
  a = Mul(q, p)
  b = Mul(p, r)
  c = Add(b, a)
  output y = c
)",
                                             R"(
  input p : f32[3]
  input q : f32[3]
  input r : f32[3]
  a = Add(r, q)
  b = Mul(p, a)
  output y = b
)"},
                                         Row{"OneShapeForAllPrefixedVariables", kDistribute, R"(
  input p : f32[3]
  input q : f32[3]
  input r : f32[2,3]
  a = Mul(q, p)
  b = Mul(p, r)
  c = Add(b, a)
  output y = c
)",
                                             ""},
                                         Row{"LinearExtentIsSolved", kSliceOfSlice, R"(
  input x : f32[7,2]
  a = Slice(x) {starts=[0], ends=[3], axes=[0]}
  b = Relu(a)
  c = Relu(b)
  output y = c
)",
                                             R"(
  input x : f32[7,2]
  a = Slice(x) {starts=[0], ends=[3], axes=[0]}
  b = Relu(a)
  output y = b
)"},
                                         Row{"LinearExtentWithoutSolution", kSliceOfSlice, R"(
  input x : f32[8,2]
  a = Slice(x) {starts=[0], ends=[3], axes=[0]}
  b = Relu(a)
  c = Relu(b)
  output y = c
)",
                                             ""},
                                         Row{"AttributeContradictsExtent", kSliceOfSlice, R"(
  input x : f32[7,2]
  a = Slice(x) {starts=[0], ends=[2], axes=[0]}
  b = Relu(a)
  c = Relu(b)
  output y = c
)",
                                             ""},
                                         Row{"ConditionHolds", kWideSoftmax, R"(
  input x : f32[4,2]
  a = Neg(x)
  b = Neg(a)
  c = Exp(b)
  output y = c
)",
                                             R"(
  input x : f32[4,2]
  c = Exp(x)
  output y = c
)"},
                                         Row{"ConditionFails", kWideSoftmax, R"(
  input x : f32[3,2]
  a = Neg(x)
  b = Neg(a)
  c = Exp(b)
  output y = c
)",
                                             ""},
                                         Row{"ConditionUndecided", kWideSoftmax, R"(
  input x : f32[batch,2]
  a = Neg(x)
  b = Neg(a)
  c = Exp(b)
  output y = c
)",
                                             ""},
                                         Row{"FloatAttributeVariable", kElu, R"(
  input x : f32[3]
  a = Elu(x) {alpha=0.25}
  b = Relu(a)
  output y = b
)",
                                             R"(
  input x : f32[3]
  b = Relu(x)
  output y = b
)"}),
                         [](const testing::TestParamInfo<Row>& info) { return info.param.name; });

TEST(Rewrite, KeepsTheNamesOfWhatItReplaces) {
  const auto rules = parse_rules(std::string("rule r\n") + kReluTwice + "end\n", "test");
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  GraphBuilder builder;
  const Value x = builder.input("x", {ElementType::Float32, Shape{3}});
  const NodePtr first = *builder.add(OpKind::Relu, {x}, {}, 1, "first", {"a"});
  const NodePtr second = *builder.add(OpKind::Relu, {{first, 0}}, {}, 1, "second", {"b"});
  builder.output("y", *builder.apply(OpKind::Exp, {{second, 0}}));
  CountCost costs;
  const auto result = optimize(builder.build(), *rules, costs);
  ASSERT_TRUE(result.ok()) << result.error().message;
  ASSERT_EQ(result->applied.size(), 1u);
  EXPECT_EQ(result->applied[0].matched_nodes, (std::vector<std::string>{"first", "second"}));
  EXPECT_EQ(result->applied[0].rule, "r");
  EXPECT_EQ(result->applied[0].content_hash, rules->front().content_hash());
  EXPECT_GT(result->applied[0].cost_before_ms, result->applied[0].cost_after_ms);
}

}  // namespace
}  // namespace gopt
