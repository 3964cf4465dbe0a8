// `gopt rules --nearly`: what it prints and writes about a small model.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "program.h"

namespace gopt {
namespace {

// The scale is over rows of the image: no channel's, so that it cannot be folded.
constexpr const char* kScaledByRow = R"(graph scaled
  input x : f32[1,3,8,8]
  constant k = f32[4,3,1,1] {1, -2, 3, 0.5, 1, 2, -1, 1, 4, 0.25, -3, 1}
  constant s = f32[1,8,1] {1, 2, 3, 4, 5, 6, 7, 8}
  c = Conv(x, k)
  y = Mul(c, s)
  output y = y
end
)";

TEST(Nearly, SaysWhichRulesNearlyMatchAndWhy) {
  const TestFolder folder;
  write_model(kScaledByRow, folder.file("f.onnx"));
  const std::string command = "rules --filter conv-channel-scale-fold --nearly " + folder.file("f.onnx");
  const Outcome outcome = run_program(command + " --all --json " + folder.file("r.json"));
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("0 rules match, 0 times; 1 nearly match, 1 times"), std::string::npos) << outcome.text;
  const nlohmann::json report = nlohmann::json::parse(read_file(folder.file("r.json")));
  ASSERT_EQ(report["near_misses"].size(), 1u);
  const nlohmann::json& miss = report["near_misses"][0];
  EXPECT_EQ(miss["rule"], "conv-channel-scale-fold");
  EXPECT_EQ(miss["obstacle"], "extent");
  EXPECT_EQ(miss["expected"], "[g*o,1,1]");
  EXPECT_EQ(report["obstacles"]["extent"], 1);
  EXPECT_TRUE(report["matches"].empty());
  EXPECT_EQ(run_program(command + " --json " + folder.file("r.json")).status, 1);  // it is there
}

TEST(Nearly, FlagsOfItsOwnNeedAModel) {
  EXPECT_EQ(run_program("rules --least 1").status, 1);
  EXPECT_EQ(run_program("rules --nearly /no/such/model.onnx").status, 1);
}

}  // namespace
}  // namespace gopt
