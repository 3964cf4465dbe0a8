// The program on models that are right: what it prints, what it writes, and that the result computes the same.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "gopt/interpreter.h"
#include "held_program.h"
#include "program.h"
#include "sample_graphs.h"

namespace gopt {
namespace {

const std::string kTrigonometric = trigonometric("[4,8]");

constexpr const char* kConvolutions = R"(graph convolutions
  input x : f32[1,3,8,8]
  constant k = f32[4,3,1,1] {1, -2, 3, 0.5, 1, 2, -1, 1, 4, 0.25, -3, 1}
  constant scale = f32[4] {1, 2, 0.5, 1}
  constant shift = f32[4] {0, 1, -1, 2}
  constant mean = f32[4] {0.5, -0.5, 0, 1}
  constant variance = f32[4] {1, 4, 0.25, 2}
  c = Conv(x, k)
  b = BatchNormalization(c, scale, shift, mean, variance)
  r = Relu(b)
  y = MaxPool(r) {kernel_shape=[2,2], strides=[2,2]}
  output y = y
end
)";

std::map<std::string, std::pair<int, int>> operators(const nlohmann::json& report) {
  std::map<std::string, std::pair<int, int>> counts;
  for (const auto& [name, count] : report["operators"].items()) counts[name] = {count["before"], count["after"]};
  return counts;
}

TEST(Optimize, SineAndCosineSquaredBecomeOne) {
  TestFolder folder;
  write_model(kTrigonometric, folder.file("f.onnx"));
  const std::string command = "optimize --cost analytic --budget 1000h " + folder.file("f.onnx") + " -o " +
                              folder.file("y.onnx") + " --force --report " + folder.file("r.json");
  // For an infinite x the original is NaN.
  ASSERT_EQ(run_program(command).status, 0);
  EXPECT_TRUE(nlohmann::json::parse(read_file(folder.file("r.json")))["applied"].empty());
  const Outcome outcome = run_program(command + " --allow finite-only");
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  auto optimized = import_onnx(folder.file("y.onnx"));
  ASSERT_TRUE(optimized.ok()) << optimized.error().message;
  for (const NodePtr& node : optimized->graph.nodes()) EXPECT_FALSE(node->is(OpKind::Sin) || node->is(OpKind::Cos));
  const nlohmann::json report = nlohmann::json::parse(read_file(folder.file("r.json")));
  ASSERT_FALSE(report["applied"].empty());
  const std::string rule = report["applied"][0]["rule"];
  const Outcome shown = run_program("rules --show " + rule);
  EXPECT_EQ(shown.status, 0);
  EXPECT_NE(shown.text.find("finite-only"), std::string::npos) << shown.text;
  EXPECT_NE(shown.text.find("proof"), std::string::npos) << shown.text;
  auto values =
      interpret(optimized->graph,
                {{"x", Tensor::from_values<double>(ElementType::Float32, {4, 8}, std::vector<double>(32, 0.7))}});
  ASSERT_TRUE(values.ok()) << values.error().message;
  for (double v : (*values)[0].to_doubles()) EXPECT_EQ(v, 1.0);
}

TEST(Optimize, BatchNormalizationIsFolded) {
  TestFolder folder;
  write_model(kConvolutions, folder.file("f.onnx"));
  const Outcome outcome = run_program("optimize --cost analytic --budget 1000h " + folder.file("f.onnx") + " -o " +
                                      folder.file("y.onnx") + " --report " + folder.file("r.json"));
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("PASSED"), std::string::npos) << outcome.text;
  const auto counts = operators(nlohmann::json::parse(read_file(folder.file("r.json"))));
  EXPECT_EQ(counts.at("BatchNormalization"), std::pair(1, 0));
  EXPECT_EQ(counts.at("Conv"), std::pair(1, 1));
  const Outcome compared = run_program("compare " + folder.file("f.onnx") + " " + folder.file("y.onnx") +
                                       " --engine interpreter --seed 5 --repeats 2");
  EXPECT_EQ(compared.status, 0) << compared.text;
}

TEST(Optimize, ADisabledRuleIsNotApplied) {
  TestFolder folder;
  write_model(kConvolutions, folder.file("f.onnx"));
  const Outcome outcome =
      run_program("optimize --cost analytic --budget 1000h " + folder.file("f.onnx") + " --dry-run --search none");
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("rules applied: none"), std::string::npos) << outcome.text;
  EXPECT_EQ(folder.count(), 1u) << "--dry-run writes nothing";
}

// Ctrl-C after the first step: the best so far, proved, checked and written.
TEST(Optimize, TheBestSoFarIsWrittenWhenInterrupted) {
  TestFolder folder;
  write_model(kConvolutions, folder.file("f.onnx"));
  const std::string command = std::string(GOPT_PROGRAM " optimize --cost analytic --budget 1000h ") +
                              folder.file("f.onnx") + " -o " + folder.file("y.onnx") + " --report " +
                              folder.file("r.json");
  const HeldOutcome outcome = interrupt_after(1, SIGINT, command, folder.file("printed.txt"));
  ASSERT_TRUE(outcome.was_held) << outcome.text;
  ASSERT_TRUE(WIFEXITED(outcome.status)) << outcome.status;
  EXPECT_EQ(WEXITSTATUS(outcome.status), 0) << outcome.text;
  EXPECT_NE(outcome.text.find("PASSED"), std::string::npos) << outcome.text;
  const nlohmann::json report = nlohmann::json::parse(read_file(folder.file("r.json")));
  EXPECT_EQ(report["search"]["stop_reason"], "interrupted");
  EXPECT_EQ(report["search"]["steps"], 1);
  EXPECT_TRUE(std::filesystem::exists(folder.file("y.onnx")));
}

// What runs the check (with a model as its third word) says that it is there, and waits: a second Ctrl-C ends the
// program.
TEST(Optimize, ASecondInterruptEndsIt) {
  TestFolder folder;
  write_model(kConvolutions, folder.file("f.onnx"));
  const std::string pipe = folder.file("pipe"), python = folder.file("python");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  write_file(python, "#!/bin/sh\nif [ $# -eq 2 ]; then echo ready; else echo here >" + pipe + "; fi\ncat >/dev/null\n");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const std::string command = std::string(GOPT_PROGRAM " optimize --cost analytic --budget 1000h ") +
                              folder.file("f.onnx") + " -o " + folder.file("y.onnx") + " --report " +
                              folder.file("r.json") + " --check onnxruntime --python " + python;
  std::string said;
  const HeldOutcome outcome = interrupt_after(1, SIGINT, command, folder.file("printed.txt"), [&](pid_t child) {
    said = read_file(pipe);
    kill(child, SIGINT);
  });
  ASSERT_TRUE(outcome.was_held) << outcome.text;
  EXPECT_EQ(said, "here\n") << "it goes on after the first";
  EXPECT_TRUE(WIFSIGNALED(outcome.status) && WTERMSIG(outcome.status) == SIGINT) << outcome.status << outcome.text;
  EXPECT_EQ(folder.count(), 4u) << "model, pipe, Python and what is printed: nothing half written";
}

// Neither does it time what it found: that is built and checked, and written.
TEST(Optimize, NothingIsTimedOnceItIsInterrupted) {
  TestFolder folder;
  write_model(kConvolutions, folder.file("f.onnx"));
  const std::string command = std::string(GOPT_PROGRAM " optimize --cost analytic --budget 1000h ") +
                              folder.file("f.onnx") + " --emit " + folder.file("code");
  const HeldOutcome outcome = interrupt_after(1, SIGINT, command, folder.file("printed.txt"));
  ASSERT_TRUE(outcome.was_held) << outcome.text;
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("not measured: interrupted"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("code             PASSED"), std::string::npos) << outcome.text;
  EXPECT_TRUE(std::filesystem::exists(folder.file("code/model.h")));
}

TEST(Optimize, TheSameTwice) {
  TestFolder folder;
  write_model(kConvolutions, folder.file("f.onnx"));
  for (const char* name : {"a.onnx", "b.onnx"})
    ASSERT_EQ(
        run_program("optimize --cost analytic --budget 1000h " + folder.file("f.onnx") + " -o " + folder.file(name))
            .status,
        0);
  EXPECT_EQ(read_file(folder.file("a.onnx")), read_file(folder.file("b.onnx")));
}

// Without --cost: kernels are timed where the cache does not know them, and by a cache that does nothing is left to
// chance.
TEST(Optimize, TimesEachKernelOnce) {
  TestFolder folder;
  write_model(kConvolutions, folder.file("f.onnx"));
  const std::string command = "optimize --target cpu --budget 1000h --force --cache " + folder.file("times") + " " +
                              folder.file("f.onnx") + " -o " + folder.file("y.onnx");
  const Outcome first = run_program(command);
  ASSERT_EQ(first.status, 0) << first.text;
  EXPECT_NE(first.text.find("(measured cost)"), std::string::npos) << first.text;
  EXPECT_NE(first.text.find("kernels timed"), std::string::npos) << first.text;
  // Until nothing is left to be timed: new times may lead a search elsewhere.
  Outcome known = run_program(command);
  for (int run = 0; run < 5 && known.text.find("kernels timed") != std::string::npos; run++)
    known = run_program(command);
  ASSERT_EQ(known.status, 0) << known.text;
  EXPECT_EQ(known.text.find("kernels timed"), std::string::npos) << known.text;
  const std::string times = read_file(folder.file("times")), model = read_file(folder.file("y.onnx"));
  ASSERT_EQ(run_program(command).status, 0);
  EXPECT_EQ(read_file(folder.file("times")), times);
  EXPECT_EQ(read_file(folder.file("y.onnx")), model);
}

TEST(Compare, FailsOnModelsThatDiffer) {
  TestFolder folder;
  write_model("graph a\ninput x : f32[8]\ny = Sin(x)\noutput y = y\nend", folder.file("a.onnx"));
  write_model("graph b\ninput x : f32[8]\ny = Cos(x)\noutput y = y\nend", folder.file("b.onnx"));
  const Outcome outcome =
      run_program("compare " + folder.file("a.onnx") + " " + folder.file("b.onnx") + " --engine interpreter");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("FAILED"), std::string::npos) << outcome.text;
}

TEST(Compare, ANanNeverPasses) {
  TestFolder folder;
  write_model("graph a\ninput x : f32[8]\nc = Abs(x)\ny = Sqrt(c)\noutput y = y\nend", folder.file("a.onnx"));
  write_model("graph b\ninput x : f32[8]\ny = Sqrt(x)\noutput y = y\nend", folder.file("b.onnx"));
  EXPECT_EQ(run_program("compare " + folder.file("a.onnx") + " " + folder.file("b.onnx") +
                        " --engine interpreter --atol 1000")
                .status,
            1);
}

// Emission, the build of what was emitted, run, compare and bench, on one small model: one compilation.
TEST(Emit, CodeAgreesWithTheInterpreter) {
  TestFolder folder;
  write_model(kConvolutions, folder.file("f.onnx"));
  const Outcome emitted =
      run_program("optimize --cost analytic --budget 1000h " + folder.file("f.onnx") + " --no-measure --emit " +
                  folder.file("code") + " --report " + folder.file("r.json"));
  ASSERT_EQ(emitted.status, 0) << emitted.text;
  for (const char* name : {"CMakeLists.txt", "model.h", "weights.bin"})
    EXPECT_TRUE(std::filesystem::exists(folder.file("code") + "/" + name)) << name;
  const Outcome compared = run_program("compare " + folder.file("f.onnx") + " " + folder.file("code"));
  EXPECT_EQ(compared.status, 0) << compared.text;
  const Outcome timed =
      run_program("bench " + folder.file("code") + " --runs 3 --profile --json " + folder.file("b.json"));
  EXPECT_EQ(timed.status, 0) << timed.text;
  const nlohmann::json bench = nlohmann::json::parse(read_file(folder.file("b.json")))["models"][0];
  EXPECT_EQ(bench["times_ms"].size(), 3u);
  // What runs is the plan that the report prints.
  const std::string plan = nlohmann::json::parse(read_file(folder.file("r.json")))["plan"];
  ASSERT_FALSE(bench["kernels"].empty());
  for (const auto& kernel : bench["kernels"])
    EXPECT_NE(plan.find("\n" + kernel["name"].get<std::string>() + ": "), std::string::npos) << kernel << plan;
  const Outcome ran = run_program("run " + folder.file("code") + " --seed 3 -o " + folder.file("out.npz"));
  EXPECT_EQ(ran.status, 0) << ran.text;
  auto outputs = read_npz(folder.file("out.npz"));
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  EXPECT_EQ((*outputs)[0].first, "y");
  EXPECT_EQ((*outputs)[0].second.dims(), (std::vector<int64_t>{1, 4, 4, 4}));
}

std::string three_digits(double number) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(3) << " " << number << " ";
  return text.str();
}

// A model of nanoseconds: microseconds are printed, and a turn has as many runs as it takes to time it.
TEST(Bench, OfASmallModelHasDigits) {
  TestFolder folder;
  write_model("graph a\ninput x : f32[2]\ny = Relu(x)\noutput y = y\nend", folder.file("a.onnx"));
  const Outcome outcome = run_program("bench " + folder.file("a.onnx") + " --runs 3 --json " + folder.file("b.json"));
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("microseconds"), std::string::npos) << outcome.text;
  const nlohmann::json model = nlohmann::json::parse(read_file(folder.file("b.json")))["models"][0];
  EXPECT_GT(model["runs_of_turn"], 1);
  ASSERT_EQ(model["times_ms"].size(), 3u);
  const double median_ms = model["median_ms"];
  EXPECT_GT(median_ms, 0);
  EXPECT_LT(median_ms, 1);
  EXPECT_NE(outcome.text.find(three_digits(1000 * median_ms)), std::string::npos) << outcome.text;
}

}  // namespace
}  // namespace gopt
