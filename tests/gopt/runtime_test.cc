// The ONNX file as its runtime judges it: by commands that print made-up times, and by ONNX Runtime where it is there.
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "program.h"

namespace gopt {
namespace {

constexpr const char* kTwoProducts = R"(graph two_products
  input x : f32[16,24]
  input u : f32[24,32]
  input v : f32[24,32]
  p = MatMul(x, u)
  q = MatMul(x, v)
  s = Add(p, q)
  output y = s
end
)";

struct Judged {
  Outcome outcome;
  nlohmann::json report;
  int products = 0;  // in the file that was written; -1: none was
};

// The distributive law is the only rewrite.
Judged optimize_by(const std::string& flags) {
  TestFolder folder;
  write_model(kTwoProducts, folder.file("f.onnx"));
  Judged judged;
  judged.outcome = run_program(
      "optimize " + folder.file("f.onnx") + " -o " + folder.file("o.onnx") + " --report " + folder.file("r.json") +
      " --allow finite-only --steps 50 --disable matmul-add-matrix-to-gemm --disable gemm-add-matrix " + flags);
  const auto written = import_onnx(folder.file("o.onnx"));
  judged.products = written.ok() ? 0 : -1;
  if (!written.ok()) return judged;
  judged.report = nlohmann::json::parse(read_file(folder.file("r.json")));
  for (const NodePtr& node : written->graph.nodes()) judged.products += node->is(OpKind::MatMul);
  return judged;
}

// The first model of a comparison is the original.
std::string measure(const std::string& original, const std::string& rewritten) {
  return "--measure 'case {model} in *model0.onnx) " + original + ";; *) " + rewritten + ";; esac'";
}

TEST(Runtime, WithoutOneTheCostOfARuntimeDecides) {
  const Judged judged = optimize_by("");
  ASSERT_EQ(judged.outcome.status, 0) << judged.outcome.text;
  EXPECT_EQ(judged.products, 1);
  EXPECT_EQ(judged.report["cost"]["kind"], "runtime");
  EXPECT_FALSE(judged.report.contains("runtime"));
}

TEST(Runtime, ARewrittenModelThatIsFasterIsWritten) {
  const Judged judged = optimize_by(measure("echo working; echo 2.5", "echo 2"));
  ASSERT_EQ(judged.outcome.status, 0) << judged.outcome.text;
  EXPECT_EQ(judged.products, 1);
  EXPECT_EQ(judged.report["runtime"]["before_ms"], 2.5);
  EXPECT_EQ(judged.report["runtime"]["after_ms"], 2.0);
  EXPECT_GT(judged.report["runtime"]["seconds"], 0);
  EXPECT_NE(judged.outcome.text.find("2.500 ms -> 2.000 ms, 1.250x"), std::string::npos) << judged.outcome.text;
}

TEST(Runtime, ARewrittenModelThatIsSlowerIsNot) {
  const Judged judged = optimize_by(measure("echo 2", "echo 2.5"));
  ASSERT_EQ(judged.outcome.status, 0) << judged.outcome.text;
  EXPECT_EQ(judged.products, 2);
  EXPECT_EQ(judged.report["runtime"]["kept"], "the original");
}

TEST(Runtime, WithNothingRewrittenNoTimesAreTold) {
  const Judged judged = optimize_by("--search none --disable drop-identities " + measure("echo 2", "echo 1"));
  ASSERT_EQ(judged.outcome.status, 0) << judged.outcome.text;
  EXPECT_EQ(judged.report["runtime"]["candidates"], 0);
  EXPECT_FALSE(judged.report["runtime"].contains("before_ms"));
  EXPECT_NE(judged.outcome.text.find("nothing was rewritten"), std::string::npos) << judged.outcome.text;
  EXPECT_EQ(judged.outcome.text.find("0.000 ms"), std::string::npos) << judged.outcome.text;
}

TEST(Runtime, TheCommandIsGivenTheModelsInputs) {
  const Judged judged = optimize_by(measure("test -s {inputs} && echo 2", "test -s {inputs} && echo 1"));
  ASSERT_EQ(judged.outcome.status, 0) << judged.outcome.text;
  EXPECT_EQ(judged.products, 1);
}

struct Failure {
  std::string name, flags, said;
};
class RuntimeFailure : public testing::TestWithParam<Failure> {};

TEST_P(RuntimeFailure, IsTheUsersErrorAndWritesNothing) {
  const auto start = std::chrono::steady_clock::now();
  const Judged judged = optimize_by(GetParam().flags);
  EXPECT_EQ(judged.outcome.status, 1) << judged.outcome.text;
  EXPECT_EQ(judged.products, -1);
  EXPECT_NE(judged.outcome.text.find(GetParam().said), std::string::npos) << judged.outcome.text;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(5));  // far less than what sleeps
}

INSTANTIATE_TEST_SUITE_P(
    Runtimes, RuntimeFailure,
    testing::Values(Failure{"Garbage", "--measure 'echo fast # {model}'",
                            "expected a number of milliseconds, but it printed `fast`"},
                    Failure{"Nothing", "--measure 'true {model}'", "expected a number of milliseconds"},
                    Failure{"Negative", "--measure 'echo -1 # {model}'", "expected a number of milliseconds"},
                    Failure{"ExitStatus", "--measure 'echo no such model >&2; exit 1 # {model}'",
                            "exit status 1\n  no such model"},
                    Failure{"Crash", "--measure 'kill -SEGV $$ # {model}'", "signal 11"},
                    Failure{"Timeout", "--measure 'sleep 1000 # {model}' --measure-timeout 1", "took too long"},
                    Failure{"NoModel", "--measure 'echo 1'", "has no {model}"},
                    Failure{"Both", "--measure 'echo 1 # {model}' --runtime onnxruntime", "give one of them"},
                    Failure{"NoPython", "--runtime onnxruntime --python no-such-python", "cannot start no-such-python"},
                    Failure{"NotAPython", "--runtime onnxruntime --python echo", "is no Python"}),
    [](const auto& info) { return info.param.name; });

TEST(Runtime, WithoutAnOnnxFileThereIsNothingToJudge) {
  TestFolder folder;
  write_model(kTwoProducts, folder.file("f.onnx"));
  const Outcome outcome =
      run_program("optimize " + folder.file("f.onnx") + " --emit " + folder.file("code") + " --measure 'echo {model}'");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("give -o FILE.onnx"), std::string::npos) << outcome.text;
}

TEST(Runtime, AMissingModuleIsNamedWithWhatInstallsIt) {
  if (!python_has("sys")) GTEST_SKIP() << "no Python (set GOPT_PYTHON to one)";
  // Isolated and without site packages: no module but Python's own.
  TestFolder folder;
  write_file(folder.file("bare"), "#!/bin/sh\nexec " + test_python() + " -S -I \"$@\"\n");
  std::filesystem::permissions(folder.file("bare"), std::filesystem::perms::owner_all);
  const Judged judged = optimize_by("--runtime onnxruntime --python " + folder.file("bare"));
  EXPECT_EQ(judged.outcome.status, 1);
  EXPECT_NE(judged.outcome.text.find("-m pip install numpy"), std::string::npos) << judged.outcome.text;
}

TEST(Runtime, OnnxRuntimeJudges) {
  if (!python_has("onnxruntime")) GTEST_SKIP() << "no Python with ONNX Runtime (set GOPT_PYTHON to one)";
  const Judged judged = optimize_by("--runtime onnxruntime");
  ASSERT_EQ(judged.outcome.status, 0) << judged.outcome.text;
  EXPECT_EQ(judged.report["runtime"]["runtime"], "onnxruntime");
  EXPECT_GT(judged.report["runtime"]["before_ms"], 0);
  EXPECT_EQ(judged.products, judged.report["runtime"]["kept"] == "a rewritten model" ? 1 : 2);
}

// ---- --check onnxruntime ----

TEST(CheckByFiles, OnnxRuntimeComparesTheFiles) {
  if (!python_has("onnxruntime")) GTEST_SKIP() << "no Python with ONNX Runtime (set GOPT_PYTHON to one)";
  const Judged judged = optimize_by("--check onnxruntime");
  ASSERT_EQ(judged.outcome.status, 0) << judged.outcome.text;
  EXPECT_EQ(judged.products, 1);
  EXPECT_EQ(judged.report["check"]["engine"], "onnxruntime");
  EXPECT_TRUE(judged.report["check"]["passed"]);
  EXPECT_GT(judged.report["check"]["draws"].size(), 2U);
}

// At tolerance nought the distributive law is dropped, and the file is written without it.
TEST(CheckByFiles, WhatMakesADifferenceIsDropped) {
  if (!python_has("onnxruntime")) GTEST_SKIP() << "no Python with ONNX Runtime (set GOPT_PYTHON to one)";
  const Judged judged = optimize_by("--check onnxruntime --rtol 0 --atol 0");
  ASSERT_EQ(judged.outcome.status, 0) << judged.outcome.text;
  EXPECT_EQ(judged.products, 2);
  EXPECT_NE(judged.outcome.text.find("it is searched again without `"), std::string::npos) << judged.outcome.text;
}

// A reader that gives other numbers for the file than for what is written of it: then nothing is.
TEST(CheckByFiles, AFileThatIsReadOtherwiseIsAnError) {
  if (!python_has("onnxruntime")) GTEST_SKIP() << "no Python with ONNX Runtime (set GOPT_PYTHON to one)";
  TestFolder folder;
  write_file(folder.file("onnxruntime.py"), R"(
import numpy
class SessionOptions: pass
class GraphOptimizationLevel: ORT_DISABLE_ALL = 0
class Port: name = "x"
class InferenceSession:
    def __init__(self, path, *_, **__): self.value = 1.0 if path.endswith("f.onnx") else 2.0
    def get_inputs(self): return [Port()]
    def run(self, _, feed): return [numpy.full((16, 32), self.value, numpy.float32)]
)");
  write_file(folder.file("other"),
             "#!/bin/sh\nPYTHONPATH=" + folder.path().string() + " exec " + test_python() + " \"$@\"\n");
  std::filesystem::permissions(folder.file("other"), std::filesystem::perms::owner_all);
  const Judged other = optimize_by("--check onnxruntime --python " + folder.file("other"));
  EXPECT_EQ(other.outcome.status, 1) << other.outcome.text;
  EXPECT_EQ(other.products, -1);
  EXPECT_NE(other.outcome.text.find("does not compute in onnxruntime what the file does"), std::string::npos)
      << other.outcome.text;
}

}  // namespace
}  // namespace gopt
