// `--mutate`: a rule that no shipped file has is found for a model, proved, applied, and written so that `rulegen
// verify` accepts it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gopt/rule.h"
#include "program.h"

namespace gopt {
namespace {

// Maxima of maxima: one window of both.
constexpr const char* kPools = R"(graph pools
  input x : f32[1,8,32,32]
  a = MaxPool(x) {kernel_shape=[2,2], strides=[2,2]}
  b = MaxPool(a) {kernel_shape=[2,2], strides=[2,2]}
  output y = b
end
)";

TEST(Mutate, ARuleOfTheModelIsFoundProvedAndApplied) {
  const TestFolder folder;
  write_model(kPools, folder.file("f.onnx"));
  const std::string command = "optimize --cost analytic --target cpu " + folder.file("f.onnx") + " -o " +
                              folder.file("y.onnx") + " --force --report " + folder.file("r.json");
  ASSERT_EQ(run_program(command).status, 0);
  const auto without = nlohmann::json::parse(read_file(folder.file("r.json")));
  EXPECT_TRUE(without["applied"].empty()) << "a shipped rule does it";
  EXPECT_FALSE(without.contains("mutants"));

  const Outcome outcome = run_program(command + " --mutate 10s --mutate-rules " + folder.file("found.rules"));
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("mutants          1 subgraphs"), std::string::npos) << outcome.text;
  const auto report = nlohmann::json::parse(read_file(folder.file("r.json")));
  ASSERT_EQ(report["applied"].size(), 1u);
  const std::string rule = report["applied"][0]["rule"];
  EXPECT_EQ(report["mutants"]["applied"], nlohmann::json::array({rule}));
  EXPECT_TRUE(report["rules"].contains(rule));
  EXPECT_LE(report["mutants"]["seconds"].get<double>(), 15);

  const auto database = load_rules(folder.file("found.rules"));
  ASSERT_TRUE(database.ok()) << database.error().message;
  EXPECT_TRUE(database->warnings.empty());
  EXPECT_EQ(database->rules.size(), report["mutants"]["rules"].size());
  const Outcome verified = run_command(std::string(RULEGEN_PROGRAM) + " verify " + folder.file("found.rules"));
  EXPECT_EQ(verified.status, 0) << verified.text;
  const Outcome compared = run_program("compare " + folder.file("f.onnx") + " " + folder.file("y.onnx") +
                                       " --engine interpreter --seed 5 --repeats 2");
  EXPECT_EQ(compared.status, 0) << compared.text;

  // What was found for one model serves others as any rules file does.
  const Outcome again = run_program(command + " --rules " + folder.file("found.rules"));
  ASSERT_EQ(again.status, 0) << again.text;
  EXPECT_EQ(nlohmann::json::parse(read_file(folder.file("r.json")))["applied"][0]["rule"], rule);
}

TEST(Mutate, WhatContradictsItselfIsRefused) {
  const TestFolder folder;
  write_model(kPools, folder.file("f.onnx"));
  const std::string command = "optimize " + folder.file("f.onnx") + " --dry-run --mutate";
  for (const auto& [arguments, word] : {std::pair{"-rules x.rules", "--mutate 60s"},
                                        {" soon", "--mutate soon"},
                                        {" 5s --enable relu-idempotent", "--enable"}}) {
    const Outcome outcome = run_program(command + arguments);
    EXPECT_EQ(outcome.status, 1) << arguments;
    EXPECT_NE(outcome.text.find(word), std::string::npos) << outcome.text;
  }
}

}  // namespace
}  // namespace gopt
