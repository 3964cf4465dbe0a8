// gopt explain, bisect, and optimize --trace: what they print.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "../onnx/model_builder.h"
#include "program.h"
#include "sample_graphs.h"

namespace gopt {
namespace {

constexpr const char* kBlock = R"(graph block
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
const std::string kSquares = trigonometric("[4,8]");

class Explained : public testing::Test {
 protected:
  std::string model(const std::string& text) {
    write_model(text, folder_.file("f.onnx"));
    return folder_.file("f.onnx");
  }
  static std::string with(const std::string& command, const std::string& model, const std::string& rest) {
    return command + " " + model + " " + rest + " --cost analytic --budget 1000h";
  }
  TestFolder folder_;
};

void expect_holds(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST_F(Explained, ANodeThatWasRewritten) {
  const Outcome outcome = run_program(with("explain", model(kBlock), "b"));
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  expect_holds(outcome.text,
               {"node `BatchNormalization` (BatchNormalization)", "in the model", "rewrites that took it:\n",
                "in the result", "(Conv)", "convolution", "rules that match at it", "; applied"});
}

TEST_F(Explained, AsJson) {
  const Outcome outcome = run_program(with("explain", model(kBlock), "c --json"));
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  const nlohmann::json json = nlohmann::json::parse(outcome.text);
  EXPECT_EQ(json["operator"], "Conv");
  EXPECT_EQ(json["original"]["plan"]["role"], "library kernel");
  ASSERT_FALSE(json["original"]["plan"]["options"].empty());
  EXPECT_EQ(json["original"]["plan"]["options"][0]["chosen"], true);
  EXPECT_FALSE(json["applied"].empty());
  EXPECT_FALSE(json["rules"].empty());
}

TEST_F(Explained, AMarkThatWouldLetARule) {
  const Outcome outcome = run_program(with("explain", model(kSquares), "y --all"));
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  expect_holds(outcome.text, {"rewrites that took it: none", "not allowed: --allow finite-only would let it"});
}

TEST_F(Explained, ForAnotherTarget) {
  const Outcome outcome = run_program(with("explain", model(kBlock), "c --target cuda"));
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  expect_holds(outcome.text, {"chosen", "plain"});
}

// Nodes of the file that are no nodes of the graph: taken apart, passed by, folded.
TEST_F(Explained, WhatBecameOfANodeOfTheFile) {
  TestModel lstm;
  lstm.input("x", {int64_t{2}, int64_t{3}, int64_t{4}});
  lstm.output("h", {int64_t{1}, int64_t{3}, int64_t{5}});
  lstm.constant(float_tensor("w", {1, 20, 4}));
  lstm.constant(float_tensor("r", {1, 20, 5}));
  lstm.constant(float_tensor("one", {1}, {1}));
  lstm.node("Add", {"one", "one"}, {"two"}).name("sum");
  lstm.node("Identity", {"x"}, {"same"}).name("pass");
  lstm.node("Mul", {"same", "two"}, {"twice"}).name("times");
  lstm.node("LSTM", {"twice", "w", "r"}, {"all", "h"}).name("memory").i("hidden_size", 5);
  lstm.save(folder_.file("f.onnx"));
  const std::string path = folder_.file("f.onnx");
  for (const char* name : {"memory", "h"}) {
    const Outcome outcome = run_program(with("explain", path, name));
    ASSERT_EQ(outcome.status, 0) << outcome.text;
    expect_holds(outcome.text, {"node `memory` (LSTM) of the file\n  taken apart: ", " MatMul", " Sigmoid",
                                "what makes its result:\nnode `", "in the result"});
  }
  const Outcome unread = run_program(with("explain", path, "all"));  // of the LSTM too, whose other output is read
  EXPECT_EQ(unread.status, 0) << unread.text;
  expect_holds(run_program(with("explain", path, "pass")).text,
               {"node `pass` (Identity) of the file\n  no node of its own: what it gives is there already"});
  const Outcome folded = run_program(with("explain", path, "sum --json"));
  ASSERT_EQ(folded.status, 0) << folded.text;
  EXPECT_EQ(nlohmann::json::parse(folded.text)["file_node"]["fate"], "it depends on constants alone, and is one");
  const Outcome kept = run_program(with("explain", path, "times"));
  EXPECT_EQ(kept.text.find("of the file"), std::string::npos) << kept.text;
}

TEST_F(Explained, AnUnknownNodeIsAnErrorWithTheNearest) {
  const Outcome outcome = run_program(with("explain", model(kBlock), "rr"));
  EXPECT_EQ(outcome.status, 1);
  expect_holds(outcome.text, {"gopt: there is no node or value `rr`; the nearest names are `r`"});
}

TEST_F(Explained, BisectionOfWhatAgrees) {
  const Outcome outcome = run_program(with("bisect", model(kBlock), ""));
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  expect_holds(outcome.text, {"agrees with the original", "all as the interpreter has them", "no difference"});
}

TEST_F(Explained, BisectionOfWhatDiffers) {
  const Outcome outcome = run_program(with("bisect", model(kBlock), "--check interpreter --rtol 0 --atol 0"));
  EXPECT_EQ(outcome.status, 1);
  expect_holds(outcome.text, {"differs from the original on ordinary random inputs (interpreter)", "guilty   ",
                              "the optimized model differs from the original"});
  const Outcome json = run_program(with("bisect", model(kBlock), "--check interpreter --rtol 0 --atol 0 --json"));
  EXPECT_EQ(json.status, 1);
  const nlohmann::json found =
      nlohmann::json::parse(json.text.substr(json.text.find('{'), json.text.rfind('}') + 1 - json.text.find('{')));
  EXPECT_EQ(found["differs"], true);
  EXPECT_EQ(found["guilty"].size(), 1u);
}

TEST_F(Explained, BisectionByTime) {
  const Outcome outcome = run_program(with("bisect", model(kBlock), "--by time --runs 3"));
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  expect_holds(outcome.text, {"original ", "(median and quartiles, 3 rounds)", "left out", "kernel of the result"});
}

TEST_F(Explained, ATraceOfTheSearch) {
  const Outcome outcome = run_program(
      with("optimize", model(kBlock), "-o " + folder_.file("y.onnx") + " --trace --report " + folder_.file("r.json")));
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  expect_holds(outcome.text, {"search           from ", "  step 1 ", " -> ", " at ", "rules tried", "together",
                              ", earned back after "});
  const nlohmann::json report = nlohmann::json::parse(read_file(folder_.file("r.json")));
  EXPECT_GT(report["earned_back"]["runs"], 0);
  EXPECT_EQ(report["earned_back"]["by"], "estimated");
  long tried = 0;
  for (const auto& [rule, trials] : report["search"]["trials"].items()) tried += trials["tried"].get<long>();
  EXPECT_GT(tried, 0);
}

TEST_F(Explained, WhatIsNotRewrittenIsNotEarnedBack) {
  const Outcome outcome =
      run_program(with("optimize", model(kBlock), "--search none --report " + folder_.file("r.json")));
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_EQ(outcome.text.find("earned back"), std::string::npos) << outcome.text;
  EXPECT_FALSE(nlohmann::json::parse(read_file(folder_.file("r.json"))).contains("earned_back"));
}

// Estimates are told by plans whatever the search compared.
TEST_F(Explained, ASearchBySumsIsToldByPlans) {
  const std::string path = model(kBlock);
  std::map<std::string, nlohmann::json> cost;
  for (const char* kind : {"plan", "sum"}) {
    const std::string report = folder_.file(std::string(kind) + ".json");
    ASSERT_EQ(run_program(with("optimize", path, std::string("--cost-model ") + kind + " --report " + report)).status,
              0);
    cost[kind] = nlohmann::json::parse(read_file(report))["cost"];
    EXPECT_EQ(cost[kind]["model"], kind);
  }
  EXPECT_EQ(cost["plan"]["before_kernels"], cost["sum"]["before_kernels"]);
}

}  // namespace
}  // namespace gopt
