// What is said to stand in a rule's way, an obstacle a row, and that nothing is said where more than one thing does.
#include "gopt/near_misses.h"

#include <gtest/gtest.h>

#include "gopt/text.h"

namespace gopt {
namespace {

struct Row {
  std::string name;
  std::string rule;                  // below "rule r"
  std::string graph;                 // below "graph g"
  std::optional<Obstacle> obstacle;  // nothing: it matches, or more than one thing is in the way
  std::string expected = "", found = "";
};
std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

NearMisses misses_of(const std::string& rule, const std::string& graph, NearMissOptions options = {}) {
  const auto rules = parse_rules("rule r\n" + rule + "end\n", "test");
  const auto parsed = parse_graph("graph g\n" + graph + "end\n");
  EXPECT_TRUE(rules.ok()) << rules.error().message;
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  auto found = find_near_misses(*parsed, *rules, options);
  EXPECT_TRUE(found.ok());
  return found.ok() ? *found : NearMisses{};
}

class NearMissesTest : public testing::TestWithParam<Row> {};

TEST_P(NearMissesTest, SaysWhatStandsInTheWay) {
  const Row& row = GetParam();
  const NearMisses found = misses_of(row.rule, row.graph);
  if (!row.obstacle) {
    EXPECT_TRUE(found.misses.empty()) << name_of(found.misses.front().obstacle);
    return;
  }
  ASSERT_EQ(found.misses.size(), 1u);
  const NearMiss& miss = found.misses.front();
  EXPECT_EQ(name_of(miss.obstacle), name_of(*row.obstacle)) << miss.expected << ", " << miss.found;
  EXPECT_EQ(miss.rule, "r");
  EXPECT_EQ(miss.expected, row.expected);
  EXPECT_EQ(miss.found, row.found);
  EXPECT_TRUE(found.matches.empty());
}

const char* const kScaled = R"(
  var x f32[n,c,h,w]
  var k f32[o,c,kh,kw] weight
  var s f32[o,1,1] weight
  left
    y = Conv(x, k) {pads=[pt,pl,pb,pr], strides=[1,1], dilations=[dh,dw]}
    z = Mul(y, s)
    return z
  right
    u = Unsqueeze(s) {axes=[1]}
    l = Mul(k, u)
    z = Conv(x, l) {pads=[pt,pl,pb,pr], strides=[1,1], dilations=[dh,dw]}
    return z
)";

// A convolution of these further inputs and attributes, and what follows it.
std::string convolved(const std::string& inputs, const std::string& attributes, const std::string& rest) {
  return "  input x : f32[1,2,4,4]\n  input t : f32[3,1,1]\n  constant k = f32[3,2,1,1] {1,2,3,4,5,6}\n"
         "  constant b = f32[3] {1,2,3}\n  constant s = f32[3,1,1] {3,2,1}\n"
         "  constant one = f32[1,1,4] {1,2,3,4}\n  y = Conv(x, k" +
         inputs + ") {" + attributes + "}\n" + rest;
}

const char* const kTwoParts = R"(
  var x f32[m,n+k]
  left
    a, b = Split(x) {axis=1, split=[n,k]}
    y = Relu(a)
    z = Relu(b)
    return y, z
  right
    a = Relu(x)
    y, z = Split(a) {axis=1, split=[n,k]}
    return y, z
)";

const char* const kHalves = R"(
  var x f32[2*n]
  left
    constant two = f32[] {2}
    y = Mul(x, two)
    z = Relu(y)
    return z
  right
    constant two = f32[] {2}
    y = Relu(x)
    z = Mul(y, two)
    return z
  when n >= 2
)";

const char* const kSame = R"(
  var x f32[...]
  left
    y = Exp(x)
    z = Mul(y, y)
    return z
  right
    y = Add(x, x)
    z = Exp(y)
    return z
)";

INSTANTIATE_TEST_SUITE_P(
    Obstacles, NearMissesTest,
    testing::Values(
        Row{"Bias", kScaled, convolved(", b", "", "  z = Mul(y, s)\n  output z = z\n"), Obstacle::Input, "2 inputs",
            "Conv of 3 inputs"},
        Row{"Stride", kScaled, convolved("", "strides=[2,2]", "  z = Mul(y, s)\n  output z = z\n"), Obstacle::Attribute,
            "strides=[1,1]", "strides=[2,2]"},
        Row{"NoWeight", kScaled, convolved("", "", "  z = Mul(y, t)\n  output z = z\n"), Obstacle::Weight, "a weight",
            "Input f32[3,1,1]"},
        Row{"Extent", kScaled, convolved("", "", "  z = Mul(y, one)\n  output z = z\n"), Obstacle::Extent, "[o,1,1]",
            "Constant f32[1,1,4]"},
        Row{"Between", kScaled, convolved("", "", "  r = Relu(y)\n  z = Mul(r, s)\n  output z = z\n"),
            Obstacle::Between, "Conv", "Relu"},
        Row{"OtherUser", kScaled, convolved("", "", "  z = Mul(y, s)\n  r = Relu(y)\n  output z = z\n  output r = r\n"),
            Obstacle::OtherUser, "Conv used here alone", "Relu"},
        Row{"OutputIsAUser", kScaled, convolved("", "", "  z = Mul(y, s)\n  output z = z\n  output y = y\n"),
            Obstacle::OtherUser, "Conv used here alone", "an output"},
        Row{"TwoThings", kScaled, convolved(", b", "strides=[2,2]", "  z = Mul(y, s)\n  output z = z\n"), std::nullopt},
        Row{"Marks", kScaled + std::string("  marks finite-only\n"),
            convolved("", "", "  z = Mul(y, s)\n  output z = z\n"), Obstacle::Marks, "to be allowed", "a match"},
        Row{"MarksAndBias", kScaled + std::string("  marks finite-only\n"),
            convolved(", b", "", "  z = Mul(y, s)\n  output z = z\n"), std::nullopt},
        Row{"Axis", kTwoParts,
            "  input x : f32[6,4]\n  a, b = Split(x) {axis=0, split=[2,4]}\n  y = Relu(a)\n  z = Relu(b)\n"
            "  output y = y\n  output z = z\n",
            Obstacle::Axis, "axis=1", "axis=0"},
        Row{"Rank", kTwoParts,
            "  input x : f32[1,6,4,4]\n  a, b = Split(x) {axis=1, split=[2,4]}\n  y = Relu(a)\n  z = Relu(b)\n"
            "  output y = y\n  output z = z\n",
            Obstacle::Rank, "rank 2", "Relu f32[1,2,4,4]"},
        Row{"MoreParts", kTwoParts,
            "  input x : f32[3,6]\n  a, b, c = Split(x) {axis=1, split=[1,1,4]}\n  y = Relu(a)\n  z = Relu(b)\n"
            "  output y = y\n  output z = z\n  output c = c\n",
            Obstacle::Output, "2 outputs", "output 0 of 3 of Split"},
        Row{"NoSibling", kTwoParts,
            "  input x : f32[3,6]\n  a, b = Split(x) {axis=1, split=[2,4]}\n  y = Relu(a)\n  z = Tanh(b)\n"
            "  output y = y\n  output z = z\n",
            Obstacle::Node, "Relu of it", "Split"},
        Row{"Constant", kHalves,
            "  input x : f32[4]\n  constant c = f32[] {3}\n  y = Mul(x, c)\n  z = Relu(y)\n  output z = z\n",
            Obstacle::Constant, "another constant", "Constant f32[]"},
        Row{"ConditionFalse", kHalves,
            "  input x : f32[2]\n  constant c = f32[] {2}\n  y = Mul(x, c)\n  z = Relu(y)\n  output z = z\n",
            Obstacle::Condition, "n >= 2", "Relu f32[2]"},
        Row{"ConditionUndecided", kHalves,
            "  input x : f32[2*q]\n  constant c = f32[] {2}\n  y = Mul(x, c)\n  z = Relu(y)\n  output z = z\n",
            Obstacle::Undecided, "n >= 2", "Relu f32[2*q]"},
        Row{"Sharing", kSame, "  input x : f32[3]\n  y = Exp(x)\n  z = Mul(y, x)\n  output z = z\n", Obstacle::Node,
            "Exp", "Input"},
        Row{"SharingOfNodes", kSame,
            "  input x : f32[3]\n  input u : f32[3]\n  y = Exp(x)\n  v = Exp(u)\n  z = Mul(y, v)\n  output z = z\n",
            Obstacle::Sharing, "Exp", "Exp f32[3]"},
        Row{"Matches", kSame, "  input x : f32[3]\n  y = Exp(x)\n  z = Mul(y, y)\n  output z = z\n", std::nullopt}),
    [](const testing::TestParamInfo<Row>& row) { return row.param.name; });

TEST(NearMisses, IntegersAreNoFloats) {
  const char* const rule = R"(
  var x f32[n]
  left
    y = Abs(x)
    z = Neg(y)
    return z
  right
    y = Abs(x)
    z = Neg(y)
    return z
)";
  const NearMisses found = misses_of(rule, "  input x : i32[3]\n  y = Abs(x)\n  z = Neg(y)\n  output z = z\n");
  ASSERT_EQ(found.misses.size(), 1u);
  EXPECT_EQ(found.misses[0].obstacle, Obstacle::Type);
  EXPECT_EQ(found.misses[0].found, "Input i32[3]");
}

TEST(NearMisses, RoundingThatTwoValuesOfOneKeep) {
  const char* const rule = R"(
  var x f32[n]
  var y f32[n]
  var z f32[n]
  left
    a = Add(x, y)
    b = Sub(a, z)
    return b
  right
    a = Sub(y, z)
    b = Add(x, a)
    return b
  marks reassociates
)";
  const NearMisses found =
      misses_of(rule, "  input x : f32[3]\n  input c : f32[3]\n  a = Add(x, c)\n  b = Sub(a, c)\n  output b = b\n");
  ASSERT_EQ(found.misses.size(), 1u);
  EXPECT_EQ(found.misses[0].obstacle, Obstacle::Rounding);
}

TEST(NearMisses, MatchesAreCountedByRule) {
  const NearMisses found = misses_of(kSame, "  input x : f32[3]\n  y = Exp(x)\n  z = Mul(y, y)\n  output z = z\n");
  EXPECT_EQ(found.matches.at("r"), 1);
}

TEST(NearMisses, OneNodeOfTwoIsNearWhereThatIsAskedFor) {
  const std::string graph =
      "  input x : f32[3]\n  y = Tanh(x)\n  u = Exp(x)\n  z = Mul(y, y)\n  output z = z\n  output u = u\n";
  EXPECT_TRUE(misses_of(kSame, graph).misses.empty());
  const NearMisses found = misses_of(kSame, graph, {.least_nodes = 1});
  ASSERT_EQ(found.misses.size(), 1u);
  EXPECT_EQ(found.misses[0].obstacle, Obstacle::Node);
  EXPECT_EQ(found.misses[0].found, "Tanh");
}

TEST(NearMisses, ObstaclesHaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const Obstacle obstacle : all_obstacles()) EXPECT_TRUE(names.insert(name_of(obstacle)).second);
  EXPECT_FALSE(names.contains(""));
}

}  // namespace
}  // namespace gopt
