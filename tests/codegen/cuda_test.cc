// The CUDA target: what is written, that it compiles and links wherever nvcc is, and, where there is a device, that it
// agrees with the interpreter on the graphs and operators that the CPU's code is tested on.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "batch.h"
#include "cuda_device.h"
#include "gopt/kernel_spec.h"
#include "gopt/tile.h"
#include "text_files.h"

namespace gopt {
namespace {

Result<EmittedCode> cuda_code(const std::string& text, Precision precision = Precision::Fp32) {
  const BatchCase c = make_case("small", text, 1);
  LayoutCosts costs(false);
  const Target target{.kind = TargetKind::Cuda, .precision = precision, .without = {kSequences}};
  GOPT_ASSIGN_OR_RETURN(const Plan plan, make_plan(c.graph, target, costs));
  GOPT_RETURN_IF_ERROR(check_plan(plan));
  return emit(plan);
}

TEST(CudaFolder, HoldsAllThatABuildNeeds) {
  auto code = cuda_code(
      "input x : f32[1,4,8,8]\ninput w1 : f32[4,4,3,3]\na = Conv(x, w1) {pads=[1,1,1,1]}\nb = Softmax(a) "
      "{axis=-1}\noutput y = b");
  ASSERT_TRUE(code.ok()) << code.error().message;
  for (const char* file :
       {"model.h", "model.cc", "kernels.h", "kernels_0.cu", "gopt_library.cc", "gopt_convolution.cc", "gopt_product.cc",
        "gopt_kernels.cu", "gopt_device.cc", "gopt_math.cuh", "CMakeLists.txt", "example.cc"})
    EXPECT_NE(text_of(*code, file), "") << file;
  for (const Buffer& b : code->plans[0].buffers) EXPECT_TRUE(b.layout.is_plain());
  EXPECT_NE(text_of(*code, "model.cc").find("gopt_device_input(gopt_model* model, int number) { return model->"),
            std::string::npos);
}

// TF32 is said to every library call, and times of it are other times.
TEST(CudaPrecision, IsThePlansInCodeAndInSignatures) {
  const BatchCase c = make_case("both",
                                "input x : f32[1,8,8,8]\ninput w1 : f32[8,8,3,3]\ninput t : f32[6,5]\na = Conv(x, "
                                "w1)\nb = MatMul(a, t)\nc = Exp(b)\noutput y = c",
                                1);
  LayoutCosts costs(false);
  std::vector<std::vector<std::string>> signatures;
  for (const Precision precision : {Precision::Fp32, Precision::Tf32}) {
    const Target target{.kind = TargetKind::Cuda, .precision = precision};
    const auto plan = make_plan(c.graph, target, costs);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const auto code = emit(*plan);
    ASSERT_TRUE(code.ok()) << code.error().message;
    const std::string text = text_of(*code, "model.cc"), said = "d.tf32 = true;";
    const size_t first = text.find(said), second = first == std::string::npos ? first : text.find(said, first + 1);
    EXPECT_EQ(second != std::string::npos, precision == Precision::Tf32) << text;
    EXPECT_EQ(first != std::string::npos, precision == Precision::Tf32) << text;
    EXPECT_EQ(print_plan(*plan).find("in tf32") != std::string::npos, precision == Precision::Tf32);
    signatures.emplace_back();
    for (const Kernel& kernel : plan->kernels) signatures.back().push_back(kernel_signature(*plan, kernel));
  }
  ASSERT_EQ(signatures[0].size(), signatures[1].size());
  int equal = 0;
  for (size_t k = 0; k < signatures[0].size(); k++) equal += signatures[0][k] == signatures[1][k];
  EXPECT_EQ(equal, static_cast<int>(signatures[0].size()) - 2);  // all but the convolution and the product
}

struct CallRow {
  const char* name;
  const char* text;
  const char* expected;  // in model.cc
  Precision precision = Precision::Fp32;
};
std::ostream& operator<<(std::ostream& os, const CallRow& row) { return os << row.name; }

class CudaCallTest : public testing::TestWithParam<CallRow> {};
TEST_P(CudaCallTest, IsDescribed) {
  auto code = cuda_code(GetParam().text, GetParam().precision);
  ASSERT_TRUE(code.ok()) << code.error().message;
  const std::string text = text_of(*code, "model.cc");
  EXPECT_NE(text.find(GetParam().expected), std::string::npos) << text;
}
const CallRow kCalls[] = {
    {"RowsOfAllLeadingAxes", "input x : f32[2,3,8]\ninput w1 : f32[8,5]\ny = MatMul(x, w1)\noutput y = y",
     "d.rows = 6, d.columns = 5, d.depth = 8;"},
    {"ABatchIsOneAxis", "input x : f32[2,3,4,8]\ninput z : f32[2,3,8,5]\ny = MatMul(x, z)\noutput y = y",
     "d.batch = {{6, 32, 40}};"},
    {"ABroadcastOperandStandsStill", "input x : f32[2,3,4,8]\ninput z : f32[3,8,5]\ny = MatMul(x, z)\noutput y = y",
     "d.batch = {{2, 96, 0}, {3, 32, 40}};"},
    {"TransposedWeights",
     "input x : f32[4,8]\ninput w1 : f32[5,8]\ny = Gemm(x, w1) {transB=1, alpha=0.5}\noutput y = y",
     "d.right_transposed = true;\n      d.scale = 0.5f;"},
    {"ActivationOfAConvolution",
     "input x : f32[1,4,8,8]\ninput w1 : f32[4,1,3,3]\na = Conv(x, w1) {group=4, strides=[2,2], pads=[0,0,1,1]}\nb = "
     "LeakyRelu(a) {alpha=0.25}\noutput y = b",
     "d.activation = {ActivationKind::LeakyRelu, 0.25f};"},
    {"AConvolutionByWhatIsFastestAtStart",
     "input x : f32[1,8,8,8]\ninput w1 : f32[8,8,3,3]\ny = Conv(x, w1)\noutput y = y",
     "d.pads[1] = 0;\n      library.add(d);"},
    {"ALargeConvolutionOfUnequalPadsIsGenerated",
     "input x : f32[1,64,256,256]\ninput w1 : f32[2,64,5,5]\ny = Conv(x, w1) {pads=[0,0,1,2]}\noutput y = y",
     "gopt_kernel_0("},
    {"AProductOfHalvesThatWritesFloats", "input x : f32[4,8]\ninput w1 : f32[8,5]\ny = MatMul(x, w1)\noutput y = y",
     "d.operands = Element::Float16, d.result = Element::Float32;", Precision::Fp16},
    {"AProductThatHandsHalvesOn",
     "input x : f32[4,8]\ninput w1 : f32[8,5]\na = MatMul(x, w1)\ny = Softmax(a) {axis=1}\noutput y = y",
     "d.operands = Element::BFloat16, d.result = Element::BFloat16;", Precision::Bf16},
    {"AConvolutionOfHalves",
     "input x : f32[1,8,8,8]\ninput w1 : f32[8,8,3,3]\na = Conv(x, w1)\ny = Relu(a)\noutput y = y",
     "d.element = Element::Float16;", Precision::Fp16},
    {"AGraphOfHalves", "input x : f16[4,8]\ninput w1 : f16[8,5]\ny = MatMul(x, w1)\noutput y = y",
     "d.operands = Element::Float16, d.result = Element::Float16;"},
};
INSTANTIATE_TEST_SUITE_P(Table, CudaCallTest, testing::ValuesIn(kCalls),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Golden, CudaKernelsAreAsReviewed) {
  auto code = cuda_code(
      "input x : f32[2,12,128]\na = Softmax(x) {axis=-1}\nb = Transpose(a) {perm=[0,2,1]}\nc = Exp(b)\noutput y = c");
  ASSERT_TRUE(code.ok()) << code.error().message;
  const std::string text = text_of(*code, "kernels_"), path = std::string(GOPT_GOLDEN_FOLDER) + "/cuda_softmax.cu";
  if (getenv("GOPT_REFRESH_GOLDEN")) write_file(path, text);
  EXPECT_EQ(text, read_file(path)) << "see the opening comment of golden_test.cc";
}

TEST(Golden, CudaKernelsOfHalvesAreAsReviewed) {
  auto code = cuda_code(
      "input x : f32[2,12,128]\ninput w1 : f32[128,64]\ninput w2 : f32[64]\na = MatMul(x, w1)\nb = Mul(a, w2)\nc = "
      "Softmax(b) {axis=-1}\nd = Exp(c)\noutput y = d",
      Precision::Fp16);
  ASSERT_TRUE(code.ok()) << code.error().message;
  const std::string text = text_of(*code, "kernels"), path = std::string(GOPT_GOLDEN_FOLDER) + "/cuda_halves.cu";
  if (getenv("GOPT_REFRESH_GOLDEN")) write_file(path, text);
  EXPECT_EQ(text, read_file(path)) << "see the opening comment of golden_test.cc";
}

// Weights are rounded to the nearest, halves to even; what is finite stays so.
TEST(CudaWeights, AreRoundedToHalves) {
  const std::vector<double> values{
      1,      1.00048828125, 1.001464843750,   65519, 65520, 1e30, -1e9, INFINITY, -INFINITY, 6.0e-8,
      2.9e-8, -0.0,          3.0517578125e-05, 0.1,   NAN,   2};
  const std::vector<std::pair<Precision, std::vector<uint16_t>>> expected{
      {Precision::Fp16,
       {0x3c00, 0x3c00, 0x3c02, 0x7bff, 0x7bff, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x0001, 0x0000, 0x8000, 0x0200, 0x2e66,
        0x7e00, 0x4000}},
      {Precision::Bf16,
       {0x3f80, 0x3f80, 0x3f80, 0x4780, 0x4780, 0x714a, 0xce6e, 0x7f80, 0xff80, 0x3381, 0x32f9, 0x8000, 0x3800, 0x3dcd,
        0x7fc0, 0x4000}}};
  for (const auto& [precision, bits] : expected) {
    GraphBuilder builder;
    const Value x = builder.input("x", {ElementType::Float32, Shape{Index(2), Index(16)}});
    const Value w = builder.constant(Tensor::from_values(ElementType::Float32, {16, 1}, values), "w");
    auto product = builder.add(OpKind::MatMul, {x, w}, {}, 1);
    ASSERT_TRUE(product.ok()) << product.error().message;
    builder.output("y", {*product, 0});
    LayoutCosts costs(false);
    const auto plan = make_plan(builder.build(), {.kind = TargetKind::Cuda, .precision = precision}, costs);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const auto code = emit(*plan);
    ASSERT_TRUE(code.ok()) << code.error().message;
    const std::string folder = scratch_folder("weights_" + to_string(precision));
    ASSERT_TRUE(write_emitted(*code, folder, false).ok());
    const std::string file = read_file(folder + "/weights.bin");
    ASSERT_GE(file.size(), 2 * bits.size());
    for (size_t i = 0; i < bits.size(); i++) {
      uint16_t written = 0;
      std::memcpy(&written, file.data() + 2 * i, sizeof written);
      EXPECT_EQ(written, bits[i]) << to_string(precision) << " of " << values[i];
    }
  }
}

// Kernels of every kind, two of them by each way there is; one reads indexes.
Result<std::vector<KernelSpec>> kernels_to_time(Precision precision = Precision::Fp32) {
  const BatchCase c = make_case(
      "timed",
      "input x : f32[1,8,9,9]\ninput ids : i64[5]\ninput t : f32[64,10]\ninput t2 : f32[10,6]\ninput w1 : "
      "f32[8,8,3,3]\ninput w2 : "
      "f32[8,1,3,3]\na = Conv(x, w1) {pads=[1,1,1,1]}\nb = Relu(a)\nc = Conv(b, w2) {group=8, pads=[1,1,1,1]}\nd = "
      "Add(c, b)\ne = Softmax(d) {axis=-1}\ng = Gather(t, ids)\nh = Softmax(g) {axis=-1}\ni = MatMul(h, t2)\n"
      "output y = e\noutput z = i",
      1);
  return admitted_kernels(c.graph, {.kind = TargetKind::Cuda, .precision = precision});
}

TEST(CudaTiming, EachKernelIsLaunchedByItsNumberAfterWhatItReads) {
  const auto specs = kernels_to_time();
  ASSERT_TRUE(specs.ok()) << specs.error().message;
  const Plan plan = timing_plan(*specs);
  const auto code = emit(plan);
  ASSERT_TRUE(code.ok()) << code.error().message;
  EXPECT_NE(text_of(*code, "gopt_timing.cu"), "");
  const std::string text = text_of(*code, "model.cc");
  const size_t refresh = text.find("void refresh_inputs("), launch = text.find("void launch_kernel(");
  ASSERT_TRUE(refresh < launch && launch != std::string::npos) << text;
  for (size_t k = 0; k < plan.kernels.size(); k++) {
    const std::string head = "case " + std::to_string(k) + ":  // " + plan.kernels[k].name + "\n";
    const size_t in_refresh = text.find(head), in_launch = text.find(head, launch);
    ASSERT_TRUE(in_refresh < launch && in_launch != std::string::npos) << head << text;
    const std::string refreshed = text.substr(in_refresh, text.find("break;", in_refresh) - in_refresh);
    const bool has_indexes = plan.kernels[k].name.find("Gather") != std::string::npos;
    EXPECT_EQ(refreshed.find("refresh_bytes(") != std::string::npos, has_indexes) << refreshed;
    EXPECT_NE(refreshed.find("refresh_floats("), std::string::npos) << refreshed;
  }
  for (const auto& [precision, name] :
       {std::pair(Precision::Fp16, "refresh_halves("), {Precision::Bf16, "refresh_bfloats("}}) {
    const auto halves = kernels_to_time(precision);
    ASSERT_TRUE(halves.ok()) << halves.error().message;
    const auto emitted = emit(timing_plan(*halves));
    ASSERT_TRUE(emitted.ok()) << emitted.error().message;
    EXPECT_NE(text_of(*emitted, "model.cc").find(name), std::string::npos);
  }
  for (const char* family : {"Family::Dnn", "Family::Unfolded", "library.add_nothing();"})
    EXPECT_NE(text.find(family), std::string::npos) << family;
  EXPECT_EQ(text_of(*cuda_code("input x : f32[4]\ny = Relu(x)\noutput y = y"), "gopt_timing"), "");
}

// Where there is a device each kernel is timed, twice alike in kind: all can be run.
void expect_times(Precision precision) {
  const auto specs = kernels_to_time(precision);
  ASSERT_TRUE(specs.ok()) << specs.error().message;
  const auto code = emit(timing_plan(*specs));
  ASSERT_TRUE(code.ok()) << code.error().message;
  const std::string folder = scratch_folder("cuda_timing_" + to_string(precision));
  ASSERT_TRUE(write_emitted(*code, folder, false).ok());
  const auto loaded = LoadedModel::build_and_load(folder, 1);
  if (!obstacles().run.empty()) {
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().message, obstacles().run) << "built and linked, and then there is no device";
    return;
  }
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  LoadedModel model = *loaded;
  int timed = 0;
  for (int round = 0; round < 2; round++)
    for (size_t k = 0; k < specs->size(); k++) {
      const auto ms = model.time_kernel(k);
      ASSERT_TRUE(ms.ok()) << ms.error().message;
      if (!*ms) {
        EXPECT_FALSE(is_launched_ahead((*specs)[k].kernel)) << "only a library may refuse a kernel of its own";
        continue;
      }
      EXPECT_TRUE(**ms > 0 && **ms < 10) << (*specs)[k].kernel.name << ": " << **ms;
      timed++;
    }
  EXPECT_GT(timed, 0);
}

TEST(CudaTiming, CompilesAndLinksAndTimes) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  expect_times(Precision::Fp32);
}
TEST(CudaTiming, CompilesAndLinksAndTimesHalves) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  expect_times(Precision::Fp16);
}

TEST(EmittedCuda, EveryOperatorHasCode) {
  for (const BatchCase& c : operator_cases()) {
    LayoutCosts costs(false);
    const auto plan = make_plan(c.graph, {TargetKind::Cuda, 1}, costs);
    ASSERT_TRUE(plan.ok()) << c.name << ": " << plan.error().message;
    const auto code = emit(*plan);
    EXPECT_TRUE(code.ok()) << c.name << ": " << code.error().message;
  }
}

void expect_agreement(const std::vector<BatchCase>& cases, Precision precision = Precision::Fp32) {
  for (const std::string& line : run_batch(cases, false, {.kind = TargetKind::Cuda, .precision = precision}))
    ADD_FAILURE() << line;
}

TEST(EmittedCuda, CompilesAndLinks) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (obstacles().run.empty()) GTEST_SKIP() << "there is a device: the tests below build and run";
  const std::vector<BatchCase> cases{
      make_case("convolutions",
                "input x : f32[1,8,9,9]\ninput w1 : f32[8,8,3,3]\na = Conv(x, w1) {pads=[0,0,1,1]}\nb = Clip(a) "
                "{min=0.0, max=6.0}\n"
                "c = MaxPool(b) {kernel_shape=[3,3]}\noutput y = c",
                1),
      make_case("attention",
                "input q : f32[2,4,8]\ninput k : f32[2,8,4]\na = MatMul(q, k)\nb = Softmax(a) {axis=-1}\nc = "
                "LogSoftmax(b) {axis=1}\noutput y = c",
                2),
      make_case("integers", "input x : i64[7]\na = Div(x, x)\nb = Cast(a) {to=11}\nc = Tanh(b)\noutput y = c", 3)};
  for (const Precision precision : {Precision::Fp32, Precision::Fp16, Precision::Bf16}) {
    const auto said = run_batch(cases, false, {.kind = TargetKind::Cuda, .precision = precision});
    ASSERT_EQ(said.size(), 1U);
    EXPECT_EQ(said[0], obstacles().run) << "built and linked, and then there is no device";
  }
}

TEST(EmittedCuda, GraphsOfHalvesAgreeWithTheInterpreter) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
  expect_agreement(half_cases());
}

TEST(EmittedCuda, GraphsAgreeWithTheInterpreterIn16Bits) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
  for (const Precision precision : {Precision::Fp16, Precision::Bf16}) expect_agreement(graph_cases(), precision);
}

TEST(EmittedCuda, GraphsAgreeWithTheInterpreter) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
  expect_agreement(graph_cases());
}

TEST(EmittedCuda, OperatorsAgreeWithTheInterpreter) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
  expect_agreement(operator_cases());
}

}  // namespace
}  // namespace gopt
