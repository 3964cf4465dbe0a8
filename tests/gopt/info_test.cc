// gopt info: numbers that a person counted.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "../onnx/model_builder.h"
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

// An If on data is kept whatever is asked; an LSTM is kept whole in a file, and taken apart for code.
TEST(Info, SaysWhatBecomesOfOperatorsThatAreKept) {
  TestFolder folder;
  TestModel model;
  model.opset_import("com.acme", 1);
  model.input("x", {int64_t{3}, int64_t{3}, int64_t{4}});  // of three steps: one node for code, too
  model.output("h", {int64_t{1}, int64_t{3}, int64_t{5}});
  model.output("n", {std::string("n"), int64_t{3}}, kInt64);
  model.output("s", {int64_t{2}});
  model.constant(float_tensor("w", {1, 20, 4}));
  model.constant(float_tensor("r", {1, 20, 5}));
  model.node("LSTM", {"x", "w", "r"}, {"", "h"}).i("hidden_size", 5);
  model.node("Shift", {"x"}, {"s"}).domain("com.acme");
  model.node("NonZero", {"x"}, {"places"});
  model.node("Transpose", {"places"}, {"n"});
  onnx::GraphProto body;
  GraphBuilderProto loop(body);
  loop.input("i", {}, kInt64);
  loop.input("go", {}, kBool);
  loop.input("before", {int64_t{2}});
  loop.output("again", {}, kBool);
  loop.output("after", {int64_t{2}});
  loop.node("Identity", {"go"}, {"again"});
  loop.node("Exp", {"before"}, {"after"});
  model.input("count", {}, kInt64);
  model.input("start", {int64_t{2}});
  model.output("end", {int64_t{2}});
  model.node("Loop", {"count", "", "start"}, {"end"}).graph("body", body);
  model.save(folder.file("m.onnx"));
  const json info = info_of(folder.file("m.onnx"));
  EXPECT_EQ(info["taken_apart"], json::parse(R"({"LSTM": 1})"));
  EXPECT_EQ(info["control_flow"], json::parse(R"({"Loop": 1})"));
  EXPECT_EQ(info["not_defined"], json::parse(R"({"NonZero": 1, "com.acme.Shift": 1})"));
  const std::string printed = run_program("info " + folder.file("m.onnx")).text;
  for (const char* text :
       {"kept whole; taken apart where code is made", "control flow: kept as it is", "no definition: kept as it is"})
    EXPECT_NE(printed.find(text), std::string::npos) << text << printed;
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
