// --check FILE.npz: a result is checked on inputs that are given, and against outputs that are expected on them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "program.h"
#include "sample_graphs.h"

namespace gopt {
namespace {

const std::string kTrigonometric = trigonometric("[batch,2]");

class CheckFile : public testing::Test {
 protected:
  void SetUp() override { write_model(kTrigonometric, folder_.file("m.onnx")); }

  void write(const std::vector<std::pair<std::string, std::vector<double>>>& rows) {
    NamedTensors tensors;
    for (const auto& [name, values] : rows)
      tensors.emplace_back(
          name, Tensor::from_values(ElementType::Float32, {static_cast<int64_t>(values.size()) / 2, 2}, values));
    ASSERT_TRUE(write_npz(tensors, folder_.file("c.npz")).ok());
  }
  Outcome optimize() {
    return run_program("optimize " + folder_.file("m.onnx") + " --cost analytic --force --allow finite-only -o " +
                       folder_.file("y.onnx") + " --report " + folder_.file("r.json") + " --check " +
                       folder_.file("c.npz"));
  }
  nlohmann::json report() { return nlohmann::json::parse(read_file(folder_.file("r.json"))); }

  TestFolder folder_;
};

TEST_F(CheckFile, OrdinaryInputsOfAnyBatch) {
  write({{"x", {1, 2, 3, 4, 5, 6}}, {"y", {1, 1, 1, 1, 1, 1}}});
  const Outcome outcome = optimize();
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_EQ(report()["applied"].size(), 1U);
  EXPECT_EQ(report()["check"]["draws"][1], "given");
  EXPECT_EQ(report()["check"]["extents"], "batch=3");
}

TEST_F(CheckFile, InputsThatShowADifferenceUndoTheRule) {
  write({{"x", {1, INFINITY}}});
  const Outcome outcome = optimize();
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("does not agree with the original on given inputs"), std::string::npos) << outcome.text;
  EXPECT_TRUE(report()["applied"].empty());
  EXPECT_EQ(run_program("bisect " + folder_.file("m.onnx") + " --cost analytic --allow finite-only --check " +
                        folder_.file("c.npz"))
                .status,
            1);
}

TEST_F(CheckFile, OutputsThatTheOriginalDoesNotGiveAreAnError) {
  write({{"x", {1, 2}}, {"y", {1, 3}}});
  const Outcome outcome = optimize();
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("does not compute what is expected of it on the inputs that are given: y"),
            std::string::npos)
      << outcome.text;
  EXPECT_FALSE(std::filesystem::exists(folder_.file("y.onnx")));
}

// The code of a MaxPool passes a NaN over (docs/floats.md), which its graph does not: only these inputs show it.
TEST_F(CheckFile, CodeIsRunOnThemToo) {
  write_model(
      "graph pool\ninput x : f32[1,16,12,12]\ny = MaxPool(x) {kernel_shape=[3,3], pads=[1,1,1,1]}\noutput y = y\nend\n",
      folder_.file("m.onnx"));
  std::vector<double> values(16 * 12 * 12, 0.5);
  const auto emit = [&] {
    const Tensor x = Tensor::from_values(ElementType::Float32, {1, 16, 12, 12}, values);
    EXPECT_TRUE(write_npz({{"x", x}}, folder_.file("c.npz")).ok());
    return run_program("optimize " + folder_.file("m.onnx") + " --cost analytic --emit " + folder_.file("code") +
                       " --force --threads 1 --runs 1 --check " + folder_.file("c.npz"));
  };
  const Outcome right = emit();
  ASSERT_EQ(right.status, 0) << right.text;
  if (right.text.find("code             PASSED") == std::string::npos) GTEST_SKIP() << right.text;
  values[700] = NAN;
  const Outcome wrong = emit();
  EXPECT_EQ(wrong.status, 1) << wrong.text;
  EXPECT_NE(wrong.text.find("given inputs"), std::string::npos) << wrong.text;
}

// What makes more of a rounding than the tolerance is given the same allowance on them as on others.
TEST_F(CheckFile, WhatAmplifiesRoundingsPassesOnThemToo) {
  write_model(
      "graph waves\ninput x : f32[8,64]\ninput w : f32[64,32]\nconstant k = f32[] {2000}\na = MatMul(x, w)\n"
      "b = Mul(a, k)\ny = Sin(b)\noutput y = y\nend\n",
      folder_.file("m.onnx"));
  const auto drawn = [](std::vector<int64_t> dims, double step) {
    std::vector<double> values;
    for (int64_t i = 0; i < dims[0] * dims[1]; i++) values.push_back(std::sin(step * static_cast<double>(i + 1)));
    return Tensor::from_values(ElementType::Float32, dims, values);
  };
  ASSERT_TRUE(write_npz({{"x", drawn({8, 64}, 0.7)}, {"w", drawn({64, 32}, 1.3)}}, folder_.file("c.npz")).ok());
  const Outcome made =
      run_program("optimize " + folder_.file("m.onnx") + " --cost analytic --emit " + folder_.file("code") +
                  " --force --threads 1 --runs 1 --check " + folder_.file("c.npz"));
  EXPECT_EQ(made.status, 0) << made.text;
}

TEST_F(CheckFile, TensorsThatDoNotFitAreNamed) {
  write({{"z", {1, 2}}});
  EXPECT_NE(optimize().text.find("holds 'z', which the model has not; it has inputs x and outputs y"),
            std::string::npos);
  write({{"y", {1, 2}}});
  EXPECT_NE(optimize().text.find("holds no input of the model"), std::string::npos);
  const Tensor wide = Tensor::from_values<double>(ElementType::Float32, {1, 3}, {1, 2, 3});
  ASSERT_TRUE(write_npz({{"x", wide}}, folder_.file("c.npz")).ok());
  EXPECT_NE(optimize().text.find("x is f32[1,3], expected f32[batch,2]"), std::string::npos);
  EXPECT_EQ(folder_.count(), 2U);
}

}  // namespace
}  // namespace gopt
