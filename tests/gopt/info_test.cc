// gopt info: numbers that a person counted.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "program.h"

namespace gopt {
namespace {

using nlohmann::json;

json info_of(const std::string& arguments) {
  const Outcome outcome = run_program("info --json " + arguments);
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  return json::parse(outcome.text);
}

TEST(Info, CountsWhatAModelIsMadeOf) {
  TestFolder folder;
  write_model(R"(graph convolution
  input x : f32[1,3,8,8]
  constant k = f32[4,3,1,1] {1, -2, 3, 0.5, 1, 2, -1, 1, 4, 0.25, -3, 1}
  constant b = f32[4] {1, 2, 3, 4}
  constant two = f32[] {2}
  k2 = Mul(k, two)
  c = Conv(x, k2, b)
  r = Relu(c)
  y = Reshape(r) {shape=[4,64]}
  output y = y
end
)",
              folder.file("m.onnx"));
  const json info = info_of(folder.file("m.onnx"));
  EXPECT_EQ(info["inputs"], json::parse(R"([{"name": "x", "element": "f32", "shape": [1, 3, 8, 8]}])"));
  EXPECT_EQ(info["outputs"], json::parse(R"([{"name": "y", "element": "f32", "shape": [4, 64]}])"));
  EXPECT_EQ(info["opsets"], json::parse(R"({"ai.onnx": 17})"));
  EXPECT_EQ(info["symbols"], json::array());
  // The product of weights is computed once, before any run, and is written so.
  EXPECT_EQ(info["operators"], json::parse(R"({"Conv": 1, "Relu": 1, "Reshape": 1})"));
  EXPECT_EQ(info["operators_in_file"], info["operators"]);
  EXPECT_EQ(info["parameters"], 12 + 4);
  EXPECT_EQ(info["parameter_bytes"], 4 * (12 + 4));
  // For each of 256 elements: 3 products and as many additions, one more for the bias.
  EXPECT_EQ(info["operations_of"]["Conv"], 256 * 7);
  EXPECT_EQ(info["operations_of"]["Relu"], 256);
  EXPECT_FALSE(info["operations_of"].contains("Reshape"));
  EXPECT_EQ(info["operations"], 256 * 8);
  // While Relu runs, its input and output of a kilobyte each; x is gone by then.
  EXPECT_EQ(info["peak_bytes"], 2 * 1024);
}

TEST(Info, OpenExtentsAreSaidWithShape) {
  TestFolder folder;
  write_model(R"(graph open
  input x : f32[batch,3]
  y = Exp(x)
  output y = y
end
)",
              folder.file("m.onnx"));
  const json open = info_of(folder.file("m.onnx"));
  EXPECT_EQ(open["symbols"], json::parse(R"(["batch"])"));
  EXPECT_EQ(open["inputs"][0]["shape"], json::parse(R"(["batch", 3])"));
  EXPECT_TRUE(open["operations"].is_null());
  EXPECT_TRUE(open["peak_bytes"].is_null());
  for (const std::string shape : {"batch=5", "x=5x3"}) {
    const json fixed = info_of(folder.file("m.onnx") + " --shape " + shape);
    EXPECT_EQ(fixed["symbols"], json::array()) << shape;
    EXPECT_EQ(fixed["peak_bytes"], 2 * 5 * 3 * 4) << shape;
    EXPECT_GT(fixed["operations"], 0) << shape;
  }
  const Outcome printed = run_program("info " + folder.file("m.onnx"));
  EXPECT_NE(printed.text.find("say them with --shape"), std::string::npos) << printed.text;
}

}  // namespace
}  // namespace gopt
