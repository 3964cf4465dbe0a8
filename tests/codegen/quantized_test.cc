// Products of floats by weights of 4 and 8 bits with scales of blocks: that these are read as they are, and that what
// is computed is what the interpreter says.
#include <gtest/gtest.h>

#include <algorithm>

#include "batch.h"
#include "quantized_weights.h"

namespace gopt {
namespace {

struct Row {
  std::string name, text;
};

std::vector<Row> rows() {
  const std::string plain = "y = MatMul(x, dw)\n";
  std::vector<Row> all;
  const auto add = [&](const std::string& name, const std::string& extents, const QuantizedWeights& w,
                       const std::string& steps) {
    all.push_back({name, product_of(extents, w, steps, all.size() + 1)});
  };
  // Each number of rows.
  for (const int rows : {3, 4, 5, 6, 7, 8, 9, 11, 13, 16})
    add("rows_" + std::to_string(rows), std::to_string(rows), {96, 170, rows % 2 == 0 ? 4 : 8, "u8", 32}, plain);
  // Of one row and two, small weights are for loops.
  for (const int rows : {1, 2})
    for (const int bits : {4, 8})
      add("few_" + std::to_string(rows) + "_of_" + std::to_string(bits), std::to_string(rows),
          {520, 516, bits, "i8", 40}, plain);
  add("signed", "3,5", {72, 133, 4, "i8", 16}, plain);
  add("one_zero", "5", {72, 133, 4, "i8", 16, false}, plain);
  add("rest_of_a_block", "5", {75, 133, 4, "u8", 32}, plain);
  add("rest_of_a_word", "10", {75, 133, 8, "u8", 32}, plain);
  add("long_block", "10", {75, 133, 8, "u8", 75}, plain);
  add("columns", "5", {75, 200, 8, "i8", 0}, plain);
  add("all", "5", {300, 165, 8, "i8", -1, false}, plain);
  add("transposed", "5", {64, 133, 4, "u8", 32, true, true}, "t = Transpose(dw) {perm=[1,0]}\ny = MatMul(x, t)\n");
  add("gemm", "6", {64, 133, 8, "i8", 16, true, true},
      "input w1 : f32[133]\ng = Gemm(x, dw, w1) {transB=1}\ny = Relu(g)\n");
  add("transposed_columns", "6", {64, 133, 8, "i8", 0, false, true}, "y = Gemm(x, dw) {transB=1}\n");
  add("scaled", "6", {64, 133, 8, "i8", 16, true, true},
      "input w1 : f32[6,133]\ny = Gemm(x, dw, w1) {transB=1, alpha=0.5}\n");
  add("epilogues", "2,7", {64, 140, 4, "u8", 32},
      "input w1 : f32[140]\ninput r : f32[2,7,140]\nm = MatMul(x, dw)\nb = Add(m, w1)\ng = Sigmoid(b)\n"
      "h = Mul(b, g)\ny = Add(h, r)\n");
  // The same numbers with other scales, turned over, and as they are.
  all.push_back({"shared", "input x : f32[5,160]\n" + text_of({160, 160, 4, "u8", 32}, 9) +
                               "constant other = f32[] {0.5}\nde = Dequantize(numbers, other, zeros_of_all)\n"
                               "t = Transpose(de) {perm=[1,0]}\na = MatMul(x, dw)\nb = MatMul(x, de)\n"
                               "c = MatMul(x, t)\noutput a = a\noutput b = b\noutput c = c\noutput d = dw"});
  all.back().text.insert(all.back().text.find("constant other"), "constant zeros_of_all = u8[] {5}\n");
  return all;
}

size_t count_quantized(const Graph& graph, const Target& target) {
  LayoutCosts costs(true);
  const auto plan = make_plan(graph, target, costs);
  EXPECT_TRUE(plan.ok());
  if (!plan.ok()) return 0;
  return static_cast<size_t>(
      std::ranges::count_if(plan->kernels, [](const Kernel& k) { return k.implementation == "quantized"; }));
}
bool is_quantized(const Graph& graph, const Target& target) { return count_quantized(graph, target) > 0; }

std::vector<BatchCase> cases() {
  std::vector<BatchCase> cases;
  for (const Row& row : rows()) {
    cases.push_back(make_case(row.name, row.text, cases.size() + 1, 256));
    EXPECT_TRUE(is_quantized(cases.back().graph, {TargetKind::Cpu, 1})) << row.name;
  }
  return cases;
}

TEST(QuantizedWeights, OfSeveralProductsAreEachAsTheyAre) {
  const std::vector<BatchCase> all = cases();
  EXPECT_EQ(count_quantized(all.back().graph, {TargetKind::Cpu, 1}), 3U);
}

TEST(QuantizedWeights, AgreeWithTheInterpreter) {
  for (const int threads : {1, 2})
    EXPECT_EQ(run_batch(cases(), true, {TargetKind::Cpu, threads}), std::vector<std::string>{});
}

// Floats that lie in memory as bfloat16: these are widened for the product, weights are as they were.
TEST(QuantizedWeights, MultiplyFloatsInAnyPrecision) {
  Target halves{TargetKind::Cpu, 1};
  halves.precision = Precision::Bf16;
  const std::vector<BatchCase> own{make_case(
      "halves",
      product_of("6", {64, 64, 4, "u8", 32}, "input w1 : f32[64,64]\nm = MatMul(x, dw)\ny = MatMul(m, w1)\n", 5), 1,
      256)};
  EXPECT_TRUE(is_quantized(own[0].graph, halves));
  EXPECT_EQ(run_batch(own, true, halves), std::vector<std::string>{});
}

// What is not read so is computed as before.
TEST(QuantizedWeights, LeaveOthersAlone) {
  const QuantizedWeights w{64, 133, 4, "u8", 32};
  const std::string numbers = listed(64 * 133, [](int64_t k) { return k * 7 % 16; });
  const std::string head =
      "input x : f32[5,64]\nconstant numbers = u8[64,133] " + numbers + "\nconstant z = u8[] {3}\n";
  const auto scales = [](int64_t count) {
    return listed(count, [](int64_t k) { return 0.01 * static_cast<double>(k + 1); });
  };
  const std::vector<Row> others{
      {"a_scale_for_each_row", head + "constant s = f32[64,1] " + scales(64) +
                                   "\ndw = Dequantize(numbers, s, z)\ny = MatMul(x, dw)\noutput y = y"},
      {"uneven_blocks", head + "constant scales = f32[2,133] " + scales(266) + "\nconstant places = i64[64] " +
                            listed(64, [](int64_t k) { return k < 24 ? 0 : 1; }) +
                            "\ns = Gather(scales, places) {axis=0}\ndw = Dequantize(numbers, s, z)\n"
                            "y = MatMul(x, dw)\noutput y = y"},
      {"blocks_of_columns", head + "constant scales = f32[64,17] " + scales(1088) + "\n" + places(133, 8) +
                                "s = Gather(scales, places) {axis=1}\ndw = Dequantize(numbers, s, z)\n"
                                "y = MatMul(x, dw)\noutput y = y"},
      {"places_from_1_on", head + "constant scales = f32[3,133] " + scales(399) + "\nconstant places = i64[64] " +
                               listed(64, [](int64_t k) { return 1 + k / 32; }) +
                               "\ns = Gather(scales, places) {axis=0}\ndw = Dequantize(numbers, s, z)\n"
                               "y = MatMul(x, dw)\noutput y = y"},
      {"many_rows", product_of("40", {64, 133, 4, "u8", 32}, "y = MatMul(x, dw)\n", 3)},
      {"few_columns", product_of("5", {64, 33, 4, "u8", 32}, "y = MatMul(x, dw)\n", 3)},
      {"short_blocks", product_of("5", {64, 133, 4, "u8", 4}, "y = MatMul(x, dw)\n", 3)},
      {"a_transposed_source", "input x : f32[64,5]\n" + text_of(w, 3) + "y = Gemm(x, dw) {transA=1}\noutput y = y"},
  };
  std::vector<BatchCase> own;
  for (const Row& row : others) {
    own.push_back(make_case(row.name, row.text, own.size() + 1, 256));
    EXPECT_FALSE(is_quantized(own.back().graph, {TargetKind::Cpu, 1})) << row.name;
  }
  EXPECT_EQ(run_batch(own, true, {TargetKind::Cpu, 1}), std::vector<std::string>{});
}

TEST(QuantizedWeights, AreFloatsWhereSwitchedOff) {
  Target target{TargetKind::Cpu, 1};
  target.without.insert("kernel:quantized");
  const BatchCase own = make_case("off", product_of("5", {64, 133, 4, "u8", 32}, "y = MatMul(x, dw)\n", 3), 1, 256);
  EXPECT_FALSE(is_quantized(own.graph, target));
  EXPECT_EQ(run_batch({own}, true, target), std::vector<std::string>{});
}

}  // namespace
}  // namespace gopt
