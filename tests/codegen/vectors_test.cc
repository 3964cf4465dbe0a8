// Products of a few lines by kernels that read each weight once: matrices by vectors, convolutions of single positions.
// Without a device they are compiled and linked.
#include <gtest/gtest.h>

#include <algorithm>

#include "batch.h"
#include "cuda_device.h"
#include "gopt/tile.h"
#include "gopt/vector_product.h"

namespace gopt {
namespace {

// Every product by one of them that can be.
class CostsOfVectors : public KernelCosts {
 public:
  explicit CostsOfVectors(int warps) : name_(vector_product_name(warps)) {}
  double time_ms(const Plan& plan, const Kernel& kernel) override {
    if (kernel.implementation == name_) return 0.1;
    if (kernel.kind != KernelKind::Convolution) return 0.2;
    return plan.buffer(kernel.output_buffers[0]).layout.is_channels_last() ? 1 : 9;
  }
  bool is_measured(const Plan&, const Kernel&) const override { return true; }

 private:
  std::string name_;
};

constexpr int kWarps[] = {1, 4};

// One to four lines; columns that fill no block, depths beyond what is asked for ahead; batches of single positions.
std::vector<BatchCase> cases() {
  return {
      make_case("classifier",
                "input x : f32[1,4104]\ninput w1 : f32[101,4104]\ninput w2 : f32[101]\na = Gemm(x, w1, w2) "
                "{transB=1}\nb = Relu(a)\noutput y = b",
                1),
      make_case("scaled",
                "input x : f32[3,96]\ninput w1 : f32[50,96]\ninput z : f32[3,50]\na = Gemm(x, w1) {transB=1, "
                "alpha=0.5}\nb = Add(a, z)\nc = Gelu(b)\noutput y = c",
                2),
      make_case("several", "input x : f32[4,2048]\ninput w1 : f32[7,2048]\na = Gemm(x, w1) {transB=1}\noutput y = a",
                3),
      make_case("turned", "input x : f32[2,1,136]\ninput w1 : f32[136,51]\na = MatMul(x, w1)\noutput y = a", 5),
      make_case("squeezed",
                "input x : f32[2,48,9,7]\ninput w1 : f32[16,48,1,1]\ninput w2 : f32[16]\ninput w3 : f32[48,16,1,1]\n"
                "g = GlobalAveragePool(x)\na = Conv(g, w1, w2)\nb = Sigmoid(a)\nc = Mul(a, b)\nd = Conv(c, w3)\n"
                "e = Sigmoid(d)\nf = Mul(x, e)\noutput y = f",
                4)};
}

int count_of(const Plan& plan) {
  return static_cast<int>(std::ranges::count_if(
      plan.kernels, [](const Kernel& kernel) { return parse_vector_product(kernel.implementation).has_value(); }));
}

TEST(Vectors, NamesAreReadBack) {
  for (const int warps : kWarps) EXPECT_EQ(parse_vector_product(vector_product_name(warps)), warps);
  for (const char* other : {"", "gemv", "gemv:", "gemv:4:1", "tiles:64x64:1"})
    EXPECT_FALSE(parse_vector_product(other)) << other;
}

TEST(Vectors, AreChosenByTheirTimes) {
  for (const int warps : kWarps)
    for (const BatchCase& c : cases())
      for (const Precision precision : {Precision::Fp32, Precision::Tf32, Precision::Fp16, Precision::Bf16}) {
        CostsOfVectors costs(warps);
        const auto plan =
            make_plan(c.graph, {.kind = TargetKind::Cuda, .precision = precision, .without = {kSequences}}, costs);
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        EXPECT_EQ(count_of(*plan), c.name == "squeezed" ? 2 : 1) << c.name << "\n" << print_plan(*plan);
        for (const Kernel& kernel : plan->kernels)
          EXPECT_TRUE(!parse_vector_product(kernel.implementation) || is_launched_ahead(kernel));
        EXPECT_TRUE(emit(*plan).ok());
      }
}

// Five lines, lines that are no whole chunks, weights by lines, batches, more positions.
TEST(Vectors, LeaveOthersAlone) {
  const BatchCase others[] = {
      make_case("five", "input x : f32[5,64]\ninput w1 : f32[50,64]\na = Gemm(x, w1) {transB=1}\noutput y = a", 1),
      make_case("odd", "input x : f32[1,63]\ninput w1 : f32[50,63]\na = Gemm(x, w1) {transB=1}\noutput y = a", 2),
      make_case("lines", "input x : f32[1,64]\ninput v : f32[64,50]\nr = Tanh(v)\na = MatMul(x, r)\noutput y = a", 3),
      make_case("batch", "input x : f32[2,1,64]\ninput w1 : f32[2,64,50]\na = MatMul(x, w1)\noutput y = a", 4),
      make_case("positions", "input x : f32[1,64,2,2]\ninput w1 : f32[48,64,1,1]\na = Conv(x, w1)\noutput y = a", 5),
      make_case("padding",
                "input x : f32[1,64,1,1]\ninput w1 : f32[48,64,1,1]\na = Conv(x, w1) {pads=[1,1,1,1], strides=[3,3]}\n"
                "output y = a",
                8),
      make_case("taps", "input x : f32[1,64,3,3]\ninput w1 : f32[48,64,3,3]\na = Conv(x, w1)\noutput y = a", 6),
      make_case("groups", "input x : f32[1,64,1,1]\ninput w1 : f32[48,32,1,1]\na = Conv(x, w1) {group=2}\noutput y = a",
                7)};
  for (const BatchCase& c : others) {
    CostsOfVectors costs(4);
    const auto plan = make_plan(c.graph, {.kind = TargetKind::Cuda, .precision = Precision::Fp16}, costs);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ(count_of(*plan), 0) << c.name << "\n" << print_plan(*plan);
  }
}

TEST(Vectors, CompileAndLink) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (obstacles().run.empty()) GTEST_SKIP() << "there is a device: the test below builds and runs";
  CostsOfVectors costs(4);
  expect_agreement_on_device(cases(), costs, "vectors", Precision::Fp16);
}

TEST(Vectors, AgreeWithTheInterpreter) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
  for (const int warps : kWarps)
    for (const Precision precision : {Precision::Fp32, Precision::Tf32, Precision::Fp16, Precision::Bf16}) {
      CostsOfVectors costs(warps);
      expect_agreement_on_device(cases(), costs, "vectors_" + std::to_string(warps), precision);
    }
}

}  // namespace
}  // namespace gopt
