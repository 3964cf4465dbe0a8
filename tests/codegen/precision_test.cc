// CPU code in bf16, and in floats as sums of two bf16: each way of computing products and convolutions so, and whole
// graphs, against the interpreter, which computes in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "batch.h"

namespace gopt {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Kernels by the implementation of this name, where it accepts them.
class CostsByName : public KernelCosts {
 public:
  explicit CostsByName(std::string name) : name_(std::move(name)) {}
  double time_ms(const Plan&, const Kernel& kernel) override { return kernel.implementation == name_ ? 0.5 : 1; }

 private:
  std::string name_;
};

Target target_in(Precision precision, int threads = 2) {
  return {.kind = TargetKind::Cpu, .threads = threads, .precision = precision};
}

std::string text_of(const std::vector<int64_t>& extents) {
  std::string text;
  for (const int64_t e : extents) text += (text.empty() ? "f32[" : ",") + std::to_string(e);
  return text + "]";
}

// By weights or by what is given, batched or not, with what follows a product in models.
std::string drawn_product(std::mt19937& random) {
  const auto pick = [&](std::vector<int64_t> of) { return of[random() % of.size()]; };
  const int64_t m = pick({1, 3, 7, 33, 100}), k = pick({1, 5, 64, 100, 300}), n = pick({1, 9, 48, 130}),
                b = pick({1, 3});
  const bool is_weight = random() % 2 == 0;
  const std::string right = is_weight ? "w1" : "z", bias = "input w2 : " + text_of({n}) + "\n";
  if (is_weight && random() % 3 == 0)
    return "input x : " + text_of({m, k}) + "\ninput w1 : " + text_of({n, k}) + "\n" + bias +
           "a = Gemm(x, w1, w2) {transB=1, alpha=0.5}\nb = Relu(a)\noutput y = b";
  std::string text = "input x : " + text_of({b, m, k}) + "\ninput " + right + " : " +
                     text_of(is_weight ? std::vector<int64_t>{k, n} : std::vector<int64_t>{b, k, n}) + "\n" + bias;
  text += "input r : " + text_of({b, m, n}) + "\na = MatMul(x, " + right + ")\nb = Add(a, w2)\n";
  const char* ends[] = {"c = Gelu(b)", "c = Add(b, r)", "c = LeakyRelu(b)", "c = Mul(b, r)"};
  return text + ends[random() % 4] + "\noutput y = c";
}

std::vector<BatchCase> drawn_products(uint32_t seed, int count) {
  std::mt19937 random(seed);
  std::vector<BatchCase> cases;
  for (int i = 0; i < count; i++)
    cases.push_back(make_case("p" + std::to_string(i), drawn_product(random), seed + static_cast<uint32_t>(i)));
  return cases;
}

struct Row {
  const char* name;
  const char* implementation;
  Precision precision;
};
class ProductsInPrecision : public testing::TestWithParam<Row> {};

TEST_P(ProductsInPrecision, AgreeWithTheInterpreter) {
  CostsByName costs(GetParam().implementation);
  for (const int threads : {1, 2})
    for (const std::string& line :
         run_batch(drawn_products(71, 40), costs, GetParam().name, target_in(GetParam().precision, threads)))
      ADD_FAILURE() << line;
}

constexpr Row kRows[] = {{"Halves", "direct", Precision::Bf16},
                         {"HalvesInFloats", "floats", Precision::Bf16},
                         {"Parts", "bf16x3", Precision::Bf16x3}};
INSTANTIATE_TEST_SUITE_P(Rows, ProductsInPrecision, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

// Loops of our own between them, pooling, reductions, layouts, views.
TEST(PrecisionOfGraphs, AgreesWithTheInterpreter) {
  for (const Precision precision : {Precision::Bf16, Precision::Bf16x3})
    for (const bool plain : {false, true})
      for (const std::string& line : run_batch(graph_cases(), plain, target_in(precision)))
        ADD_FAILURE() << to_string(precision) << ": " << line;
}

// Random nodes of every operator. Of 16 bits, where what is read is rounded, integers and jumps would differ.
TEST(PrecisionOfGraphs, OperatorsAgreeInParts) {
  EXPECT_EQ(run_batch(operator_cases(), false, target_in(Precision::Bf16x3)), std::vector<std::string>{});
}

// Heads of attention: what is turned over in squares is of 16 bits, and no side fills them.
TEST(PrecisionOfGraphs, NarrowMatricesAreTurnedOver) {
  const BatchCase heads =
      make_case("heads",
                "input x : f32[37,48]\ninput w1 : f32[48,60]\ninput w2 : f32[48,63]\na = MatMul(x, w1)\n"
                "r = Reshape(a) {shape=[1,37,3,20]}\nt = Transpose(r) {perm=[0,2,3,1]}\n"
                "u = Transpose(r) {perm=[0,2,1,3]}\nb = MatMul(u, t)\nc = MatMul(x, w2)\n"
                "d = Transpose(c) {perm=[1,0]}\ne = MatMul(d, x)\noutput y = b\noutput z = e",
                31);
  for (const int threads : {1, 2}) {
    const Target target = target_in(Precision::Bf16, threads);
    EXPECT_EQ(run_batch({heads}, true, target), std::vector<std::string>{});
  }
}

// What is added to images lies as they do, in blocks that are not filled, too: weights are written so.
TEST(PrecisionOfGraphs, ConstantsAreAddedInAnyLayout) {
  const BatchCase added = make_case("added",
                                    "input x : f32[1,16,5,7]\ninput w1 : f32[24,16,3,3]\ninput w2 : f32[1,24,5,7]\n"
                                    "a = Conv(x, w1) {pads=[1,1,1,1]}\nb = Add(a, w2)\nc = Relu(b)\noutput y = c",
                                    23);
  for (const bool plain : {false, true})
    EXPECT_EQ(run_batch({added}, plain, target_in(Precision::Bf16)), std::vector<std::string>{});
}

// A product of rows of one size each, by weights as large as they say, and a convolution of them.
std::vector<BatchCase> scaled_cases(double rows, double weights) {
  std::vector<BatchCase> cases;
  for (const char* text :
       {"input x : f32[9,70]\ninput z : f32[70,33]\na = MatMul(x, z)\noutput y = a",
        "input x : f32[1,32,9,9]\ninput z : f32[1]\ninput w1 : f32[20,32,3,3]\na = Conv(x, w1) {pads=[1,1,1,1]}\n"
        "b = Mul(a, z)\noutput y = b"}) {
    cases.push_back(make_case("scaled" + std::to_string(cases.size()), text, 11));
    std::map<std::string, Tensor>& inputs = cases.back().inputs;
    for (const auto& [name, factor] : {std::pair("x", rows), {"z", weights}}) {
      std::vector<double> values = inputs.at(name).to_doubles();
      for (double& value : values) value *= factor;
      inputs[name] = Tensor::from_values(ElementType::Float32, inputs.at(name).dims(), values);
    }
  }
  return cases;
}

// Large and tiny numbers lose no more digits than others: the parts have the range of floats.
TEST(PrecisionInParts, HoldsAtAnyScale) {
  CostsByName costs("bf16x3");
  int number = 0;
  for (const auto& [rows, weights] : {std::pair(1e30, 1e5), {1e-25, 1e-3}, {1e4, 1e-20}, {1e35, 1e-30}})
    for (const std::string& line : run_batch(scaled_cases(rows, weights), costs, "scale" + std::to_string(number++),
                                             target_in(Precision::Bf16x3)))
      ADD_FAILURE() << rows << ", " << weights << ": " << line;
}

// Scores under a mask as models have it: what is not masked is as exact as without.
TEST(PrecisionInParts, MaskedNumbersDoNotHideOthers) {
  const std::string text =
      "input x : f32[4,50,32]\ninput z : f32[4,32,60]\ninput m : f32[50,60]\na = MatMul(x, z)\nb = Add(a, m)\n"
      "c = Softmax(b) {axis=-1}\noutput y = c";
  BatchCase masked = make_case("masked", text, 5);
  std::vector<double> rows = masked.inputs.at("x").to_doubles(), mask(50 * 60, 0);
  for (double& value : rows) value *= 0.05;  // scores of about 1
  masked.inputs["x"] = Tensor::from_values(ElementType::Float32, {4, 50, 32}, rows);
  for (size_t i = 0; i < mask.size(); i += 3) mask[i] = -1e4;
  masked.inputs["m"] = Tensor::from_values(ElementType::Float32, {50, 60}, mask);
  CostsByName costs("bf16x3");
  EXPECT_EQ(run_batch({masked}, costs, "mask", target_in(Precision::Bf16x3)), std::vector<std::string>{});
}

// Infinities and what is no number stay in their rows, and are what fp32 makes of them; the largest floats, whose
// nearest number of 8 bits is infinite, stay numbers.
TEST(PrecisionInParts, InfinitiesAreThoseOfFloats) {
  const std::string texts[] = {
      "input x : f32[8,40]\ninput w1 : f32[40,24]\na = MatMul(x, w1)\noutput y = a",
      "input x : f32[2,8,40]\ninput z : f32[2,40,24]\na = MatMul(x, z)\noutput y = a",
      "input x : f32[1,32,5,5]\ninput w1 : f32[16,32,1,1]\na = Conv(x, w1)\noutput y = a",
      "input x : f32[1,20,5,5]\ninput w1 : f32[12,20,3,3]\na = Conv(x, w1) {pads=[1,1,1,1]}\noutput y = a"};
  std::vector<BatchCase> cases;
  for (const std::string& text : texts)
    for (const float special : {kInfinity, -kInfinity, NAN, 3.402e38f}) {
      cases.push_back(make_case("special" + std::to_string(cases.size()), text, 17));
      Tensor& x = cases.back().inputs.at("x");
      std::vector<double> values = x.to_doubles();
      for (double& value : values) value = special > 3e38f && special < kInfinity ? value * 0x1p-60 : value;
      values[values.size() / 2] = special;
      x = Tensor::from_values(ElementType::Float32, x.dims(), values);
    }
  CostsByName costs("bf16x3");
  EXPECT_EQ(run_batch(cases, costs, "special", target_in(Precision::Bf16x3)), std::vector<std::string>{});
}

}  // namespace
}  // namespace gopt
