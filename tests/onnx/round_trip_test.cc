// Reading, writing and reading again gives the same graph, and the same numbers: over opsets 7 to 21, IR 3 to 10, and
// all that a model may hold beside plain operators.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <random>

#include "gopt/interpreter.h"
#include "gopt/onnx.h"
#include "model_builder.h"
#include "random_tensor.h"
#include "run_command.h"
#include "test_folder.h"
#include "text_files.h"

namespace gopt {
namespace {

struct Case {
  std::string name;
  int opset, ir;
  std::function<void(TestModel&)> fill;
  bool opaque = false;  // holds nodes without a definition: only what is written is compared
};
void PrintTo(const Case& row, std::ostream* out) { *out << row.name; }

// ---- models ----

void fill_opset_7(TestModel& m) {
  m.input("x", {1, 3, 6, 6});
  m.constant(float_tensor("w", {4, 3, 3, 3}));
  m.constant(float_tensor("p", {4}));
  m.constant(int_tensor("shape", {1, -1}));
  m.constant(float_tensor("gw", {5, 16}));
  m.constant(float_tensor("gb", {5}));
  m.node("Conv", {"x", "w"}, {"c"}).ints("pads", {1, 1, 1, 1});
  m.node("BatchNormalization", {"c", "p", "p", "p", "p"}, {"n"});
  m.node("Relu", {"n"}, {"r"});
  m.node("Dropout", {"r"}, {"d"});
  m.node("MaxPool", {"d"}, {"mp"}).ints("kernel_shape", {2, 2}).ints("strides", {2, 2});
  m.node("Slice", {"mp"}, {"sl"}).ints("starts", {0}).ints("ends", {2}).ints("axes", {2});
  m.node("Pad", {"sl"}, {"pd"}).ints("pads", {0, 0, 0, 0, 0, 0, 0, -1}).f("value", 0.5f);
  m.node("Clip", {"pd"}, {"cl"}).f("min", 0.0f).f("max", 0.9f);
  m.node("Unsqueeze", {"cl"}, {"us"}).ints("axes", {0});
  m.node("Squeeze", {"us"}, {"sq"}).ints("axes", {0});
  m.node("Reshape", {"sq", "shape"}, {"rs"});
  m.node("Gemm", {"rs", "gw", "gb"}, {"g"}).i("transB", 1);
  m.node("Softmax", {"g"}, {"y"});
  m.node("ReduceSum", {"g"}, {"z"}).ints("axes", {1}).i("keepdims", 0);
  m.output("y", {1, 5});
  m.output("z", {1});
}

void fill_elementwise(TestModel& m) {
  m.input("x", {2, 3});
  m.input("y", {3});
  m.constant(int_tensor("shape", {4, 1, 1}));
  m.node("Max", {"x", "y"}, {"a"});
  m.node("Sum", {"x", "y", "a"}, {"b"});
  m.node("Expand", {"b", "shape"}, {"c"});
  m.node("Mean", {"c", "x"}, {"z"});
  m.output("z", {4, 2, 3});
}

void fill_where(TestModel& m) {
  m.input("x", {2, 3});
  m.input("test", {2, 3}, kBool);
  m.constant(int_tensor("shape", {2, 3}));
  m.node("ConstantOfShape", {"shape"}, {"c"}).tensor("value", float_tensor("", {1}, {2.5f}));
  m.node("Where", {"test", "x", "c"}, {"w"});
  m.node("Erf", {"w"}, {"e"});
  m.node("Sign", {"e"}, {"y"});
  m.output("y", {2, 3});
}

void fill_slice_inputs(TestModel& m) {
  m.input("x", {4, 6});
  m.constant(int_tensor("starts", {-1, 0}));
  m.constant(int_tensor("ends", {-100, 5}));
  m.constant(int_tensor("axes", {0, 1}));
  m.constant(int_tensor("steps", {-2, 2}));
  m.node("Slice", {"x", "starts", "ends", "axes", "steps"}, {"s"});
  m.node("Mod", {"s", "s"}, {"y"}).i("fmod", 1);
  m.output("y", {2, 3});
}

void fill_clip_inputs(TestModel& m) {
  m.input("x", {3, 4});
  m.input("low", {});
  m.constant(float_tensor("high", {}, {0.7f}));
  m.constant(int_tensor("pads", {1, 0, 1, 1}));
  m.constant(float_tensor("fill", {}, {9.0f}));
  m.node("Clip", {"x", "low", "high"}, {"a"});
  m.node("Clip", {"a", "", "high"}, {"b"});
  m.node("Pad", {"b", "pads", "fill"}, {"c"});
  m.node("Gemm", {"c", "c"}, {"y"}).i("transB", 1).f("alpha", 0.5f);
  m.output("y", {5, 5});
}

void fill_old_softmax(TestModel& m) {
  m.input("x", {"n", 3, 4});
  m.node("Softmax", {"x"}, {"a"});
  m.node("LogSoftmax", {"x"}, {"b"}).i("axis", 2);
  m.node("Softmax", {"b"}, {"c"}).i("axis", 0);
  m.node("GreaterOrEqual", {"a", "c"}, {"g"});
  m.output("c", {"n", 3, 4});
  m.output("g", {"n", 3, 4}, kBool);
}

void fill_axes_inputs(TestModel& m) {
  m.input("x", {2, 3, 4});
  m.constant(int_tensor("axes", {1}));
  m.constant(int_tensor("parts", {1, 3}));
  m.node("ReduceSum", {"x", "axes"}, {"a"}).i("keepdims", 1);
  m.node("Squeeze", {"a", "axes"}, {"b"});
  m.node("Split", {"b", "parts"}, {"c", "d"}).i("axis", 1);
  m.node("Unsqueeze", {"d", "axes"}, {"e"});
  m.node("Softmax", {"e"}, {"y"});
  m.output("y", {2, 1, 3});
  m.output("c", {2, 1});
}

void fill_zero_size(TestModel& m) {
  m.input("x", {0, 3});
  m.constant(int_tensor("shape", {3, 0}));
  m.constant(int_tensor("k", {1}, true));
  m.node("Reshape", {"x", "shape"}, {"r"}).i("allowzero", 1);
  m.node("Transpose", {"r"}, {"t"}).ints("perm", {1, 0});
  m.node("Concat", {"t", "x"}, {"c"}).i("axis", 0);
  m.node("Trilu", {"c", "k"}, {"u"});
  m.node("HardSwish", {"u"}, {"y"});
  m.output("y", {0, 3});
}

void fill_shape_arithmetic(TestModel& m) {
  m.input("x", {"batch", "length", 8});
  m.constant(int_tensor("zero", {0}, true));
  m.constant(int_tensor("one", {1}, true));
  m.constant(int_tensor("first", {0}));
  m.constant(int_tensor("heads", {2, 4}));
  m.constant(float_tensor("row", {1, 1, 1, 4}));
  m.node("Shape", {"x"}, {"s"});
  m.node("Gather", {"s", "zero"}, {"b"});
  m.node("Gather", {"s", "one"}, {"t"});
  m.node("Unsqueeze", {"b", "first"}, {"b1"});
  m.node("Unsqueeze", {"t", "first"}, {"t1"});
  m.node("Concat", {"b1", "t1", "heads"}, {"shape"}).i("axis", 0);
  m.node("Reshape", {"x", "shape"}, {"r"});
  m.node("Expand", {"row", "shape"}, {"e"});
  m.node("Add", {"r", "e"}, {"y"});
  m.output("y", {"batch", "length", 2, 4});
}

void fill_layer_normalization(TestModel& m) {
  m.input("x", {2, 3, 4});
  m.constant(float_tensor("scale", {4}));
  m.node("LayerNormalization", {"x", "scale", "scale"}, {"n", "mean", ""}).i("axis", -1);
  m.node("Celu", {"n"}, {"y"}).f("alpha", 2.0f);
  m.output("y", {2, 3, 4});
  m.output("mean", {2, 3, 1});
}

void fill_opset_18(TestModel& m) {
  m.input("x", {2, 5});
  m.constant(int_tensor("axes", {1}));
  m.constant(int_tensor("pads", {1, 1}));
  m.node("ReduceMean", {"x", "axes"}, {"a"}).i("keepdims", 0);
  m.node("Split", {"x"}, {"s", "t"}).i("axis", 1).i("num_outputs", 2);
  m.node("ReduceMax", {"s"}, {"b"}).i("noop_with_empty_axes", 1);
  m.node("Pad", {"t", "pads", "", "axes"}, {"p"}).s("mode", "reflect");
  m.node("Mish", {"p"}, {"y"});
  m.output("y", {2, 4});
  m.output("a", {2});
  m.output("b", {2, 3});
}

void fill_opset_19(TestModel& m) {
  m.input("x", {1, 2, 7, 7});
  m.node("AveragePool", {"x"}, {"a"}).ints("kernel_shape", {2, 2}).ints("dilations", {2, 2}).i("ceil_mode", 1);
  m.node("Cast", {"a"}, {"h"}).i("to", onnx::TensorProto::FLOAT16).i("saturate", 1);
  m.node("Cast", {"h"}, {"y"}).i("to", kFloat);
  m.output("y", {1, 2, 5, 5});
}

void fill_gelu(TestModel& m) {
  m.input("x", {2, 5});
  m.node("Gelu", {"x"}, {"a"}).s("approximate", "tanh");
  m.node("Gelu", {"a"}, {"y"});
  m.output("y", {2, 5});
}

void fill_aliases(TestModel& m) {
  m.input("x", {2});
  m.input("unused", {7});
  m.constant(float_tensor("w", {3}));
  m.constant(float_tensor("v", {4}));
  m.node("Relu", {"x"}, {"a"});
  m.node("Identity", {"a"}, {"b"});
  m.node("Identity", {"x"}, {"c"});
  m.node("Sqrt", {"v"}, {"d"});
  m.output("a", {2});
  m.output("b", {2});
  m.output("c", {2});
  m.output("d", {4});
  m.output("w", {3});
}

void fill_constants(TestModel& m) {
  m.input("x", {2, 3});
  m.node("Constant", {}, {"a"}).f("value_float", 1.5f);
  m.node("Constant", {}, {"b"}).ints("value_ints", {3, 2});
  m.node("Constant", {}, {"c"}).floats("value_floats", {1, 2, 3});
  m.node("Add", {"x", "a"}, {"d"});
  m.node("Mul", {"d", "c"}, {"e"});
  m.node("Reshape", {"e", "b"}, {"y"});
  m.output("y", {3, 2});
}

onnx::GraphProto branch(const std::string& op, const Names& inputs, const std::string& output) {
  onnx::GraphProto graph;
  graph.set_name(op);
  GraphBuilderProto builder(graph);
  builder.node(op, inputs, {output});
  builder.output(output, {2, 3});
  return graph;
}

void fill_if(TestModel& m) {
  m.input("x", {2, 3});
  m.input("test", {}, kBool);
  m.constant(float_tensor("w", {3}));
  m.node("Relu", {"x"}, {"a"});
  m.node("If", {"test"}, {"o"})
      .graph("then_branch", branch("Add", {"a", "w"}, "p"))
      .graph("else_branch", branch("Sub", {"a", "x"}, "q"));
  m.node("Add", {"o", "a"}, {"y"});
  m.output("y", {2, 3});
}

void fill_constant_if(TestModel& m) {
  m.input("x", {2, 3});
  m.constant(float_tensor("w", {3}));
  m.constant(int_tensor("zero", {0}, true));
  m.constant(int_tensor("two", {2}, true));
  m.node("Shape", {"x"}, {"s"});
  m.node("Gather", {"s", "zero"}, {"n"});
  m.node("Equal", {"n", "two"}, {"test"});
  m.node("If", {"test"}, {"y"})
      .graph("then_branch", branch("Mul", {"x", "w"}, "p"))
      .graph("else_branch", branch("Sub", {"x", "w"}, "q"));
  m.output("y", {2, 3});
}

void fill_loop(TestModel& m) {
  m.input("x", {2, 3});
  m.constant(int_tensor("count", {4}, true));
  onnx::GraphProto inner;
  inner.set_name("body");
  GraphBuilderProto body(inner);
  body.input("i", {}, kInt64);
  body.input("go_in", {}, kBool);
  body.input("state", {2, 3});
  body.node("Greater", {"i", "count"}, {"late"});
  body.node("If", {"late"}, {"next"})
      .graph("then_branch", branch("Add", {"state", "a"}, "p"))
      .graph("else_branch", branch("Sub", {"state", "a"}, "q"));
  body.node("Identity", {"go_in"}, {"go_out"});
  body.output("go_out", {}, kBool);
  body.output("next", {2, 3});
  m.node("Relu", {"x"}, {"a"});
  m.node("Loop", {"count", "", "x"}, {"l"}).graph("body", inner);
  m.node("Relu", {"l"}, {"y"});
  m.output("y", {2, 3});
}

void fill_functions(TestModel& m) {
  m.opset_import("custom", 1);
  onnx::FunctionProto& act = *m.proto.add_functions();
  act.set_domain("custom");
  act.set_name("Act");
  act.add_input("v");
  act.add_output("u");
  act.add_attribute("slope");
  add_node(*act.add_node(), "LeakyRelu", {"v"}, {"l"});
  auto& alpha = *act.mutable_node(0)->add_attribute();
  alpha.set_name("alpha");
  alpha.set_type(onnx::AttributeProto::FLOAT);
  alpha.set_ref_attr_name("slope");
  add_node(*act.add_node(), "Tanh", {"l"}, {"u"});
  auto& import = *act.add_opset_import();
  import.set_domain("");
  import.set_version(17);
  m.input("x", {2, 3});
  m.node("Act", {"x"}, {"a"}).domain("custom").f("slope", 0.25f);
  m.node("Act", {"a"}, {"y"}).domain("custom");
  m.output("y", {2, 3});
}

void fill_unknown_operators(TestModel& m) {
  m.opset_import("com.example", 3);
  m.input("x", {1, 2, 4, 4});
  m.constant(float_tensor("scales", {4}, {1, 1, 2, 2}));
  m.node("Secret", {"x", "", "scales"}, {"a", "", "b"}).domain("com.example").s("mode", "strange").name("s");
  m.node("Resize", {"x", "", "scales"}, {"c"}).s("mode", "nearest");
  m.node("Relu", {"c"}, {"d"});
  m.node("RandomNormalLike", {"d"}, {"e"});
  m.node("RandomNormalLike", {"d"}, {"f"});
  m.node("Sub", {"e", "f"}, {"y"});
  m.output("a", {"rows", 3});
  m.output("y", {1, 2, 8, 8});
}

const std::vector<Case> kCases = {
    {"Opset7Ir3", 7, 3, fill_opset_7},
    {"Opset8Ir3", 8, 3, fill_elementwise},
    {"Opset9Ir4", 9, 4, fill_where},
    {"Opset10Ir5", 10, 5, fill_slice_inputs},
    {"Opset11Ir6", 11, 6, fill_clip_inputs},
    {"Opset12Ir7", 12, 7, fill_old_softmax},
    {"Opset13Ir7", 13, 7, fill_axes_inputs},
    {"Opset14Ir7", 14, 7, fill_zero_size},
    {"Opset15Ir8", 15, 8, fill_shape_arithmetic},
    {"Opset16Ir8", 16, 8, fill_aliases},
    {"Opset17Ir8", 17, 8, fill_layer_normalization},
    {"Opset18Ir8", 18, 8, fill_opset_18},
    {"Opset19Ir9", 19, 9, fill_opset_19},
    {"Opset20Ir9", 20, 9, fill_gelu},
    {"Opset21Ir10", 21, 10, fill_axes_inputs},
    {"Constants", 17, 8, fill_constants},
    {"IfOfComputedCondition", 17, 8, fill_if, true},
    {"IfOfConstantCondition", 17, 8, fill_constant_if},
    {"LoopThatCaptures", 17, 8, fill_loop, true},
    {"Functions", 17, 8, fill_functions},
    {"UnknownOperators", 17, 8, fill_unknown_operators, true},
};

// ---- the test ----

std::map<std::string, Tensor> random_inputs(const Graph& graph) {
  std::mt19937 random(7);
  std::map<std::string, Tensor> inputs;
  for (const Value& input : graph.inputs()) {
    std::vector<int64_t> dims;
    for (const Index& extent : *input.type().shape) dims.push_back(extent.as_constant().value_or(3));
    inputs[input.node->name] = random_tensor(random, input.type().element, dims, -1, 1);
  }
  return inputs;
}

class RoundTrip : public testing::TestWithParam<Case> {};

TEST_P(RoundTrip, KeepsTheGraph) {
  const Case& row = GetParam();
  const TestFolder folder;
  TestModel model(row.opset, row.ir);
  row.fill(model);
  model.save(folder.file("a.onnx"));
  const auto first = import_onnx(folder.file("a.onnx"));
  ASSERT_TRUE(first.ok()) << first.error().message;
  ASSERT_TRUE(validate(first->graph).ok());
  const Status written = export_onnx(first->graph, folder.file("b.onnx"));
  ASSERT_TRUE(written.ok()) << written.error().message;
  const auto second = import_onnx(folder.file("b.onnx"));
  ASSERT_TRUE(second.ok()) << second.error().message;
  ASSERT_TRUE(export_onnx(second->graph, folder.file("c.onnx")).ok());
  EXPECT_EQ(read_file(folder.file("b.onnx")), read_file(folder.file("c.onnx")));
  EXPECT_EQ(second->graph.metadata().opsets, first->graph.metadata().opsets);
  EXPECT_EQ(second->graph.metadata().ir_version, row.ir);
  EXPECT_EQ(second->graph.inputs().size(), first->graph.inputs().size());
  if (row.opaque) return;
  for (const NodePtr& node : first->graph.nodes()) EXPECT_FALSE(node->is(OpKind::Opaque)) << node->opaque->op_type;
  EXPECT_EQ(to_string(second->graph.hash()), to_string(first->graph.hash()));
  const auto inputs = random_inputs(first->graph);
  const auto expected = interpret(first->graph, inputs), actual = interpret(second->graph, inputs);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  ASSERT_TRUE(actual.ok()) << actual.error().message;
  for (size_t i = 0; i < expected->size(); i++) EXPECT_EQ((*expected)[i].to_doubles(), (*actual)[i].to_doubles());
}

INSTANTIATE_TEST_SUITE_P(Onnx, RoundTrip, testing::ValuesIn(kCases), [](const auto& info) { return info.param.name; });

// ---- one by one ----

TEST(OnnxRoundTrip, KeepsNamesAndMetadata) {
  const TestFolder folder;
  TestModel model;
  model.proto.set_doc_string("about");
  model.proto.set_producer_name("maker");
  model.proto.set_producer_version("3");
  model.proto.set_domain("org.example");
  model.proto.set_model_version(5);
  model.proto.mutable_graph()->set_doc_string("about the graph");
  auto& property = *model.proto.add_metadata_props();
  property.set_key("license");
  property.set_value("free");
  model.input("x", {"batch", "", 4});
  model.proto.mutable_graph()->mutable_input(0)->set_doc_string("pictures");
  model.constant(float_tensor("weight of mine", {4, 2}));
  model.node("MatMul", {"x", "weight of mine"}, {"hidden"}).name("first layer");
  model.node("Relu", {"hidden"}, {"y"}).name("second layer");
  model.output("y", {"batch", "", 2});
  model.save(folder.file("a.onnx"));
  const auto imported = import_onnx(folder.file("a.onnx"));
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  ASSERT_TRUE(export_onnx(imported->graph, folder.file("b.onnx")).ok());
  onnx::ModelProto b;
  ASSERT_TRUE(b.ParseFromString(read_file(folder.file("b.onnx"))));
  EXPECT_EQ(b.doc_string(), "about");
  EXPECT_EQ(b.producer_name(), "maker");
  EXPECT_EQ(b.producer_version(), "3");
  EXPECT_EQ(b.domain(), "org.example");
  EXPECT_EQ(b.model_version(), 5);
  EXPECT_EQ(b.graph().doc_string(), "about the graph");
  EXPECT_EQ(b.metadata_props(0).value(), "free");
  EXPECT_EQ(b.graph().input(0).SerializeAsString(), model.proto.graph().input(0).SerializeAsString());
  EXPECT_EQ(b.graph().output(0).SerializeAsString(), model.proto.graph().output(0).SerializeAsString());
  EXPECT_EQ(b.graph().node(0).name(), "first layer");
  EXPECT_EQ(b.graph().node(0).input(1), "weight of mine");
  EXPECT_EQ(b.graph().node(0).output(0), "hidden");
  EXPECT_EQ(b.graph().node(1).name(), "second layer");
}

TEST(OnnxRoundTrip, CapturedValuesFollowTheirNewNames) {
  const TestFolder folder;
  TestModel model;
  fill_if(model);
  model.save(folder.file("a.onnx"));
  const auto imported = import_onnx(folder.file("a.onnx"));
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  std::map<Value, Value> replacements;
  GraphBuilder builder;
  for (const NodePtr& node : imported->graph.nodes())
    if (node->is(OpKind::Relu)) replacements[{node, 0}] = *builder.apply(OpKind::Tanh, {node->inputs[0]});
  ASSERT_EQ(replacements.size(), 1u);
  const auto changed = replace_values(imported->graph, replacements);
  ASSERT_TRUE(changed.ok()) << changed.error().message;
  ASSERT_TRUE(export_onnx(*changed, folder.file("b.onnx")).ok());
  onnx::ModelProto b;
  ASSERT_TRUE(b.ParseFromString(read_file(folder.file("b.onnx"))));
  ASSERT_EQ(b.graph().node(0).op_type(), "Tanh");
  const std::string renamed = b.graph().node(0).output(0);
  EXPECT_NE(renamed, "a");
  ASSERT_EQ(b.graph().node(1).op_type(), "If");
  for (const auto& attribute : b.graph().node(1).attribute()) EXPECT_EQ(attribute.g().node(0).input(0), renamed);
  EXPECT_TRUE(import_onnx(folder.file("b.onnx")).ok());
}

TEST(OnnxRoundTrip, WeightOnlyNodesBecomeInitializers) {
  const TestFolder folder;
  TestModel model(13);
  model.input("x", {2, 60});
  model.input("z", {1, 5000});
  model.constant(float_tensor("w", {70, 60}));
  model.constant(float_tensor("row", {1, 100}));
  model.constant(int_tensor("shape", {5000, 100}));
  model.node("Transpose", {"w"}, {"t"}).ints("perm", {1, 0});
  model.node("MatMul", {"x", "t"}, {"y"});
  model.node("Expand", {"row", "shape"}, {"e"});  // far larger than what it is made of: stays a node
  model.node("MatMul", {"z", "e"}, {"u"});
  model.output("y", {2, 70});
  model.output("u", {1, 100});
  model.save(folder.file("a.onnx"));
  const auto imported = import_onnx(folder.file("a.onnx"));
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  ASSERT_TRUE(export_onnx(imported->graph, folder.file("b.onnx")).ok());
  onnx::ModelProto b;
  ASSERT_TRUE(b.ParseFromString(read_file(folder.file("b.onnx"))));
  std::vector<std::string> operators;
  for (const auto& node : b.graph().node()) operators.push_back(node.op_type());
  std::sort(operators.begin(), operators.end());
  EXPECT_EQ(operators, (std::vector<std::string>{"Expand", "MatMul", "MatMul"}));
  for (const auto& tensor : b.graph().initializer())
    EXPECT_EQ(tensor.dims(0), tensor.name() == "t" ? 60 : tensor.dims(0));
}

TEST(OnnxRoundTrip, ExternalDataIsWrittenAlignedAndReadBack) {
  const TestFolder folder;
  TestModel model;
  model.input("x", {2, 64});
  model.constant(float_tensor("w", {64, 33}));
  model.constant(float_tensor("v", {33, 5}));
  model.constant(float_tensor("b", {5}));
  model.node("MatMul", {"x", "w"}, {"h"});
  model.node("MatMul", {"h", "v"}, {"m"});
  model.node("Add", {"m", "b"}, {"y"});
  model.output("y", {2, 5});
  model.save(folder.file("a.onnx"));
  const auto first = import_onnx(folder.file("a.onnx"));
  ASSERT_TRUE(first.ok()) << first.error().message;
  ExportOptions options;
  options.external_above = 0;
  std::filesystem::create_directory(folder.path() / "out");
  ASSERT_TRUE(export_onnx(first->graph, folder.file("out/b.onnx"), options).ok());
  onnx::ModelProto b;
  ASSERT_TRUE(b.ParseFromString(read_file(folder.file("out/b.onnx"))));
  int external = 0;
  for (const auto& tensor : b.graph().initializer()) {
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) continue;
    external++;
    EXPECT_EQ(tensor.external_data(0).value(), "b.onnx.data");
    EXPECT_EQ(std::stol(tensor.external_data(1).value()) % 64, 0);
  }
  EXPECT_EQ(external, 1);  // the others are below a kilobyte
  const auto second = import_onnx(folder.file("out/b.onnx"));
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_EQ(to_string(second->graph.hash()), to_string(first->graph.hash()));
}

TEST(OnnxExport, ExpandsOperatorsThatTheOpsetLacks) {
  for (const OpKind kind : {OpKind::Gelu, OpKind::HardSwish, OpKind::Mish, OpKind::Celu, OpKind::FillLike}) {
    const TestFolder folder;
    GraphBuilder builder;
    const Value x = builder.input("x", {ElementType::Float32, Shape{Index(2), Index(5)}});
    Attributes attributes;
    if (kind == OpKind::FillLike) attributes["value"] = 2.5;
    const auto y = builder.apply(kind, {x}, attributes);
    ASSERT_TRUE(y.ok()) << y.error().message;
    const auto z = builder.apply(OpKind::Add, {*y, x});
    builder.output("z", *z);
    builder.metadata().opsets[""] = 11;
    const Graph graph = builder.build();
    const Status written = export_onnx(graph, folder.file("a.onnx"));
    ASSERT_TRUE(written.ok()) << written.error().message;
    const auto imported = import_onnx(folder.file("a.onnx"));
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    const auto inputs = random_inputs(graph);
    const auto expected = interpret(graph, inputs), actual = interpret(imported->graph, inputs);
    ASSERT_TRUE(expected.ok() && actual.ok());
    const auto a = (*expected)[0].to_doubles(), b = (*actual)[0].to_doubles();
    for (size_t i = 0; i < a.size(); i++) EXPECT_NEAR(a[i], b[i], 1e-6) << op_info(kind).name;
  }
}

TEST(OnnxExport, ExpandsNormalizationAndSoftmaxOfOldOpsets) {
  const TestFolder folder;
  GraphBuilder builder;
  const Value x = builder.input("x", {ElementType::Float32, Shape{Index(2), Index(3), Index(4)}});
  const Value scale = builder.constant(Tensor::from_values<double>(ElementType::Float32, {4}, {1, 2, 3, 4}), "scale");
  const auto n = builder.apply(OpKind::LayerNormalization, {x, scale, scale});
  ASSERT_TRUE(n.ok()) << n.error().message;
  builder.output("y", *builder.apply(OpKind::Softmax, {*n}, {{"axis", Index(1)}}));
  builder.output("g", *builder.apply(OpKind::GreaterOrEqual, {x, *n}));
  builder.metadata().opsets[""] = 11;
  const Graph graph = builder.build();
  ASSERT_TRUE(export_onnx(graph, folder.file("a.onnx")).ok());
  const auto imported = import_onnx(folder.file("a.onnx"));
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  const auto inputs = random_inputs(graph);
  const auto expected = interpret(graph, inputs), actual = interpret(imported->graph, inputs);
  ASSERT_TRUE(expected.ok() && actual.ok());
  for (size_t k = 0; k < 2; k++) {
    const auto a = (*expected)[k].to_doubles(), b = (*actual)[k].to_doubles();
    for (size_t i = 0; i < a.size(); i++) EXPECT_NEAR(a[i], b[i], 1e-6);
  }
}

TEST(OnnxImport, ShapeArithmeticOfStaticShapesDisappears) {
  const TestFolder folder;
  TestModel model(15);
  fill_shape_arithmetic(model);
  model.save(folder.file("a.onnx"));
  ImportOptions options;
  options.shapes["x"] = {2, 3, 8};
  const auto imported = import_onnx(folder.file("a.onnx"), options);
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  for (const NodePtr& node : imported->graph.nodes()) {
    EXPECT_FALSE(node->is(OpKind::Shape) || node->is(OpKind::Gather) || node->is(OpKind::Concat));
    for (const TensorType& type : node->outputs) EXPECT_TRUE(type.has_static_shape());
  }
}

TEST(OnnxImport, StaticModelIsRebatched) {
  const TestFolder folder;
  TestModel model;
  model.input("x", {1, 6, 8});
  model.constant(int_tensor("split", {1, 6, 2, 4}));
  model.constant(int_tensor("fold", {2, 6, 4}));
  model.constant(int_tensor("unfold", {1, 2, -1, 4}));
  model.constant(int_tensor("join", {1, -1, 8}));
  model.constant(float_tensor("token", {1, 1, 8}));
  model.node("Concat", {"token", "x"}, {"c"}).i("axis", 1);
  model.node("Reshape", {"x", "split"}, {"a"});
  model.node("Transpose", {"a"}, {"b"}).ints("perm", {0, 2, 1, 3});
  model.node("Reshape", {"b", "fold"}, {"f"});
  model.node("Softmax", {"f"}, {"s"});
  model.node("Reshape", {"s", "unfold"}, {"u"});
  model.node("Transpose", {"u"}, {"v"}).ints("perm", {0, 2, 1, 3});
  model.node("Reshape", {"v", "join"}, {"y"});
  model.output("y", {1, 6, 8});
  model.output("c", {1, 7, 8});
  model.save(folder.file("a.onnx"));
  ImportOptions options;
  options.shapes["x"] = {3, 6, 8};
  const auto one = import_onnx(folder.file("a.onnx")), three = import_onnx(folder.file("a.onnx"), options);
  ASSERT_TRUE(one.ok()) << one.error().message;
  ASSERT_TRUE(three.ok()) << three.error().message;
  const auto all_inputs = random_inputs(three->graph);
  const auto all = interpret(three->graph, all_inputs);
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_EQ((*all)[0].dims(), (std::vector<int64_t>{3, 6, 8}));
  EXPECT_EQ((*all)[1].dims(), (std::vector<int64_t>{3, 7, 8}));
  const auto x = all_inputs.at("x").to_doubles();
  for (int k = 0; k < 3; k++) {
    const std::vector<double> part(x.begin() + k * 48, x.begin() + (k + 1) * 48);
    const auto single = interpret(one->graph, {{"x", Tensor::from_values(ElementType::Float32, {1, 6, 8}, part)}});
    ASSERT_TRUE(single.ok()) << single.error().message;
    const auto expected = (*single)[0].to_doubles(), batched = (*all)[0].to_doubles();
    EXPECT_EQ(expected, std::vector<double>(batched.begin() + k * 48, batched.begin() + (k + 1) * 48));
  }
}

// ---- ONNX's own checker, where Python has it ----

TEST(OnnxExport, PassesTheCheckerOfOnnx) {
  if (!python_has("onnx")) GTEST_SKIP() << "no Python with the package onnx (set GOPT_PYTHON to one)";
  const TestFolder folder;
  std::string files;
  for (const Case& row : kCases) {
    TestModel model(row.opset, row.ir);
    row.fill(model);
    model.save(folder.file("a.onnx"));
    const auto imported = import_onnx(folder.file("a.onnx"));
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    ASSERT_TRUE(export_onnx(imported->graph, folder.file(row.name + ".onnx")).ok());
    files += " " + folder.file(row.name + ".onnx");
  }
  EXPECT_EQ(std::system((test_python() + " " GOPT_CHECK_MODELS + files).c_str()), 0);
}

}  // namespace
}  // namespace gopt
