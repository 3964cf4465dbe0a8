// Models whose operators nobody here knows, as code that calls functions for them: from the file to a program's output.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "../onnx/model_builder.h"
#include "compile_folder.h"
#include "program.h"

namespace gopt {
namespace {

std::string emit_flags(const TestFolder& folder) {
  return "optimize --cost analytic " + folder.file("m.onnx") + " --emit " + folder.file("code");
}

// What the folder's code prints with this main, all warnings being errors.
Outcome run_with(const TestFolder& folder, const std::string& main) {
  write_file(folder.file("main.cc"), main);
  const std::string code = folder.file("code");
  const Outcome compiled = compile_folder(code);
  if (compiled.status != 0) return compiled;
  const Outcome built =
      link_program("-I" + code + " " + folder.file("main.cc") + " " + objects_of(code), folder.file("program"));
  if (built.status != 0) return built;
  return run_command(folder.file("program") + " " + code + "/weights.bin");
}

// y = Relu(Shift(Exp(x)) + 1), z = the second result.
void write_custom(const TestFolder& folder) {
  TestModel model;
  model.opset_import("com.acme", 1);
  model.input("x", {int64_t{2}, int64_t{3}});
  model.output("y", {int64_t{2}, int64_t{3}});
  model.output("z", {int64_t{2}}, kInt64);
  model.value("s", {int64_t{2}, int64_t{3}});
  model.constant(float_tensor("one", {}, {1}));
  model.node("Exp", {"x"}, {"a"});
  model.node("Shift", {"a", "", "one"}, {"s", "z"})
      .domain("com.acme")
      .name("shifted")
      .f("alpha", 0.1F)
      .i("least", INT64_MIN)
      .s("mode", std::string("a\"\\\n\0?\?/", 8))
      .ints("axes", {})
      .floats("by", {-1.5F, 3e-30F})
      .tensor("table", float_tensor("", {2}, {7, 8}));
  model.node("Add", {"s", "one"}, {"b"});
  model.node("Relu", {"b"}, {"y"});
  model.save(folder.file("m.onnx"));
}

constexpr const char* kShift = R"(
#include <cmath>
#include <cstdio>
#include <cstring>
#include "model.h"

const gopt_attribute* find(const gopt_call* call, const char* name) {
  for (int i = 0; i < call->attribute_count; i++)
    if (!std::strcmp(call->attributes[i].name, name)) return &call->attributes[i];
  return nullptr;
}

int shift(const gopt_call* call, void*) {
  std::printf("%s %s %s, %d attributes, %d inputs\n", call->domain, call->op_type, call->node, call->attribute_count, call->input_count);
  const gopt_attribute *alpha = find(call, "alpha"), *least = find(call, "least"), *mode = find(call, "mode"),
                       *axes = find(call, "axes"), *by = find(call, "by"), *table = find(call, "table");
  if (alpha->kind != 1 || alpha->count != 1 || alpha->floats[0] != 0.1f) return 2;
  if (least->kind != 2 || least->ints[0] != INT64_MIN) return 3;
  if (mode->kind != 3 || mode->lengths[0] != 8 || std::memcmp(mode->strings[0], "a\"\\\n\0?\?/", 9)) return 4;
  if (axes->kind != 7 || axes->count != 0) return 5;
  if (by->kind != 6 || by->count != 2 || by->floats[0] != -1.5f || by->floats[1] != 3e-30f) return 6;
  const float* entries = static_cast<const float*>(table->tensor->data);
  if (table->kind != 4 || table->tensor->dims[0] != 2 || entries[0] != 7 || entries[1] != 8) return 7;
  if (call->inputs[1].data || *static_cast<const float*>(call->inputs[2].data) != 1 || call->inputs[2].rank != 0) return 8;
  if (call->outputs[1].element != 7 || call->outputs[1].dims[0] != 2) return 9;
  for (int i = 0; i < 6; i++)
    static_cast<float*>(call->outputs[0].data)[i] = static_cast<const float*>(call->inputs[0].data)[i] + by->floats[0] * static_cast<float>(i);
  for (int i = 0; i < 2; i++) static_cast<int64_t*>(call->outputs[1].data)[i] = 40 + i;
  return 0;
}

int main(int, char** argv) {
  char error[200] = "";
  gopt_model* model = gopt_create(argv[1], 1, error, sizeof error);
  if (!model) return std::puts(error), 1;
  const float x[6] = {0, 0.5f, 1, 1.5f, 2, 2.5f};
  float y[6];
  int64_t z[2];
  const void* inputs[] = {x};
  void* outputs[] = {y, z};
  if (gopt_register(model, "com.acme::Shift", shift, nullptr) != 0) return std::puts(gopt_error(model)), 1;
  if (gopt_run(model, inputs, outputs, nullptr) != 0) return std::puts(gopt_error(model)), 1;
  bool right = z[0] == 40 && z[1] == 41;
  for (int i = 0; i < 6; i++)
    right = right && std::fabs(y[i] - std::fmax(std::exp(x[i]) - 1.5f * static_cast<float>(i) + 1, 0.0f)) < 1e-5f;
  std::puts(right ? "right" : "wrong");
  gopt_destroy(model);
}
)";

TEST(Register, ACustomOperatorIsAFunctionOfTheCallers) {
  TestFolder folder;
  write_custom(folder);
  const Outcome made = run_program(emit_flags(folder) + " --report " + folder.file("r.json"));
  ASSERT_EQ(made.status, 0) << made.text;
  EXPECT_NE(made.text.find("to register      com.acme::Shift (node shifted): it has no definition here"),
            std::string::npos)
      << made.text;
  EXPECT_NE(made.text.find("\ncode             PASSED"), std::string::npos) << made.text;
  EXPECT_NE(made.text.find("3 of 4 operators (75 %), none of Shift"), std::string::npos) << made.text;
  const auto report = nlohmann::json::parse(read_file(folder.file("r.json")));
  EXPECT_EQ(report["to_register"], nlohmann::json::parse(R"([{"operator": "com.acme::Shift", "nodes": ["shifted"]}])"));
  const Outcome ran = run_with(folder, kShift);
  EXPECT_EQ(ran.text, "com.acme Shift shifted, 6 attributes, 3 inputs\nright\n");
  const Outcome alone = run_program("run " + folder.file("code"));
  EXPECT_EQ(alone.status, 1);
  EXPECT_NE(alone.text.find("node `shifted` applies an operator that has no function; gopt_register one before the "
                            "first run for each of: com.acme::Shift"),
            std::string::npos)
      << alone.text;
}

constexpr const char* kRamp = R"(
#include <cstdio>
#include "model.h"

int ramp(const gopt_call* call, void*) {
  for (size_t i = 0; i < call->outputs[0].size_bytes / sizeof(float); i++)
    static_cast<float*>(call->outputs[0].data)[i] = static_cast<float>(i);
  return 0;
}

int main(int, char** argv) {
  char error[200] = "";
  gopt_model* model = gopt_create(argv[1], 1, error, sizeof error);
  if (!model) return std::puts(error), 1;
  const float x[4] = {10, 20, 30, 40};
  float y[4];
  const void* inputs[] = {x};
  void* outputs[] = {y};
  for (int i = 0; i < gopt_operator_count(); i++) std::puts(gopt_operator(i));
  if (gopt_register(model, "RandomNormalLike", ramp, nullptr) != 0) return std::puts(gopt_error(model)), 1;
  if (gopt_run(model, inputs, outputs, nullptr) != 0) return std::puts(gopt_error(model)), 1;
  std::printf("%g %g %g %g\n", y[0], y[1], y[2], y[3]);
  gopt_destroy(model);
}
)";

// Its shape is inferred, not declared.
TEST(Register, AnOperatorOfOnnxWithoutDefinitionIsOneToo) {
  TestFolder folder;
  TestModel model;
  model.input("x", {int64_t{4}});
  model.output("y", {int64_t{4}});
  model.node("RandomNormalLike", {"x"}, {"r"}).name("noise");
  model.node("Add", {"x", "r"}, {"y"});
  model.save(folder.file("m.onnx"));
  const Outcome made = run_program(emit_flags(folder));
  ASSERT_EQ(made.status, 0) << made.text;
  EXPECT_NE(made.text.find("to register      RandomNormalLike (node noise)"), std::string::npos) << made.text;
  EXPECT_EQ(run_with(folder, kRamp).text, "RandomNormalLike\n10 21 32 43\n");
  const Outcome quiet = run_program(emit_flags(folder) + " --quiet --force");
  EXPECT_EQ(quiet.status, 0);
  EXPECT_TRUE(quiet.text.starts_with("gopt: warning: to register: RandomNormalLike (node noise): ")) << quiet.text;
}

// The GPU's code calls nothing of others, so that the step is the caller's; what nobody can be given is said with what
// would mend it.
TEST(Register, WhatCannotBeCalledSaysWhy) {
  TestFolder folder;
  write_custom(folder);
  const Outcome cuda = run_program(emit_flags(folder) + " --target cuda");
  EXPECT_EQ(cuda.status, 0) << cuda.text;
  EXPECT_NE(cuda.text.find("1 step is yours"), std::string::npos) << cuda.text;
  EXPECT_NE(
      cuda.text.find("node `shifted` (com.acme::Shift) has no definition here, so no code can be made for it; the "
                     "optimized ONNX keeps it, and code for --target cpu can call a function of yours for it"),
      std::string::npos)
      << cuda.text;
  TestModel model;
  model.opset_import("com.acme", 1);
  model.input("x", {int64_t{4}});
  model.output("y", {std::string("some")});
  model.node("Pick", {"x"}, {"p"}).domain("com.acme");
  model.node("Neg", {"p"}, {"y"});
  model.save(folder.file("m.onnx"));
  const Outcome none = run_program(emit_flags(folder) + " --force");
  EXPECT_EQ(none.status, 0);
  EXPECT_NE(none.text.find("0 of code, 1 step is yours"), std::string::npos) << none.text;
  EXPECT_NE(
      none.text.find("node `p` (com.acme::Pick) has no definition here, and no function can be called for it: its "
                     "output `p` has an unknown shape: that depends on data, or the model does not declare it"),
      std::string::npos)
      << none.text;
}

}  // namespace
}  // namespace gopt
