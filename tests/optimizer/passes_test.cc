// The passes around the search, each alone.
#include <gtest/gtest.h>

#include <algorithm>

#include "count_cost.h"
#include "gopt/text.h"
#include "graph_of.h"

namespace gopt {
namespace {

struct Row {
  std::string name, pass, graph, expected;  // expected empty: the same graph
};
std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

class PassTest : public testing::TestWithParam<Row> {};

TEST_P(PassTest, GivesTheExpectedGraph) {
  const Row& row = GetParam();
  const Graph graph = graph_of(row.graph), expected = row.expected.empty() ? graph : graph_of(row.expected);
  SearchOptions options = untimed();
  for (const std::string& pass : pass_names())
    if (pass != row.pass) options.disabled_passes.push_back(pass);
  CountCost costs;
  const auto result = optimize(graph, {}, costs, options);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->graph.hash(), expected.hash()) << print_graph(result->graph) << "expected\n"
                                                   << print_graph(expected);
  EXPECT_EQ(result->graph.same_as(graph), row.expected.empty());
  EXPECT_EQ(result->stop_reason, StopReason::Off);
  for (const PassNote& note : result->passes) EXPECT_EQ(note.pass, row.pass);
}

INSTANTIATE_TEST_SUITE_P(Table, PassTest,
                         testing::Values(Row{"Identity", "drop-identities", R"(
  input x : f32[3]
  a = Identity(x)
  b = Identity(a)
  c = Relu(b)
  output y = c
)",
                                             R"(
  input x : f32[3]
  c = Relu(x)
  output y = c
)"},
                                         Row{"IdentityThatIsAnOutputOfAnInput", "drop-identities", R"(
  input x : f32[3]
  a = Identity(x)
  output y = a
)",
                                             ""},
                                         Row{"IdentityThatIsAnOutput", "drop-identities", R"(
  input x : f32[3]
  a = Relu(x)
  b = Identity(a)
  output y = b
)",
                                             R"(
  input x : f32[3]
  a = Relu(x)
  output y = a
)"},
                                         Row{"SecondOutputKeepsItsIdentity", "drop-identities", R"(
  input x : f32[3]
  a = Relu(x)
  b = Identity(a)
  output y = b
  output z = a
)",
                                             ""},
                                         Row{"TransposeThatPermutesNothing", "drop-identities", R"(
  input x : f32[3,4]
  a = Transpose(x) {perm=[0,1]}
  b = Relu(a)
  output y = b
)",
                                             R"(
  input x : f32[3,4]
  b = Relu(x)
  output y = b
)"},
                                         Row{"NumbersThatChangeNothing", "drop-identities", R"(
  input x : f32[3,4]
  constant zero = f32[1] {0}
  constant one = f32[] {1}
  constant ones = f32[3,4] {1,1,1,1,1,1,1,1,1,1,1,1}
  a = Add(zero, x)
  b = Mul(a, ones)
  c = Sub(b, zero)
  d = Div(c, one)
  e = Pow(d, one)
  f = Relu(e)
  output y = f
)",
                                             R"(
  input x : f32[3,4]
  f = Relu(x)
  output y = f
)"},
                                         Row{"BoundsThatNoValueIsBeyond", "drop-identities", R"(
  input x : bool[2,3]
  input n : i32[2,3]
  input f : f32[1,3]
  constant yes = bool[] {1}
  constant no = bool[3] {0,0,0}
  constant infinite = f32[] {-inf}
  a = And(x, yes)
  b = Or(no, a)
  c = Not(b)
  d = Clip(n) {min=-2147483648, max=2147483647}
  e = Neg(d)
  g = Max(f, infinite)
  h = Relu(g)
  output y = c
  output z = e
  output w = h
)",
                                             R"(
  input x : bool[2,3]
  input n : i32[2,3]
  input f : f32[1,3]
  c = Not(x)
  e = Neg(n)
  h = Relu(f)
  output y = c
  output z = e
  output w = h
)"},
                                         Row{"BoundsThatSomeValueIsBeyondStay", "drop-identities", R"(
  input x : bool[2,3]
  input n : i32[2,3]
  input f : f32[1,3]
  constant yes = bool[] {1}
  constant lowest = f32[] {-3.4028234663852886e38}
  a = Or(x, yes)
  d = Clip(n) {min=-2147483647, max=2147483647}
  g = Max(f, lowest)
  output y = a
  output z = d
  output w = g
)",
                                             ""},
                                         // A mask that is computed from constants, and axes of one element.
                                         Row{"ZerosThatAreComputed", "drop-identities", R"(
  input x : f32[1,2,3]
  constant seen = bool[1,1,3] {1,1,1}
  constant zero = f32[] {0}
  constant far = f32[] {-inf}
  mask = Where(seen, zero, far)
  a = Add(x, mask)
  b = Exp(a)
  output y = b
)",
                                             R"(
  input x : f32[1,2,3]
  b = Exp(x)
  output y = b
)"},
                                         Row{"NumbersThatChangeSomethingStay", "drop-identities", R"(
  input x : f32[1,4]
  constant zero = f32[] {0}
  constant zeros = f32[3,4] {0,0,0,0,0,0,0,0,0,0,0,0}
  constant one = f32[] {1}
  constant nearly = f32[2,1] {1,1.0000001}
  a = Sub(zero, x)
  b = Add(a, zeros)
  c = Div(one, b)
  d = Mul(a, nearly)
  output y = c
  output z = d
)",
                                             ""},
                                         Row{"CastsThatLoseNothing", "drop-identities", R"(
  input x : f32[3]
  input n : u8[3]
  a = Cast(x) {to=11}
  b = Cast(a) {to=1}
  c = Relu(b)
  d = Cast(n) {to=10}
  e = Cast(d) {to=2}
  f = Add(e, e)
  output y = c
  output z = f
)",
                                             R"(
  input x : f32[3]
  input n : u8[3]
  c = Relu(x)
  f = Add(n, n)
  output y = c
  output z = f
)"},
                                         Row{"CastsThatLoseSomethingStay", "drop-identities", R"(
  input x : f32[3]
  input n : i32[3]
  input i : i8[3]
  a = Cast(x) {to=10}
  b = Cast(a) {to=1}
  c = Relu(b)
  d = Cast(n) {to=1}
  e = Cast(d) {to=6}
  f = Neg(e)
  g = Cast(i) {to=2}
  h = Cast(g) {to=3}
  k = Neg(h)
  output y = c
  output z = f
  output w = k
)",
                                             ""},
                                         Row{"SquareTransposeStays", "drop-identities", R"(
  input x : f32[3,3]
  a = Transpose(x) {perm=[1,0]}
  b = Relu(a)
  output y = b
)",
                                             ""},
                                         Row{"SliceOfAllReshapeToItselfConcatOfOne", "drop-identities", R"(
  input x : f32[n,4]
  a = Slice(x) {starts=[0], ends=[4], axes=[1]}
  b = Reshape(a) {shape=[n,4]}
  c = Concat(b) {axis=0}
  d = Relu(c)
  output y = d
)",
                                             R"(
  input x : f32[n,4]
  d = Relu(x)
  output y = d
)"},
                                         Row{"SliceInReverseStays", "drop-identities", R"(
  input x : f32[4]
  a = Slice(x) {starts=[-1], ends=[-5], axes=[0], steps=[-1]}
  b = Relu(a)
  output y = b
)",
                                             ""},
                                         Row{"SmallConstants", "fold-constants", R"(
  input x : f32[2]
  constant c = f32[2] {1,2}
  constant d = f32[2] {10,20}
  a = Add(c, d)
  b = Mul(x, a)
  output y = b
)",
                                             R"(
  input x : f32[2]
  constant a = f32[2] {11,22}
  b = Mul(x, a)
  output y = b
)"},
                                         Row{"ShapeOfAnInput", "fold-constants", R"(
  input x : f32[2,5]
  a = Shape(x)
  output y = a
)",
                                             R"(
  input x : f32[2,5]
  constant a = i64[2] {2,5}
  output y = a
)"},
                                         Row{"SymbolicShapeStays", "fold-constants", R"(
  input x : f32[n,5]
  a = Shape(x)
  output y = a
)",
                                             ""},
                                         Row{"LargeConstantsStay", "fold-constants", R"(
  input x : f32[100,100]
  a = ConstantOfShape() {shape=[100,100]}
  b = Mul(x, a)
  output y = b
)",
                                             ""},
                                         Row{"CommutedSums", "merge-commuted-nodes", R"(
  input x : f32[2]
  input z : f32[2]
  a = Add(x, z)
  b = Add(z, x)
  c = Mul(a, b)
  output y = c
)",
                                             R"(
  input x : f32[2]
  input z : f32[2]
  a = Add(x, z)
  c = Mul(a, a)
  output y = c
)"},
                                         Row{"CommutedDifferencesStay", "merge-commuted-nodes", R"(
  input x : f32[2]
  input z : f32[2]
  a = Sub(x, z)
  b = Sub(z, x)
  c = Mul(a, b)
  output y = c
)",
                                             ""}),
                         [](const testing::TestParamInfo<Row>& info) { return info.param.name; });

// As an ONNX runtime knows a normalization by its scale: without a Mul the graph is dearer.
class DearWithoutProduct : public CostOracle {
 public:
  Cost estimate(const Graph& graph) override {
    const bool has_product = std::ranges::any_of(graph.nodes(), [](const NodePtr& n) { return n->is(OpKind::Mul); });
    return {static_cast<double>(graph.nodes().size()) + (has_product ? 0 : 100)};
  }
};

TEST(DroppedIdentities, AreThoseThatMakeTheGraphNoDearer) {
  const std::string head = "input x : f32[2,3]\nconstant one = f32[3] {1, 1, 1}\n";
  const Graph graph = graph_of(head +
                               "a = Identity(x)\nb = Exp(a)\nm = Mul(b, one)\nc = Transpose(m) {perm=[0,1]}\n"
                               "d = Neg(c)\noutput y = d\n");
  DearWithoutProduct costs;
  const auto result = optimize(graph, {}, costs, untimed());
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->graph.hash(), graph_of(head + "b = Exp(x)\nm = Mul(b, one)\nd = Neg(m)\noutput y = d\n").hash())
      << print_graph(result->graph);
}

}  // namespace
}  // namespace gopt
