// What a model says beside what it computes goes through the reader and the writer, and what it computes by default is
// computed.
#include <gtest/gtest.h>

#include <cstring>

#include "gopt/interpreter.h"
#include "gopt/onnx.h"
#include "model_builder.h"
#include "sample_models.h"
#include "test_folder.h"
#include "text_files.h"

namespace gopt {
namespace {

onnx::ModelProto round_trip(TestModel& model) {
  const TestFolder folder;
  model.save(folder.file("a.onnx"));
  const auto imported = import_onnx(folder.file("a.onnx"));
  EXPECT_TRUE(imported.ok()) << (imported.ok() ? "" : imported.error().message);
  onnx::ModelProto written;
  if (!imported.ok()) return written;
  const Status status = export_onnx(imported->graph, folder.file("b.onnx"));
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
  EXPECT_TRUE(written.ParseFromString(read_file(folder.file("b.onnx"))));
  return written;
}

// A length-delimited field of the wire format, of fewer than 128 bytes: one that the message classes may not know.
template <class Message>
void add_field(Message& message, int number, const std::string& payload) {
  const std::string field = {static_cast<char>(number << 3 | 2), static_cast<char>(payload.size())};
  ASSERT_TRUE(message.MergeFromString(field + payload));
}

TEST(OnnxPreserved, DocumentationAndMetadataOfNodes) {
  TestModel model;
  model.input("x", {2, 3});
  model.node("Relu", {"x"}, {"h"}).name("first");
  onnx::NodeProto& node = *model.proto.mutable_graph()->mutable_node(0);
  node.set_doc_string("line 12 of net.py");
  onnx::StringStringEntryProto scope;
  scope.set_key("scope");
  scope.set_value("net.layer1");
  add_field(node, 9, scope.SerializeAsString());  // metadata_props, since IR 10
  model.node("Tanh", {"h"}, {"y"}).name("second");
  model.output("y", {2, 3});
  const onnx::ModelProto written = round_trip(model);
  ASSERT_EQ(written.graph().node_size(), 2);
  EXPECT_EQ(written.graph().node(0).doc_string(), "line 12 of net.py");
  EXPECT_NE(written.graph().node(0).SerializeAsString().find("net.layer1"), std::string::npos);
  EXPECT_EQ(written.graph().node(1).doc_string(), "");
}

TEST(OnnxPreserved, NodesOfWhichInputsChangeKeepTheirs) {
  const TestFolder folder;
  TestModel model;
  model.input("x", {2, 3});
  model.node("Relu", {"x"}, {"h"});
  model.node("Tanh", {"h"}, {"y"});
  model.proto.mutable_graph()->mutable_node(1)->set_doc_string("kept");
  model.output("y", {2, 3});
  model.save(folder.file("a.onnx"));
  const auto imported = import_onnx(folder.file("a.onnx"));
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  const Value y = imported->graph.outputs()[0].value;
  const auto changed = replace_values(imported->graph, {{y.node->inputs[0], imported->graph.inputs()[0]}});
  ASSERT_TRUE(changed.ok()) << changed.error().message;
  ASSERT_TRUE(export_onnx(*changed, folder.file("b.onnx")).ok());
  onnx::ModelProto written;
  ASSERT_TRUE(written.ParseFromString(read_file(folder.file("b.onnx"))));
  ASSERT_EQ(written.graph().node_size(), 1);
  EXPECT_EQ(written.graph().node(0).doc_string(), "kept");
}

TEST(OnnxPreserved, DeclarationsOfValues) {
  TestModel model;
  model.input("x", {"n", 3});
  model.node("Relu", {"x"}, {"h"});
  model.node("Tanh", {"h"}, {"y"});
  model.value("h", {"rows", 3});
  model.proto.mutable_graph()->mutable_value_info(0)->set_doc_string("activations");
  model.output("y", {"n", 3});
  const onnx::ModelProto written = round_trip(model);
  ASSERT_EQ(written.graph().value_info_size(), 1);
  EXPECT_EQ(written.graph().value_info(0).name(), "h");
  EXPECT_EQ(written.graph().value_info(0).doc_string(), "activations");
}

TEST(OnnxPreserved, EveryByteOfAWeight) {
  TestModel model;
  model.input("x", {4});
  onnx::TensorProto weight = float_tensor("w", {4});
  const uint32_t bits[4] = {0x7fa12345, 0x80000000, 0x00000001, 0xffc00001};  // NaNs with payloads, -0, a denormal
  weight.set_raw_data(bits, sizeof bits);
  model.constant(weight);
  model.node("Add", {"x", "w"}, {"y"});
  model.output("y", {4});
  const onnx::ModelProto written = round_trip(model);
  ASSERT_EQ(written.graph().initializer_size(), 1);
  EXPECT_EQ(written.graph().initializer(0).raw_data(), weight.raw_data());
}

// An embedding and the projection that shares its weights: one tensor, whichever way it is turned.
TEST(OnnxPreserved, TiedWeightsAreOneTensor) {
  TestModel model;
  model.input("ids", {2}, kInt64);
  model.constant(float_tensor("w", {300, 64}));
  model.node("Gather", {"w", "ids"}, {"e"});
  model.node("Transpose", {"w"}, {"t"}).ints("perm", {1, 0});
  model.node("MatMul", {"e", "t"}, {"y"});
  model.output("y", {2, 300});
  const onnx::ModelProto written = round_trip(model);
  ASSERT_EQ(written.graph().initializer_size(), 1);
  EXPECT_EQ(written.graph().initializer(0).name(), "w");
  EXPECT_EQ(written.graph().node_size(), 3);
}

// ---- what is folded ----

std::vector<std::string> operators(const onnx::ModelProto& model) {
  std::vector<std::string> types;
  for (const onnx::NodeProto& node : model.graph().node()) types.push_back(node.op_type());
  return types;
}

int64_t initializer_bytes(const onnx::ModelProto& model) {
  int64_t bytes = 0;
  for (const onnx::TensorProto& tensor : model.graph().initializer())
    bytes += static_cast<int64_t>(tensor.raw_data().size());
  return bytes;
}

// x + column * row: 1 MB of products from 4 KB.
TEST(OnnxFolds, ProductsThatOutgrowTheirFactorsStayNodes) {
  TestModel model;
  model.input("x", {512, 512});
  model.constant(float_tensor("column", {512, 1}));
  model.constant(float_tensor("row", {1, 512}));
  model.node("Mul", {"column", "row"}, {"p"});
  model.node("Add", {"x", "p"}, {"y"});
  model.output("y", {512, 512});
  const onnx::ModelProto written = round_trip(model);
  EXPECT_EQ(operators(written), (std::vector<std::string>{"Mul", "Add"}));
  EXPECT_EQ(initializer_bytes(written), 2 * 512 * 4);
}

// A product that is as large as the weight that it takes the place of, and a small one of more factors.
TEST(OnnxFolds, WhatTakesAWeightsPlaceIsFolded) {
  TestModel model;
  model.input("x", {1, 256});
  model.constant(float_tensor("w", {256, 256}));
  model.constant(float_tensor("scale", {1, 256}));
  model.node("Mul", {"w", "scale"}, {"p"});
  model.node("MatMul", {"x", "p"}, {"y"});
  model.output("y", {1, 256});
  const onnx::ModelProto written = round_trip(model);
  EXPECT_EQ(operators(written), (std::vector<std::string>{"MatMul"}));
  EXPECT_EQ(initializer_bytes(written), 256 * 256 * 4);
}

// The weight's bytes are given back once, so that the second product would be a second weight.
TEST(OnnxFolds, OneWeightPaysForOneProduct) {
  TestModel model;
  model.input("x", {1, 256});
  model.constant(float_tensor("w", {256, 256}));
  model.constant(float_tensor("a", {1, 256}));
  model.constant(float_tensor("b", {256, 1}));
  model.node("Mul", {"w", "a"}, {"p"});
  model.node("Mul", {"w", "b"}, {"q"});
  model.node("MatMul", {"x", "p"}, {"h"});
  model.node("MatMul", {"h", "q"}, {"y"});
  model.output("y", {1, 256});
  const onnx::ModelProto written = round_trip(model);
  EXPECT_EQ(operators(written), (std::vector<std::string>{"Mul", "MatMul", "Mul", "MatMul"}));
  EXPECT_EQ(initializer_bytes(written), (256 * 256 + 2 * 256) * 4);
}

TEST(OnnxFolds, WeightsOf16BitsUnderACastStaySmall) {
  TestModel model;
  model.input("x", {1, 256});
  onnx::TensorProto half;
  half.set_name("w");
  half.set_data_type(onnx::TensorProto::FLOAT16);
  half.add_dims(256);
  half.add_dims(256);
  half.set_raw_data(std::string(256 * 256 * 2, '\x11'));
  model.constant(half);
  model.node("Cast", {"w"}, {"c"}).i("to", onnx::TensorProto::FLOAT);
  model.node("MatMul", {"x", "c"}, {"y"});
  model.output("y", {1, 256});
  const onnx::ModelProto written = round_trip(model);
  EXPECT_EQ(operators(written), (std::vector<std::string>{"Cast", "MatMul"}));
  EXPECT_EQ(initializer_bytes(written), 256 * 256 * 2);
}

// ---- functions ----

// The value of LeakyRelu's slope where the call gives none, and where it does.
TEST(OnnxFunctions, DefaultsOfAttributesAreHonoured) {
  TestModel model;
  model.opset_import("custom", 1);
  onnx::FunctionProto& function = *model.proto.add_functions();
  function.set_domain("custom");
  function.set_name("Act");
  function.add_input("v");
  function.add_output("u");
  add_node(*function.add_node(), "LeakyRelu", {"v"}, {"u"});
  auto& alpha = *function.mutable_node(0)->add_attribute();
  alpha.set_name("alpha");
  alpha.set_type(onnx::AttributeProto::FLOAT);
  alpha.set_ref_attr_name("slope");
  onnx::AttributeProto slope;
  slope.set_name("slope");
  slope.set_type(onnx::AttributeProto::FLOAT);
  slope.set_f(0.5f);
  add_field(function, 11, slope.SerializeAsString());  // attribute_proto
  function.add_opset_import()->set_version(17);
  model.input("x", {1});
  model.node("Act", {"x"}, {"y"}).domain("custom");
  model.node("Act", {"x"}, {"z"}).domain("custom").f("slope", 0.25f);
  model.output("y", {1});
  model.output("z", {1});
  const TestFolder folder;
  model.save(folder.file("m.onnx"));
  const auto imported = import_onnx(folder.file("m.onnx"));
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  const auto outputs =
      interpret(imported->graph, {{"x", Tensor::from_values<double>(ElementType::Float32, {1}, {-4.0})}});
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  EXPECT_EQ((*outputs)[0].to_doubles()[0], -2.0);
  EXPECT_EQ((*outputs)[1].to_doubles()[0], -1.0);
}

// A body with a loop, whose body refers to an attribute of the function, is taken apart like any other.
TEST(OnnxFunctions, LoopsInThemAreUnrolled) {
  TestModel model;
  model.opset_import("custom", 1);
  onnx::FunctionProto& function = *model.proto.add_functions();
  function.set_domain("custom");
  function.set_name("Twice");
  function.add_input("v");
  function.add_output("u");
  function.add_attribute("slope");
  function.add_opset_import()->set_version(17);
  onnx::NodeProto& trips = *function.add_node();
  add_node(trips, "Constant", {}, {"trips"});
  onnx::AttributeProto& count = *trips.add_attribute();
  count.set_name("value_int");
  count.set_type(onnx::AttributeProto::INT);
  count.set_i(2);
  onnx::NodeProto& loop = *function.add_node();
  add_node(loop, "Loop", {"trips", "", "v"}, {"u"});
  onnx::AttributeProto& attribute = *loop.add_attribute();
  attribute.set_name("body");
  attribute.set_type(onnx::AttributeProto::GRAPH);
  onnx::GraphProto& body = *attribute.mutable_g();
  body.set_name("body");
  for (const char* name : {"i", "go", "a"}) body.add_input()->set_name(name);
  for (const char* name : {"go", "b"}) body.add_output()->set_name(name);
  onnx::NodeProto& act = *body.add_node();
  add_node(act, "LeakyRelu", {"a"}, {"b"});
  onnx::AttributeProto& alpha = *act.add_attribute();
  alpha.set_name("alpha");
  alpha.set_type(onnx::AttributeProto::FLOAT);
  alpha.set_ref_attr_name("slope");
  model.input("x", {1});
  model.node("Twice", {"x"}, {"y"}).domain("custom").f("slope", 0.5f);
  model.output("y", {1});
  const TestFolder folder;
  model.save(folder.file("m.onnx"));
  const auto imported = import_onnx(folder.file("m.onnx"), {.lower = true});
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  for (const NodePtr& node : imported->graph.nodes()) EXPECT_FALSE(node->is(OpKind::Opaque));
  const auto outputs =
      interpret(imported->graph, {{"x", Tensor::from_values<double>(ElementType::Float32, {1}, {-4.0})}});
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  EXPECT_EQ((*outputs)[0].to_doubles()[0], -1.0);
}

// Types are known when a model is read: one node for one, which is known to all.
TEST(OnnxImport, CastLikeIsACast) {
  const TestFolder folder;
  TestModel model(17, 8);
  model.input("x", {2, 3}, kInt64);
  model.input("like", {1});
  model.node("CastLike", {"x", "like"}, {"y"});
  model.output("y", {2, 3});
  model.save(folder.file("a.onnx"));
  const auto imported = import_onnx(folder.file("a.onnx"));
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(imported->graph.outputs()[0].value.node->op, OpKind::Cast);
  ASSERT_TRUE(export_onnx(imported->graph, folder.file("b.onnx")).ok());
  onnx::ModelProto b;
  ASSERT_TRUE(b.ParseFromString(read_file(folder.file("b.onnx"))));
  ASSERT_EQ(b.graph().node_size(), 1);
  EXPECT_EQ(b.graph().node(0).op_type(), "Cast");
  EXPECT_EQ(b.graph().input_size(), 2);  // what a caller gives stays
}

// An input with a default value stays one, and is not folded, unless it is to be a constant.
TEST(OnnxImport, DefaultsOfInputsMayBeOverridden) {
  const TestFolder folder;
  TestModel model(17, 8);
  model.input("x", {2, 3});
  model.input("scale", {3});
  model.constant(float_tensor("scale", {3}));
  model.constant(float_tensor("shift", {3}));
  model.node("Mul", {"x", "scale"}, {"m"});
  model.node("Add", {"m", "shift"}, {"y"});
  model.output("y", {2, 3});
  model.save(folder.file("a.onnx"));
  ImportOptions options;
  options.freeze_initializers = false;
  const auto kept = import_onnx(folder.file("a.onnx"), options), frozen = import_onnx(folder.file("a.onnx"));
  ASSERT_TRUE(kept.ok() && frozen.ok());
  EXPECT_EQ(kept->graph.inputs().size(), 2u);
  EXPECT_EQ(frozen->graph.inputs().size(), 1u);
  ASSERT_EQ(kept->warnings.size(), 1u);
  EXPECT_NE(kept->warnings[0].find("--freeze-initializers"), std::string::npos);
  ASSERT_TRUE(export_onnx(kept->graph, folder.file("b.onnx")).ok());
  onnx::ModelProto a, b;
  ASSERT_TRUE(a.ParseFromString(read_file(folder.file("a.onnx"))));
  ASSERT_TRUE(b.ParseFromString(read_file(folder.file("b.onnx"))));
  ASSERT_EQ(b.graph().input_size(), 2);
  EXPECT_EQ(b.graph().input(1).name(), "scale");
  ASSERT_EQ(b.graph().initializer_size(), 2);
  for (const auto& initializer : b.graph().initializer()) {
    if (initializer.name() != "scale") continue;
    const auto again = import_onnx(folder.file("b.onnx"));
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(to_string(again->graph.hash()), to_string(frozen->graph.hash()));  // the same numbers
  }
  EXPECT_EQ(b.graph().initializer(0).name() == "scale" || b.graph().initializer(1).name() == "scale", true);
}

// What the file is made of, as a user knows it: functions are calls, bodies count, constants do not.
TEST(OnnxImport, CountsTheOperatorsOfTheFile) {
  const TestFolder folder;
  TestModel model;
  fill_sample("IfOfComputedCondition", model);
  int conditional = 0, others = 0;
  for (const auto& node : model.proto.graph().node()) (node.op_type() == "If" ? conditional : others)++;
  model.save(folder.file("a.onnx"));
  const auto imported = import_onnx(folder.file("a.onnx"));
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(imported->operators.at("If"), conditional);
  int all = 0;
  for (const auto& [name, count] : imported->operators) all += count;
  EXPECT_GT(all, conditional + others);  // those of its branches
  EXPECT_FALSE(imported->operators.contains("Constant"));
}

}  // namespace
}  // namespace gopt
