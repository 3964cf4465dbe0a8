// Operators without definition as calls of functions that the caller registers: between kernels of any layout, in
// other people's programs, at any size.
#include <gtest/gtest.h>

#include <fstream>

#include "batch.h"
#include "compile_folder.h"
#include "gopt/text.h"
#include "run_command.h"

namespace gopt {
namespace {

TensorType floats(Shape shape) { return {ElementType::Float32, std::move(shape)}; }

Value apply(GraphBuilder& builder, OpKind op, std::vector<Value> inputs, Attributes attributes = {}) {
  auto made = builder.apply(op, std::move(inputs), std::move(attributes));
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  return *made;
}

// The middle of a model: custom::Abs, or what that means.
Value middle(GraphBuilder& builder, const Value& x, bool is_known, const std::string& name) {
  if (is_known) return apply(builder, OpKind::Abs, {x});
  const auto op = std::make_shared<OpaqueOp>(OpaqueOp{"custom", "Abs", "", {}});
  return {builder.opaque(op, {x}, {x.type()}, name), 0};
}

Target calling_target() {
  Target target{TargetKind::Cpu, 2};
  target.calls_functions = true;
  return target;
}

// What custom::Abs does.
Result<std::vector<Tensor>> absolute(const OperatorCall& call) {
  EXPECT_EQ(call.op, "custom::Abs");
  std::vector<double> values = call.inputs.at(0)->to_doubles();
  for (double& value : values) value = std::abs(value);
  return std::vector<Tensor>{Tensor::from_values<double>(ElementType::Float32, call.inputs[0]->dims(), values)};
}

Result<LoadedModel> load(const Graph& graph, const Target& target, bool plain, const std::string& folder) {
  LayoutCosts costs(plain);
  GOPT_ASSIGN_OR_RETURN(const Plan plan, make_plan(graph, target, costs));
  GOPT_ASSIGN_OR_RETURN(const EmittedCode code, emit(plan));
  const std::string path = scratch_folder(folder);
  GOPT_RETURN_IF_ERROR(write_emitted(code, path, true));
  return LoadedModel::build_and_load(path, 2);
}

Tensor drawn(const std::vector<int64_t>& dims) {
  std::vector<double> values(static_cast<size_t>(element_count(dims)));
  for (size_t i = 0; i < values.size(); i++) values[i] = static_cast<double>((i * 37) % 101) / 50 - 1;
  return Tensor::from_values<double>(ElementType::Float32, dims, values);
}

// Convolutions around two calls, of which one gives an output of the model and both read what is stored in blocks.
Graph convolutions(bool is_known) {
  GraphBuilder builder;
  const Value x = builder.input("x", floats({Index(1), Index(3), Index(9), Index(9)}));
  const Value w = builder.constant(drawn({32, 3, 3, 3})), u = builder.constant(drawn({32, 32, 1, 1}));
  const Value a = apply(builder, OpKind::Conv, {x, w});
  const Value b = middle(builder, a, is_known, "first");
  const Value c = apply(builder, OpKind::Conv, {b, u});
  const Value d = middle(builder, apply(builder, OpKind::Sub, {c, b}), is_known, "second");
  builder.output("y", apply(builder, OpKind::Tanh, {apply(builder, OpKind::Conv, {d, u})}));
  builder.output("d", d);
  return builder.build();
}

TEST(External, KernelsAroundACallAreLaidOutAsUsual) {
  for (const bool plain : {false, true}) {
    auto loaded = load(convolutions(false), calling_target(), plain, plain ? "external_plain" : "external_blocked");
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    LoadedModel model = *loaded;
    EXPECT_EQ(model.operators(), std::vector<std::string>{"custom::Abs"});
    const Tensor x = drawn({1, 3, 9, 9});
    const auto early = model.run({x});
    ASSERT_FALSE(early.ok());
    EXPECT_EQ(early.error().message,
              "node `first` applies an operator that has no function; gopt_register one before the first run for each "
              "of: custom::Abs");
    ASSERT_TRUE(model.register_function(absolute).ok());
    const auto made = model.run({x});
    ASSERT_TRUE(made.ok()) << made.error().message;
    const auto expected = interpret(convolutions(true), {{"x", x}});
    ASSERT_TRUE(expected.ok()) << expected.error().message;
    for (size_t k = 0; k < 2; k++) EXPECT_EQ(difference((*made)[k], (*expected)[k], Precision::Fp32), "") << k;
  }
}

// In bf16, what a function takes and gives stays of the graph's types.
TEST(External, AFunctionIsGivenFloatsWherePrecisionIsOf16Bits) {
  Target target = calling_target();
  target.precision = Precision::Bf16;
  auto loaded = load(convolutions(false), target, false, "external_bf16");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  LoadedModel model = *loaded;
  ASSERT_TRUE(model.register_function(absolute).ok());
  const Tensor x = drawn({1, 3, 9, 9});
  const auto made = model.run({x});
  ASSERT_TRUE(made.ok()) << made.error().message;
  const auto expected = interpret(convolutions(true), {{"x", x}});
  ASSERT_TRUE(expected.ok());
  EXPECT_EQ(difference((*made)[1], (*expected)[1], Precision::Bf16), "");
}

Graph open_model(bool is_known) {
  GraphBuilder builder;
  const Value x = builder.input("x", floats({symbol("n"), Index(4)}));
  const Value a = apply(builder, OpKind::Softmax, {x}, {{"axis", Index(1)}});
  builder.output("y", apply(builder, OpKind::Exp, {middle(builder, apply(builder, OpKind::Neg, {a}), is_known, "m")}));
  return builder.build();
}

TEST(External, ACallIsMadeAtAnySize) {
  Target target = calling_target();
  target.open = {{symbol_atom("n"), 8}};
  auto loaded = load(open_model(false), target, true, "external_open");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  LoadedModel model = *loaded;
  ASSERT_TRUE(model.register_function(absolute).ok());
  for (const int64_t n : {1, 5, 70}) {
    const Tensor x = drawn({n, 4});
    const auto made = model.run({x}), expected = interpret(open_model(true), {{"x", x}});
    ASSERT_TRUE(made.ok()) << made.error().message;
    ASSERT_TRUE(expected.ok()) << expected.error().message;
    EXPECT_EQ(difference((*made)[0], (*expected)[0], Precision::Fp32), "") << n;
  }
}

TEST(External, AFunctionThatFailsFailsTheRun) {
  auto loaded = load(
      open_model(false),
      [] {
        Target target = calling_target();
        target.open = {{symbol_atom("n"), 8}};
        return target;
      }(),
      true, "external_open");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  LoadedModel model = *loaded;
  ASSERT_TRUE(model.register_function([](const OperatorCall&) { return Error{"out of paper"}; }).ok());
  const auto made = model.run({drawn({2, 4})});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message, "the function of operator custom::Abs failed at node `m` with 1: out of paper");
}

// Two inputs, one left out; two outputs, one that nobody reads and whose shape nobody knows.
constexpr const char* kProgram = R"(
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>
#include "called/model.h"

struct Scale { float by; int calls; };

int scale(const net_call* call, void* user) {
  Scale* own = static_cast<Scale*>(user);
  own->calls++;
  if (call->input_count != 2 || call->inputs[1].element != 0 || call->inputs[1].data) return 2;
  if (call->output_count != 2 || call->outputs[1].data || call->attribute_count != 0) return 3;
  if (std::strcmp(call->domain, "custom") || std::strcmp(call->op_type, "Scale")) return 4;
  if (call->outputs[0].rank != 2 || call->outputs[0].dims[1] != 300 || call->outputs[0].size_bytes != 64 * 300 * 4) return 5;
  const float* x = static_cast<const float*>(call->inputs[0].data);
  float* y = static_cast<float*>(call->outputs[0].data);
  for (int i = 0; i < 64 * 300; i++) y[i] = own->by * x[i];
  return 0;
}

// Relu(Scale(x + 1)).
bool is_right(net_model* model, float by) {
  std::vector<float> x(64 * 300), y(x.size());
  for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>(i % 7) - 3;
  const void* inputs[] = {x.data()};
  void* outputs[] = {y.data()};
  if (net_run(model, inputs, outputs, nullptr) != 0) return std::puts(net_error(model)), false;
  for (size_t i = 0; i < x.size(); i++) {
    const float scaled = by * (x[i] + 1);
    if (y[i] != (scaled > 0 ? scaled : 0)) return false;
  }
  return true;
}

int main() {
  char error[200] = "";
  net_model* one = net_create("called/weights.bin", 1, error, sizeof error);
  net_model* two = net_create("called/weights.bin", 1, error, sizeof error);
  if (!one || !two) return std::puts(error), 1;
  is_right(one, 1);
  std::printf("%d\n", net_register(one, "custom::Scales", scale, nullptr));
  std::puts(net_error(one));
  Scale twice{2, 0}, thrice{3, 0};
  if (net_operator_count() != 1 || std::strcmp(net_operator(0), "custom::Scale") || net_operator(1)) return 1;
  if (net_register(one, net_operator(0), scale, &twice) != 0) return 1;
  is_right(two, 1);
  if (net_register(two, net_operator(0), scale, &thrice) != 0) return 1;
  bool right[2] = {true, true};
  const auto often = [&](net_model* model, float by, bool& all) {
    for (int run = 0; run < 100; run++) all = is_right(model, by) && all;
  };
  std::thread first(often, one, 2.0f, std::ref(right[0])), second(often, two, 3.0f, std::ref(right[1]));
  first.join();
  second.join();
  std::printf("%d %d, %d and %d calls\n", right[0], right[1], twice.calls, thrice.calls);
  net_destroy(one);
  net_destroy(two);
}
)";

TEST(External, TwoModelsInTwoThreadsHaveFunctionsOfTheirOwn) {
  GraphBuilder builder;
  const Value x = builder.input("x", floats({Index(64), Index(300)}));
  const Value one = builder.constant(Tensor::from_values<double>(ElementType::Float32, {}, {1.0}));
  const auto op = std::make_shared<OpaqueOp>(OpaqueOp{"custom", "Scale", "", {}});
  const NodePtr scale = builder.opaque(op, {apply(builder, OpKind::Add, {x, one}), Value{}},
                                       {floats({Index(64), Index(300)}), {}}, "scale \"it\"");
  builder.output("y", apply(builder, OpKind::Relu, {{scale, 0}}));
  LayoutCosts costs(true);
  const auto plan = make_plan(builder.build(), calling_target(), costs);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const auto code = emit(*plan, "net");
  ASSERT_TRUE(code.ok()) << code.error().message;
  const std::string root = scratch_folder("external_program");
  ASSERT_TRUE(write_emitted(*code, root + "/called", true).ok());
  std::ofstream(root + "/main.cc") << kProgram;
  const std::string called = root + "/called";
  const Outcome compiled = compile_folder(called);
  ASSERT_EQ(compiled.status, 0) << compiled.text;
  const Outcome built = link_program("-I" + root + " " + root + "/main.cc " + objects_of(called), root + "/program");
  ASSERT_EQ(built.status, 0) << built.text;
  const std::string missing =
      "node `scale \"it\"` applies an operator that has no function; gopt_register one before the first run for each "
      "of: custom::Scale\n";
  EXPECT_EQ(run_command("cd " + root + " && ./program").text,
            missing + "1\nthe model calls no operator custom::Scales; it calls custom::Scale\n" + missing +
                "1 1, 100 and 100 calls\n");
  const Outcome linked = link_program(called + "/*.o", root + "/example");
  ASSERT_EQ(linked.status, 0) << linked.text;
  const Outcome example = run_command("cd " + root + " && ./example called/weights.bin 1");
  EXPECT_EQ(example.status, 0) << example.text;
  EXPECT_NE(example.text.find("custom::Scale: zeros, in the place of a function of yours\n"), std::string::npos)
      << example.text;
}

}  // namespace
}  // namespace gopt
