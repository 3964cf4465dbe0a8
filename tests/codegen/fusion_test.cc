// Whatever is computed inside what: plans by drawn times of kernels compute what the interpreter does.
#include <gtest/gtest.h>

#include "../optimizer/random_graph.h"
#include "batch.h"
#include "gopt/kernel_spec.h"

namespace gopt {
namespace {

// Each kernel's time is drawn, by its signature and the seed, between 1 and 20.
class DrawnCosts : public KernelCosts {
 public:
  explicit DrawnCosts(uint64_t seed) : seed_(seed) {}
  double time_ms(const Plan& plan, const Kernel& kernel) override {
    const Hash128 drawn = hash_bytes(std::to_string(seed_) + kernel_signature(plan, kernel));
    return 1 + static_cast<double>(drawn.low % 1900) / 100;
  }
  bool is_measured(const Plan&, const Kernel&) const override { return true; }

 private:
  uint64_t seed_;
};

// What the rules leave open, of each kind.
const std::pair<const char*, const char*> kRows[] = {
    {"StatisticsOfRows",
     "input x : f32[6,5,40]\nm = ReduceMean(x) {axes=[2], keepdims=1}\nc = Sub(x, m)\nq = Mul(c, c)\n"
     "v = ReduceMean(q) {axes=[2], keepdims=1}\ns = Sqrt(v)\ny = Div(c, s)\noutput y = y"},
    {"SoftmaxInPieces",
     "input x : f32[3,7,33]\nm = ReduceMax(x) {axes=[2], keepdims=1}\nc = Sub(x, m)\ne = Exp(c)\n"
     "s = ReduceSum(e) {axes=[2], keepdims=1}\ny = Div(e, s)\noutput y = y"},
    {"ResidualsOfConvolutions",
     "input x : f32[1,32,9,8]\ninput w1 : f32[32,32,1,1]\ninput w2 : f32[32,32,3,3]\na = Conv(x, w1)\nb = Relu(a)\n"
     "c = Conv(b, w2) {pads=[1,1,1,1]}\nd = Add(c, b)\ne = Relu(d)\nf = Conv(e, w1)\ng = Add(f, e)\nh = Sigmoid(g)\n"
     "p = MaxPool(g) {kernel_shape=[3,3]}\noutput y = h\noutput z = p"},
    {"GatedConvolutions",
     "input x : f32[1,32,9,8]\ninput w1 : f32[48,32,1,1]\ninput w2 : f32[32,48,1,1]\na = Conv(x, w1)\n"
     "s = Sigmoid(a)\nb = Mul(a, s)\nc = Conv(b, w2)\nd = Tanh(c)\ne = Neg(d)\noutput y = e"},
    {"ProductsWithActivations",
     "input x : f32[12,24]\ninput w1 : f32[24,24]\ninput w2 : f32[24]\ninput r : f32[12,24]\na = MatMul(x, w1)\n"
     "b = Add(a, w2)\nc = Gelu(b)\nd = MatMul(c, w1)\ne = Add(d, r)\nf = Gelu(e)\ng = Softmax(f) {axis=1}\n"
     "output y = g"},
    {"PoolsOfActivations",
     "input x : f32[1,32,13,12]\ninput w1 : f32[32,32,1,1]\na = Conv(x, w1)\nb = Elu(a)\nc = Neg(b)\n"
     "p = MaxPool(c) {kernel_shape=[3,3], strides=[2,2]}\nd = Conv(p, w1)\nq = AveragePool(c) {kernel_shape=[2,2]}\n"
     "output y = d\noutput z = q"},
    {"JoinedAndShuffled",
     "input x : f32[1,16,6,5]\ninput v : f32[1,16,6,5]\na = Exp(x)\nc = Concat(a, v) {axis=1}\n"
     "r = Reshape(c) {shape=[1,2,16,6,5]}\nt = Transpose(r) {perm=[0,2,1,3,4]}\nu = Reshape(t) {shape=[1,32,6,5]}\n"
     "input w1 : f32[32,1,3,3]\nd = Conv(u, w1) {group=32, pads=[1,1,1,1]}\ne = Add(d, u)\ns = Softmax(u) {axis=1}\n"
     "output y = e\noutput z = s"},
    {"UsedBySeveral",
     "input x : f32[8,30]\ninput v : f32[8,30]\na = Add(x, v)\nb = Softmax(a) {axis=1}\nc = Mul(a, b)\n"
     "d = ReduceSum(c) {axes=[1], keepdims=1}\ne = Div(a, d)\nf = Transpose(a) {perm=[1,0]}\ng = Softmax(f) {axis=0}\n"
     "output y = e\noutput z = g"},
};

std::vector<BatchCase> cases() {
  std::vector<BatchCase> all = graph_cases();
  uint64_t seed = 100;
  for (const auto& [name, text] : kRows) all.push_back(make_case(name, text, seed++));
  std::mt19937_64 random(11);
  constexpr int kDrawn = 30, kOperators = 12;
  for (int k = 0; k < kDrawn; k++) {
    const Graph graph = random_graph(random, kOperators);
    all.push_back({"drawn" + std::to_string(k), graph, random_inputs(random, graph)});
  }
  return all;
}

class FusionByDrawnCosts : public testing::TestWithParam<int> {};

TEST_P(FusionByDrawnCosts, ComputesTheSame) {
  const int seed = GetParam();
  DrawnCosts costs(static_cast<uint64_t>(seed));
  for (const std::string& line :
       run_batch(cases(), costs, "drawn" + std::to_string(seed), {TargetKind::Cpu, 1 + seed % 2, seed < 3 ? 16 : 8}))
    ADD_FAILURE() << line;
}
INSTANTIATE_TEST_SUITE_P(Seeds, FusionByDrawnCosts, testing::Range(0, 4));

// What is stored between kernels is rounded: where that is depends on what is fused.
TEST(FusionByDrawnTimes, ComputesTheSameIn16Bits) {
  std::vector<BatchCase> rows;
  // Sigmoid and Tanh of large sums magnify what these are rounded by.
  for (const auto& [name, text] : kRows)
    if (std::string(text).find("Sigmoid") == std::string::npos && std::string(text).find("Tanh") == std::string::npos)
      rows.push_back(make_case(name, text, 7));
  for (const uint64_t seed : {1, 2, 3}) {
    DrawnCosts costs(seed);
    for (const std::string& line :
         run_batch(rows, costs, "half" + std::to_string(seed), {.threads = 1, .precision = Precision::Bf16}))
      ADD_FAILURE() << seed << ": " << line;
  }
}

// Of each row some seed fuses otherwise than the rules, and its code can be written for a GPU.
TEST(FusionByDrawnTimes, IsOtherThanByRule) {
  constexpr uint64_t kSeeds = 24;
  for (const auto& [name, text] : kRows) {
    const Graph graph = make_case(name, text, 1).graph;
    for (const TargetKind kind : {TargetKind::Cpu, TargetKind::Cuda}) {
      int others = 0;
      for (uint64_t seed = 0; seed < kSeeds; seed++) {
        DrawnCosts costs(seed);
        const auto by_cost = make_plan(graph, {.kind = kind, .without = {kSequences}}, costs);
        const auto by_rule = make_plan(graph, {.kind = kind, .without = {kSequences, "fusion:by-cost"}}, costs);
        ASSERT_TRUE(by_cost.ok() && by_rule.ok()) << name;
        EXPECT_TRUE(check_plan(*by_cost).ok()) << name;
        EXPECT_LE(by_cost->estimated_ms, by_rule->estimated_ms) << name;
        others += !has_same_kernels(*by_cost, *by_rule);
        const auto code = emit(*by_cost);
        EXPECT_TRUE(code.ok()) << name << ": " << (code.ok() ? "" : code.error().message);
      }
      EXPECT_GT(others, 0) << name;
    }
  }
}

// Whole numbers that 32 bits do not count, but floats hold: no integers, whatever is beside them.
TEST(FusedConstants, ChosenOnesOfFloatsAreFloats) {
  const BatchCase c = make_case("chosen",
                                "input c : bool[5,9]\ninput d : bool[5,9]\nconstant a = f32[] {1e10}\nconstant b = "
                                "f32[] {3e10}\nconstant o = f32[] {1}\nw = Where(c, a, b)\nx = Where(d, a, b)\ny = "
                                "Div(o, w)\nz = Mul(w, x)\nm = ReduceMean(w) {axes=[1], keepdims=1}\noutput y = "
                                "y\noutput z = z\noutput m = m",
                                1);
  for (const std::string& line : run_batch({c}, true, {TargetKind::Cpu, 1})) ADD_FAILURE() << line;
}

// Each value is used twice by the next ones: written out, the expression would have 2^40 parts.
TEST(FusedIntegers, ChainsOfChoicesShareTheirParts) {
  constexpr int kLinks = 40;
  for (const std::string type : {"i8", "i32", "i64", "u64"}) {
    std::string text = "input x0 : " + type + "[20]\ninput c : " + type + "[20]\nt = Less(x0, c)\n";
    for (int k = 0; k < kLinks; k++) {
      const std::string n = std::to_string(k);
      text += "m" + n + " = Min(x" + n + ", c)\nl" + n + " = Max(m" + n + ", x" + n + ")\nx" + std::to_string(k + 1) +
              " = Where(t, l" + n + ", m" + n + ")\n";
    }
    const BatchCase chain = make_case("chain", text + "output y = x" + std::to_string(kLinks), 1);
    for (const std::string& line : run_batch({chain}, true, {TargetKind::Cpu, 1})) ADD_FAILURE() << type << line;
  }
}

}  // namespace
}  // namespace gopt
