// What would be written, checked by a program that runs files: as they are, and as it runs them by default.
#include "check_files.h"

#include <gtest/gtest.h>

#include "gopt/interpreter.h"
#include "gopt/text.h"

namespace gopt::driver {
namespace {

// Runs the original whatever it is asked for; what its optimizations change is added to each number.
class MadeUpRuntime : public FileRunner {
 public:
  struct Changes {
    double original = 0, written = 0;
    std::string error;  // of the file that would be written, as the runtime is by default
    std::string error_of_any_run = {};
    bool refuses_all = false;  // of ours: what is not rewritten, too
    double noise = 0;          // of each run
  };
  MadeUpRuntime(Graph graph, Changes changes) : graph_(std::move(graph)), changes_(std::move(changes)) {}

  std::string name() const override { return "made-up"; }
  Result<std::vector<std::vector<Tensor>>> run(const std::string& path,
                                               const std::vector<std::map<std::string, Tensor>>& draws,
                                               RuntimeOptimizations optimizations) override {
    const bool is_usual = optimizations == RuntimeOptimizations::Usual, is_original = path == kOriginal;
    const bool is_refused = !is_original && (changes_.refuses_all || !path.ends_with(".unrewritten.onnx"));
    if (is_usual && is_refused && !changes_.error.empty()) return Error{changes_.error};
    if (is_refused && !changes_.error_of_any_run.empty()) return Error{changes_.error_of_any_run};
    const double change = changes_.noise * runs_++ + (!is_usual     ? 0
                                                      : is_original ? changes_.original
                                                                    : changes_.written);
    std::vector<std::vector<Tensor>> results;
    for (const auto& draw : draws) {
      GOPT_ASSIGN_OR_RETURN(std::vector<Tensor> outputs, interpret(graph_, draw));
      for (Tensor& output : outputs) {
        std::vector<double> values = output.to_doubles();
        for (double& value : values) value += change;
        output = Tensor::from_values(output.tensor_type().element, output.dims(), values);
      }
      results.push_back(std::move(outputs));
    }
    return results;
  }

  static constexpr const char* kOriginal = "original.onnx";

 private:
  Graph graph_;
  Changes changes_;
  int runs_ = 0;
};

CheckReport check_by(MadeUpRuntime::Changes changes) {
  const auto graph = parse_graph("graph g\ninput x : f32[4,3]\na = Exp(x)\noutput y = a\nend");
  EXPECT_TRUE(graph.ok());
  CheckOptions options;
  options.original_file = MadeUpRuntime::kOriginal;
  options.runner = std::make_shared<MadeUpRuntime>(*graph, std::move(changes));
  return check_files(*graph, *graph, options, 1);
}

TEST(CheckFiles, PassesWhatIsRightBothWays) {
  const CheckReport report = check_by({});
  EXPECT_TRUE(report.passed) << report.why_not;
  EXPECT_EQ(report.engine, "made-up");
  EXPECT_EQ(report.of_runtime, "");
}

TEST(CheckFiles, WhatTheRuntimeByDefaultMakesOfAResultFailsIt) {
  const CheckReport report = check_by({.written = 0.5});
  EXPECT_TRUE(report.checked);
  EXPECT_FALSE(report.passed);
  EXPECT_EQ(report.engine, "made-up, as it is by default");
  ASSERT_FALSE(report.differences.empty());
  EXPECT_NEAR(report.differences[0].max_absolute, 0.5, 1e-5);
}

TEST(CheckFiles, WhatTheRuntimeRefusesFailsTheResult) {
  for (const MadeUpRuntime::Changes& changes :
       {MadeUpRuntime::Changes{.error = "no such kernel"}, {.error_of_any_run = "no such kernel"}}) {
    const CheckReport report = check_by(changes);
    EXPECT_TRUE(report.checked);
    EXPECT_FALSE(report.passed);
    ASSERT_FALSE(report.differences.empty());
    EXPECT_EQ(report.differences[0].note, "what would be written does not run: no such kernel");
    EXPECT_EQ(last_inputs(report), "ordinary random inputs");
  }
}

TEST(CheckFiles, WhatTheRuntimeRefusesOfTheUnrewrittenAsWellIsNotChecked) {
  for (const MadeUpRuntime::Changes& changes : {MadeUpRuntime::Changes{.error = "no such kernel", .refuses_all = true},
                                                {.error_of_any_run = "no such kernel", .refuses_all = true}}) {
    const CheckReport report = check_by(changes);
    EXPECT_FALSE(report.checked);
    EXPECT_FALSE(report.passed);
    EXPECT_NE(report.why_not.find("no such kernel"), std::string::npos) << report.why_not;
  }
}

TEST(CheckFiles, WhatTheRuntimeMakesOfTheOriginalAsWellIsNotTheResults) {
  for (const MadeUpRuntime::Changes& changes :
       {MadeUpRuntime::Changes{.original = 0.5, .written = 0.5}, {.original = 0.5, .error = "no such kernel"}}) {
    const CheckReport report = check_by(changes);
    EXPECT_TRUE(report.passed) << report.why_not;
    EXPECT_NE(report.of_runtime, "");
  }
}

TEST(CheckFiles, WhatDoesNotRepeatItselfIsNotChecked) {
  const CheckReport report = check_by({.noise = 0.5});
  EXPECT_FALSE(report.checked);
  EXPECT_NE(report.why_not.find("other results each time"), std::string::npos) << report.why_not;
}

}  // namespace
}  // namespace gopt::driver
