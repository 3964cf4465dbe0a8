// What values are stored as where the precision is of 16 bits, and in plans for CUDA of graphs whose types are.
#include <gtest/gtest.h>

#include "../support/graph_with_weights.h"
#include "gopt/kernel_costs.h"
#include "gopt/kernel_spec.h"
#include "gopt/plan.h"

namespace gopt {
namespace {

Result<Plan> plan_in(const Graph& graph, Precision precision, std::set<ValueKey> in_fp32 = {},
                     TargetKind kind = TargetKind::Cuda) {
  auto costs = analytic_kernel_costs({});
  const Target target{.kind = kind, .precision = precision, .in_fp32 = std::move(in_fp32)};
  GOPT_ASSIGN_OR_RETURN(Plan plan, make_plan(graph, target, *costs));
  GOPT_RETURN_IF_ERROR(check_plan(plan));
  return plan;
}

// "reads > writes" of each kernel, in order: "x:f32 > x:f16; x:f16 w:f16 > a:f32".
std::string storage_text(const Plan& plan) {
  std::string text;
  const auto buffers = [&](const std::vector<BufferId>& ids) {
    std::string names;
    for (const BufferId id : ids) {
      const Buffer& buffer = plan.buffer(id);
      const Node& node = *buffer.value.node;
      const std::string name = node.name.empty() ? node.output_names.at(0) : node.name;
      names += (names.empty() ? "" : " ") + name + ":" + to_string(buffer.element);
    }
    return names;
  };
  for (const Kernel& kernel : plan.kernels)
    text += (text.empty() ? "" : "; ") + buffers(kernel.input_buffers) + " > " + buffers(kernel.output_buffers);
  return text;
}

struct Row {
  const char* name;
  const char* text;
  const char* expected;
};
std::ostream& operator<<(std::ostream& os, const Row& row) { return os << row.name; }

class StorageTest : public testing::TestWithParam<Row> {};
TEST_P(StorageTest, IsOf16BitsBetweenKernels) {
  for (const auto& [precision, type] : {std::pair(Precision::Fp16, "f16"), std::pair(Precision::Bf16, "bf16")}) {
    const auto plan = plan_in(graph_with_weights(GetParam().text), precision);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    std::string expected = GetParam().expected;
    for (size_t at; (at = expected.find("half")) != std::string::npos;) expected.replace(at, 4, type);
    EXPECT_EQ(storage_text(*plan), expected);
  }
}

const Row kRows[] = {
    {"AProductReadsHalvesAndWritesTheOutput",
     "input x : f32[4,16]\ninput w : f32[16,8]\ninput w2 : f32[8]\na = MatMul(x, w)\nb = Add(a, w2)\noutput y = b",
     "x:f32 > x:half; x:half w:half w2:f32 > b:f32"},
    {"ProductsHandHalvesOn",
     "input x : f32[4,16]\ninput w : f32[16,16]\ninput w2 : f32[16]\na = MatMul(x, w)\nb = Add(a, w2)\nc = MatMul(b, "
     "w)\nd = Softmax(c) {axis=-1}\noutput y = d",
     "x:f32 > x:half; x:half w:half w2:half > b:half; b:half w:half > c:half; c:half > d:f32"},
    {"LoopsReadWeightsAsTheyAre",
     "input x : f32[4,16]\ninput w : f32[16,16]\ninput w2 : f32[16]\na = MatMul(x, w)\nb = Mul(a, w2)\nc = MatMul(b, "
     "w)\noutput y = c",
     "x:f32 > x:half; x:half w:half > a:half; a:half w2:f32 > b:half; b:half w:half > c:f32"},
    {"WhatAConvolutionMakesIsConvertedForTheOutput",
     "input x : f32[1,16,8,8]\ninput w : f32[16,16,3,3]\na = Conv(x, w)\nb = Relu(a)\noutput y = b",
     "x:f32 > x:half; x:half w:half > b:half; b:half > b:f32"},
    {"WhatDecidesIsNotRounded",
     "input x : f32[4,16]\ninput w : f32[16,16]\na = MatMul(x, w)\nb = Neg(a)\nc = Cast(b) {to=7}\noutput y = c",
     "x:f32 > x:half; x:half w:half > a:f32; a:f32 > c:i64"},
    {"StatisticsAreNotRounded",
     "input x : f32[4,64]\ninput w : f32[64,64]\na = MatMul(x, w)\nb = ReduceMean(a) {axes=[1], keepdims=1}\nc = "
     "Softmax(b) {axis=0}\nd = Mul(a, c)\noutput y = d",
     "x:f32 > x:half; x:half w:half > a:half; a:half > b:f32; b:f32 > c:half; a:half c:half > d:f32"},
    {"AnotherShapeOfAnInputIsTheSameMemory",
     "input x : f32[4,4,4]\ninput w : f32[16,8]\na = Reshape(x) {shape=[4,16]}\nb = MatMul(a, w)\noutput y = b",
     "a:f32 > a:half; a:half w:half > b:f32"},
    {"IntegersAndDoublesStay",
     "input x : f32[4,16]\ninput ids : i64[3]\ninput w : f32[4,64]\na = Gather(w, ids) {axis=0}\nb = Softmax(a) "
     "{axis=-1}\nc = Cast(b) {to=11}\nd = Softmax(c) {axis=-1}\noutput y = d",
     "w:f32 ids:i64 > c:f64; c:f64 > d:f64"},
};
INSTANTIATE_TEST_SUITE_P(Table, StorageTest, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

const char* const kChain =
    "input x : f32[1,16,8,8]\ninput w : f32[16,16,3,3]\ninput w2 : f32[16,16,1,1]\na = Conv(x, w)\nb = Conv(a, w2)\nc "
    "= Conv(b, w)\noutput y = c";

TEST(Storage, WhatLeavesTheRangeIsKeptWithWhoeverReadsIt) {
  const Graph graph = graph_with_weights(kChain);
  std::set<ValueKey> kept;
  for (const NodePtr& node : graph.nodes())
    if (!node->output_names.empty() && node->output_names[0] == "a") kept.insert({node->hash, 0});
  ASSERT_EQ(kept.size(), 1U);
  const auto plan = plan_in(graph, Precision::Fp16, kept);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(storage_text(*plan),
            "x:f32 w:f32 > a:f32; a:f32 w2:f32 > b:f32; b:f32 > b:f16; b:f16 w:f16 > c:f16; c:f16 > c:f32");
}

TEST(Storage, GraphsOf16BitsAreAsTheySay) {
  for (const char* type : {"f16", "bf16"}) {
    std::string text = "input x : T[1,16,8,8]\ninput w : T[16,16,3,3]\na = Conv(x, w)\nb = Relu(a)\noutput y = b",
                expected = "x:T w:T > b:T";
    for (std::string* s : {&text, &expected})
      for (size_t at; (at = s->find('T')) != std::string::npos;) s->replace(at, 1, type);
    const Graph graph = graph_with_weights(text);
    auto costs = analytic_kernel_costs({});
    const auto plan = make_plan(graph, {.kind = TargetKind::Cuda, .without = {"layout:channels-last"}}, *costs);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ(storage_text(*plan), expected);
    EXPECT_EQ(plan->kernels[0].kind, KernelKind::Convolution);
  }
}

// A kernel's time is of its types: no two precisions share one, but for what is of floats in both.
TEST(Storage, KernelsOfAPrecisionHaveSignaturesOfTheirOwn) {
  const Graph graph = graph_with_weights(kChain);
  std::set<std::string> seen;
  size_t kernels = 0;
  for (const Precision precision : {Precision::Fp32, Precision::Tf32, Precision::Fp16, Precision::Bf16}) {
    const auto plan = plan_in(graph, precision);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    for (const Kernel& kernel : plan->kernels) {
      if (kernel.kind != KernelKind::Convolution) continue;
      kernels++;
      seen.insert(kernel_signature(*plan, kernel));
      const KernelSpec spec = spec_of(*plan, kernel);
      EXPECT_EQ(spec.buffers[0].element, storage_of(precision));
      EXPECT_EQ(kernel_signature(spec), kernel_signature(*plan, kernel));
    }
  }
  EXPECT_EQ(seen.size(), kernels);
}

// Products of a few lines by each matrix wait for the matrices, and are not rounded for the tensor cores.
TEST(Storage, FewLinesAreNotRounded) {
  struct Product {
    const char *left, *right;
    bool is_rounded;
  };
  for (const Product& p : {Product{"1,512", "512,256", false}, Product{"4,512", "512,256", false},
                           Product{"5,512", "512,256", true}, Product{"2,3,512", "512,256", true},
                           Product{"9,2,512", "9,512,256", false}, Product{"9,8,512", "9,512,256", true}}) {
    const Graph graph = graph_with_weights("input x : f32[" + std::string(p.left) + "]\ninput w : f32[" + p.right +
                                           "]\na = MatMul(x, w)\noutput y = a");
    const auto plan = plan_in(graph, Precision::Tf32);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    size_t products = 0;
    for (const Kernel& kernel : plan->kernels) {
      if (kernel.kind != KernelKind::MatrixProduct) continue;
      products++;
      EXPECT_EQ(is_tf32(*plan, kernel), p.is_rounded) << p.left << " by " << p.right;
    }
    EXPECT_EQ(products, 1) << print_plan(*plan);
  }
}

// Half the bytes, and the tensor cores' arithmetic.
TEST(Storage, AnalyticCostsKnowBytesAndPeak) {
  const Graph graph = graph_with_weights(
      "input x : f32[2048,2048]\ninput w : f32[2048,2048]\na = MatMul(x, w)\nb = MatMul(a, w)\nc = Exp(b)\noutput y = "
      "c");
  double last = 1e9;
  for (const Precision precision : {Precision::Fp32, Precision::Tf32, Precision::Fp16}) {
    const auto plan = plan_in(graph, precision);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_LT(plan->estimated_ms, last) << to_string(precision);
    last = plan->estimated_ms;
  }
}

struct CpuRow {
  const char *name, *text, *expected;
  Precision precision = Precision::Bf16;
};
std::ostream& operator<<(std::ostream& os, const CpuRow& row) { return os << row.name; }

class CpuStorageTest : public testing::TestWithParam<CpuRow> {};
TEST_P(CpuStorageTest, IsOf16BitsWhereProductsReadIt) {
  const auto plan = plan_in(graph_with_weights(GetParam().text), GetParam().precision, {}, TargetKind::Cpu);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(storage_text(*plan), GetParam().expected);
}

const CpuRow kCpuRows[] = {
    {"ProductsHandHalvesOnAndHaveBiasesOfFloats",
     "input x : f32[9,16]\ninput w : f32[16,32]\ninput w2 : f32[32]\ninput w3 : f32[32,8]\na = MatMul(x, w)\n"
     "b = Add(a, w2)\nc = MatMul(b, w3)\noutput y = c",
     "x:f32 > x:bf16; x:bf16 w:bf16 w2:f32 > b:bf16; b:bf16 w3:bf16 > c:f32"},
    {"ScoresStayFloats",
     "input x : f32[9,16]\ninput w : f32[16,32]\ninput w3 : f32[32,8]\na = MatMul(x, w)\nb = Softmax(a) {axis=-1}\n"
     "c = MatMul(b, w3)\noutput y = c",
     "x:f32 > x:bf16; x:bf16 w:bf16 > a:f32; a:f32 > b:bf16; b:bf16 w3:bf16 > c:f32"},
    {"WhatIsAddedToProductsStaysFloats",
     "input x : f32[9,16]\ninput w : f32[16,16]\na = Exp(x)\nb = MatMul(a, w)\nc = Add(b, a)\nd = Tanh(c)\noutput y = "
     "d",
     "x:f32 > a:f32; a:f32 > a:bf16; a:bf16 w:bf16 a:f32 > d:f32"},
    {"ConvolutionsWriteOutputs",
     "input x : f32[1,8,6,6]\ninput w : f32[16,8,3,3]\na = Conv(x, w)\nb = Relu(a)\noutput y = b",
     "x:f32 > x:bf16; x:bf16 w:bf16 > b:f32"},
    {"MatricesOfLoopsAreHalves", "input x : f32[1,64]\ninput w : f32[64,32]\nb = MatMul(x, w)\noutput y = b",
     "x:f32 w:bf16 > b:f32"},
    {"PartsAreOfFloats",
     "input x : f32[9,16]\ninput w : f32[16,32]\ninput w3 : f32[32,8]\na = MatMul(x, w)\nc = MatMul(a, w3)\noutput y = "
     "c",
     "x:f32 w:f32 > a:f32; a:f32 w3:f32 > c:f32", Precision::Bf16x3},
};
INSTANTIATE_TEST_SUITE_P(Rows, CpuStorageTest, testing::ValuesIn(kCpuRows),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Storage, PrecisionsHaveNames) {
  for (const TargetKind kind : {TargetKind::Cpu, TargetKind::Cuda, TargetKind::Onnx})
    for (const Precision precision : precisions_of(kind)) EXPECT_EQ(parse_precision(to_string(precision)), precision);
  EXPECT_FALSE(parse_precision("fp8"));
}

}  // namespace
}  // namespace gopt
