// Emitted code is judged by its own times, on the machine that it is for, and checked against what its graph says.
#include "../../driver/code_timing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "../../driver/build_plan.h"
#include "../../driver/check.h"
#include "../../driver/judge.h"
#include "../../driver/machine.h"
#include "../support/graph_with_weights.h"
#include "gopt/rule.h"
#include "gopt/temporary.h"

namespace gopt::driver {
namespace {

Graph chain_of(int relus) {
  std::string text = "  input x : f32[64]\n  n0 = Neg(x)\n";
  for (int k = 0; k < relus; k++) text += "  n" + std::to_string(k + 1) + " = Relu(n" + std::to_string(k) + ")\n";
  return graph_with_weights(text + "  output y = n" + std::to_string(relus) + "\n");
}
OptimizeResult result_of(Graph graph) {
  OptimizeResult result;
  result.graph = std::move(graph);
  return result;
}

// Milliseconds by the number of nodes.
class TableTimer : public ModelTimer {
 public:
  explicit TableTimer(std::map<size_t, double> ms) : ms_(std::move(ms)) {}
  std::string name() const override { return "table"; }
  Result<std::vector<std::vector<double>>> time(const std::vector<Graph>& graphs) override {
    calls++;
    std::vector<std::vector<double>> times;
    for (const Graph& graph : graphs) times.emplace_back(9, ms_.at(graph.nodes().size()));
    return times;
  }
  int calls = 0;

 private:
  std::map<size_t, double> ms_;
};

struct Judged {
  Result<JudgedModel> model;
  int calls, others_asked;
};
// The original is a chain of four, the passes alone give three, the result is two, without a rule it is one.
Judged judged_by(double four, double three, double two, double one) {
  const size_t own = chain_of(0).nodes().size();
  TableTimer timer({{own + 4, four}, {own + 3, three}, {own + 2, two}, {own + 1, one}});
  int asked = 0;
  const Candidate other = [&]() -> Result<std::optional<OptimizeResult>> {
    asked++;
    return std::optional(result_of(chain_of(1)));
  };
  auto model = judge(chain_of(4), result_of(chain_of(3)), result_of(chain_of(2)), {other}, timer, {.is_content = true});
  return {std::move(model), timer.calls, asked};
}
size_t kept_relus(const JudgedModel& model) {
  return model.kept ? model.kept->graph.nodes().size() - chain_of(0).nodes().size() : 4;
}

TEST(ContentJudge, KeepsAResultThatIsFasterAndTimesNothingElse) {
  const Judged judged = judged_by(10, 9, 5, 1);
  ASSERT_TRUE(judged.model.ok());
  EXPECT_EQ(kept_relus(*judged.model), 2U);
  EXPECT_EQ(judged.calls, 1);
  EXPECT_EQ(judged.others_asked, 0);
  EXPECT_DOUBLE_EQ(judged.model->times.speedup, 2);
}

TEST(ContentJudge, LooksForAnotherWhereTheResultIsNoFaster) {
  const Judged judged = judged_by(10, 10, 10, 8);
  ASSERT_TRUE(judged.model.ok());
  EXPECT_EQ(kept_relus(*judged.model), 1U);
  EXPECT_EQ(judged.others_asked, 1);
  EXPECT_DOUBLE_EQ(judged.model->times.speedup, 1.25);
}

TEST(ContentJudge, KeepsTheOriginalWhereNothingIsFasterAndTellsTheTimesOfTheResult) {
  const Judged judged = judged_by(10, 12, 20, 11);
  ASSERT_TRUE(judged.model.ok());
  EXPECT_FALSE(judged.model->kept);
  EXPECT_DOUBLE_EQ(judged.model->times.after_ms, 20);
  EXPECT_DOUBLE_EQ(judged.model->times.speedup, 0.5);
}

TEST(CodeTimer, TimesGraphsByTheirCodeAndKeepsWhatItMade) {
  const DriverOptions options{.runs = 3};
  const CostSource costs;
  PlannedGraph original(chain_of(2), options.target, costs);
  PhaseClock clock;
  PlanTiming timing(options, clock);
  CodeTimer timer(options, costs, timing, {&original});
  const auto times = timer.time({original.graph(), chain_of(1)});
  ASSERT_TRUE(times.ok()) << times.error().message;
  ASSERT_EQ(times->size(), 2U);
  for (const auto& rounds : *times) {
    constexpr size_t kAsked = 3, kMost = 6 * kAsked;  // more where three do not tell
    EXPECT_TRUE(rounds.size() >= kAsked && rounds.size() <= kMost) << rounds.size();
    EXPECT_EQ(rounds.size(), times->front().size());
    for (const double ms : rounds) EXPECT_GT(ms, 0);
  }
  EXPECT_FALSE(timer.take(original.graph()));
  EXPECT_TRUE(timer.take(chain_of(1)));
  EXPECT_FALSE(timer.take(chain_of(1)));
}

TEST(CodeCheck, AgreesWithTheInterpreterWhereTheCodeIsOfTheGraph) {
  const DriverOptions options;
  const CostSource costs;
  PlannedGraph graph(chain_of(1), options.target, costs);
  const auto report = check_code(graph, options, 100);
  ASSERT_TRUE(report && report->checked) << (report ? report->why_not : "none");
  EXPECT_TRUE(report->passed);
  EXPECT_EQ(report->engine, "interpreter");
  EXPECT_TRUE(must_agree(*report).ok());
}

TEST(CodeCheck, CodeOfAnotherGraphIsAnError) {
  const DriverOptions options;
  const CostSource costs;
  PlannedGraph graph(chain_of(1), options.target, costs);
  PlannedGraph other(chain_of(0), options.target, costs);
  ASSERT_TRUE(other.code().ok());
  graph.take_plan_of(std::move(other));
  const auto report = check_code(graph, options, 100);
  ASSERT_TRUE(report && report->checked);
  EXPECT_FALSE(report->passed);
  const Status status = must_agree(*report);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("output y:"), std::string::npos) << status.error().message;
}

TEST(CodeCheck, WhatTheInterpreterIsTooSlowForIsSaidNotToBeChecked) {
  const DriverOptions options;
  const CostSource costs;
  const Graph many = graph_with_weights("  input x : f32[40000,40000]\n  y = Sin(x)\n  output y = y\n");
  PlannedGraph graph(many, options.target, costs);
  const auto report = check_code(graph, options, 1e12);
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->checked);
  EXPECT_EQ(report->why_not, "its definitions would run for too long");
}

TEST(CodeForAGpu, IsTimedAndCheckedWhereThereIsOne) {
  auto database = load_rules(GOPT_SHIPPED_RULES "/core.rules");
  ASSERT_TRUE(database.ok());
  DriverOptions options{.target = {TargetKind::Cuda, 1}, .wants_code = true, .runs = 9};
  options.search.max_steps = 20;
  const Graph graph = graph_with_weights(R"(  input x : f32[64,256]
  input w0 : f32[256,256]
  a = MatMul(x, w0)
  b = Relu(a)
  c = Relu(b)
  d = MatMul(c, w0)
  output y = d
)");
  const auto outcome = optimize_graph(graph, database->rules, options);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  if (!cuda_machine()) {
    EXPECT_EQ(outcome->latency_note.find("not measured; the code is neither built nor checked here: CUDA code is "), 0U)
        << outcome->latency_note;
    EXPECT_FALSE(outcome->code_check);
    return;
  }
  ASSERT_TRUE(outcome->code_check);
  EXPECT_TRUE(outcome->code_check->checked) << outcome->code_check->why_not;
  EXPECT_TRUE(outcome->code_check->passed);
  EXPECT_TRUE(outcome->latency || outcome->result.applied.empty()) << outcome->latency_note;
}

// While it lives, the compiler says its version and compiles nothing.
class NoCompiler {
 public:
  NoCompiler() : folder_(*TemporaryFolder::create()), path_(getenv("PATH")) {
    const std::string compiler = (folder_.path() / "g++").string();
    std::ofstream(compiler) << "#!/bin/sh\n[ \"$1\" = --version ] && PATH='" << path_
                            << "' exec g++ --version\nexit 1\n";
    std::filesystem::permissions(compiler, std::filesystem::perms::owner_all);
    setenv("PATH", (folder_.path().string() + ":" + path_).c_str(), 1);
  }
  ~NoCompiler() { setenv("PATH", path_.c_str(), 1); }

 private:
  TemporaryFolder folder_;
  std::string path_;
};

TEST(CompileAhead, WhatFollowsFindsItDone) {
  const std::string bound = std::to_string(1 + std::random_device()() % 1000000);  // no run before has built it
  const Graph graph =
      graph_with_weights("  input x : f32[64]\n  a = Clip(x) {min=0.5, max=" + bound + ".0}\n  output y = a\n");
  const CostSource costs;
  PlannedGraph planned(graph, Target{}, costs);
  const auto plan = planned.plan();
  ASSERT_TRUE(plan.ok());
  const auto is_built_without = [&] {
    const NoCompiler none;
    return build_plan(**plan, 1).ok();
  };
  EXPECT_FALSE(is_built_without());
  ASSERT_TRUE(compile_ahead({*plan})[0].ok());
  EXPECT_TRUE(is_built_without());
}

}  // namespace
}  // namespace gopt::driver
