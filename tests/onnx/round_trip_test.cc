// Reading, writing and reading again gives the same graph, and the same numbers: over opsets 7 to 21, IR 3 to 10, and
// all that a model may hold beside plain operators.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <set>

#include "gopt/interpreter.h"
#include "gopt/onnx.h"
#include "model_builder.h"
#include "random_tensor.h"
#include "run_command.h"
#include "sample_models.h"
#include "test_folder.h"
#include "text_files.h"

namespace gopt {
namespace {

// The model as it is written after it was read: a.onnx and b.onnx in the folder.
onnx::ModelProto written_again(TestModel& model, const TestFolder& folder) {
  onnx::ModelProto written;
  model.save(folder.file("a.onnx"));
  const auto imported = import_onnx(folder.file("a.onnx"));
  EXPECT_TRUE(imported.ok()) << imported.error().message;
  if (!imported.ok()) return written;
  EXPECT_TRUE(export_onnx(imported->graph, folder.file("b.onnx")).ok());
  EXPECT_TRUE(written.ParseFromString(read_file(folder.file("b.onnx"))));
  return written;
}

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

class RoundTrip : public testing::TestWithParam<SampleModel> {};

TEST_P(RoundTrip, KeepsTheGraph) {
  const SampleModel& row = GetParam();
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

INSTANTIATE_TEST_SUITE_P(Onnx, RoundTrip, testing::ValuesIn(sample_models()),
                         [](const auto& info) { return info.param.name; });

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
  const onnx::ModelProto b = written_again(model, folder);
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
  fill_sample("IfOfComputedCondition", model);
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

// Open extents are read from shapes, once each: of all the same value where that has them, whole where it can be.
struct ExtentsRow {
  const char* name;
  std::function<void(TestModel&)> fill;
  std::vector<std::string> operators;
};
std::ostream& operator<<(std::ostream& os, const ExtentsRow& row) { return os << row.name; }
class OpenExtents : public testing::TestWithParam<ExtentsRow> {};

TEST_P(OpenExtents, AreWrittenWithTheseOperators) {
  const TestFolder folder;
  TestModel model(19);
  model.input("x", {"a", 2, "b"});
  GetParam().fill(model);
  const onnx::ModelProto b = written_again(model, folder);
  const auto imported = import_onnx(folder.file("a.onnx"));
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  std::vector<std::string> operators;
  for (const onnx::NodeProto& node : b.graph().node()) operators.push_back(node.op_type());
  EXPECT_EQ(operators, GetParam().operators);
  const auto again = import_onnx(folder.file("b.onnx"));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(to_string(again->graph.hash()), to_string(imported->graph.hash()));
}

const ExtentsRow kExtentsRows[] = {
    {"OfAValue",
     [](TestModel& m) {
       m.node("Shape", {"x"}, {"s"});
       m.node("ConstantOfShape", {"s"}, {"y"});
       m.output("y", {"a", 2, "b"});
     },
     {"Shape", "ConstantOfShape"}},
    {"OfAValueThatIsComputed",
     [](TestModel& m) {
       m.node("Transpose", {"x"}, {"t"}).ints("perm", {2, 0, 1});
       m.node("Shape", {"t"}, {"s"});
       m.node("ConstantOfShape", {"s"}, {"y"});
       m.output("t", {"b", "a", 2});
       m.output("y", {"b", "a", 2});
     },
     {"Transpose", "Shape", "ConstantOfShape"}},
    {"SomeOfAValue",
     [](TestModel& m) {
       m.constant(int_tensor("places", {2, 0}));
       m.node("Shape", {"x"}, {"s"});
       m.node("Gather", {"s", "places"}, {"g"});
       m.node("ConstantOfShape", {"g"}, {"y"});
       m.output("y", {"b", "a"});
     },
     {"Shape", "Gather", "ConstantOfShape"}},
    {"TwiceOfAValue",
     [](TestModel& m) {
       m.node("Shape", {"x"}, {"s"});
       m.node("ConstantOfShape", {"s"}, {"y"});
       m.node("ConstantOfShape", {"s"}, {"z"}).tensor("value", float_tensor("", {1}, {1}));
       m.output("y", {"a", 2, "b"});
       m.output("z", {"a", 2, "b"});
     },
     {"Shape", "ConstantOfShape", "ConstantOfShape"}},
};
INSTANTIATE_TEST_SUITE_P(Onnx, OpenExtents, testing::ValuesIn(kExtentsRows),
                         [](const auto& info) { return std::string(info.param.name); });

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
  const onnx::ModelProto b = written_again(model, folder);
  std::vector<std::string> operators;
  for (const auto& node : b.graph().node()) operators.push_back(node.op_type());
  std::sort(operators.begin(), operators.end());
  EXPECT_EQ(operators, (std::vector<std::string>{"Expand", "MatMul", "MatMul"}));
  for (const auto& tensor : b.graph().initializer())
    EXPECT_EQ(tensor.dims(0), tensor.name() == "t" ? 60 : tensor.dims(0));
}

// None of these is a double.
TEST(OnnxRoundTrip, IntegersBeyond53BitsAreComputedAsIntegers) {
  constexpr int64_t kWide = (int64_t{1} << 61) + 3;
  const std::map<std::string, std::vector<int64_t>> expected = {
      {"Mod", {kWide % 7}}, {"Mul", {static_cast<int64_t>(static_cast<uint64_t>(kWide) * 7)}},  // wraps around
      {"Div", {kWide / 7}}, {"Add", {kWide + 7}},
      {"Max", {kWide}},     {"Concat", {kWide, 7}}};
  for (const auto& [op, values] : expected) {
    SCOPED_TRACE(op);
    const TestFolder folder;
    TestModel model(13);
    model.input("x", {1}, kInt64);
    model.constant(int_tensor("a", {kWide}));
    model.constant(int_tensor("b", {7}));
    auto node = model.node(op, {"a", "b"}, {"c"});
    if (op == "Concat") node.i("axis", 0);
    model.node("Sub", {"x", "c"}, {"y"});
    model.output("y", {static_cast<int64_t>(values.size())}, kInt64);
    const onnx::ModelProto b = written_again(model, folder);
    ASSERT_EQ(b.graph().node_size(), 1) << op;
    EXPECT_EQ(b.graph().node(0).op_type(), "Sub");
    ASSERT_EQ(b.graph().initializer_size(), 1) << op;
    const std::string& bytes = b.graph().initializer(0).raw_data();
    std::vector<int64_t> written(bytes.size() / sizeof(int64_t));
    std::memcpy(written.data(), bytes.data(), written.size() * sizeof(int64_t));
    EXPECT_EQ(written, values) << op;
  }
}

// Bounds and fills of 64 bits that no double holds, and those that are the ends of their type.
TEST(OnnxRoundTrip, NumbersBeyondDoublesAreNotRounded) {
  struct Case {
    const char* op;
    int32_t type;
    std::vector<int64_t> low, high;  // Clip's bounds; Pad: the value in `high`
    bool is_gone;                    // a Clip that bounds nothing
  };
  constexpr int64_t kWide = (int64_t{1} << 62) + 1;
  const Case cases[] = {{"Clip", kInt64, {INT64_MIN + 3}, {kWide}, false},
                        {"Clip", kInt64, {INT64_MIN}, {INT64_MAX}, true},
                        {"Clip", onnx::TensorProto::UINT64, {1}, {-4}, false},
                        {"Clip", onnx::TensorProto::UINT64, {0}, {-1}, true},
                        {"Pad", kInt64, {}, {kWide}, false},
                        {"Pad", onnx::TensorProto::UINT64, {}, {-1}, false}};
  for (const Case& c : cases) {
    const TestFolder folder;
    TestModel model(13);
    const bool clips = c.op == std::string("Clip");
    model.input("x", {3}, c.type);
    const auto number = [&](const char* name, int64_t value) {
      onnx::TensorProto tensor;
      tensor.set_name(name);
      tensor.set_data_type(c.type);
      tensor.set_raw_data(std::string(reinterpret_cast<const char*>(&value), sizeof value));
      model.constant(tensor);
    };
    if (clips) number("low", c.low[0]);
    number("high", c.high[0]);
    if (!clips) model.constant(int_tensor("pads", {1, 0}));
    model.node(c.op,
               clips ? std::vector<std::string>{"x", "low", "high"} : std::vector<std::string>{"x", "pads", "high"},
               {"y"});
    model.output("y", {clips ? 3 : 4}, c.type);
    model.save(folder.file("a.onnx"));
    const auto imported = import_onnx(folder.file("a.onnx"));
    ASSERT_TRUE(imported.ok()) << c.op << ": " << imported.error().message;
    ASSERT_TRUE(export_onnx(imported->graph, folder.file("b.onnx")).ok());
    onnx::ModelProto b;
    ASSERT_TRUE(b.ParseFromString(read_file(folder.file("b.onnx"))));
    std::set<int64_t> written;
    for (const onnx::TensorProto& tensor : b.graph().initializer()) {
      int64_t value = 0;
      ASSERT_GE(tensor.raw_data().size(), sizeof value);
      std::memcpy(&value, tensor.raw_data().data(), sizeof value);
      written.insert(value);
    }
    EXPECT_EQ(written.contains(c.high[0]), !c.is_gone) << c.op << " " << c.high[0];
  }
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

// Axes before the first that is repeated are as they are, one behind it may be a symbol.
TEST(OnnxExport, ExpandsRepeats) {
  for (const int64_t opset : {11, 13, 17}) {
    const TestFolder folder;
    GraphBuilder builder;
    const Index batch = symbol("batch"), width = symbol("width");
    const Value x = builder.input("x", {ElementType::Float32, Shape{batch, Index(3), Index(2), width}});
    const auto y = builder.apply(OpKind::Repeat, {x}, {{"repeats", std::vector<Index>{Index(1), 1, 3, 2}}});
    ASSERT_TRUE(y.ok()) << y.error().message;
    builder.output("y", *y);
    builder.metadata().opsets[""] = opset;
    const Graph graph = builder.build();
    const Status written = export_onnx(graph, folder.file("a.onnx"));
    ASSERT_TRUE(written.ok()) << written.error().message;
    const auto imported = import_onnx(folder.file("a.onnx"));
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    const std::vector<double> numbers{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};
    const std::map<std::string, Tensor> inputs{
        {"x", Tensor::from_values<double>(ElementType::Float32, {1, 3, 2, 3}, numbers)}};
    const auto expected = interpret(graph, inputs), actual = interpret(imported->graph, inputs);
    ASSERT_TRUE(expected.ok() && actual.ok());
    EXPECT_EQ((*actual)[0].dims(), (std::vector<int64_t>{1, 3, 6, 6}));
    EXPECT_EQ((*expected)[0].to_doubles(), (*actual)[0].to_doubles());
  }
}

// A number that is an input in the file may be computed from extents, as a causal mask's of tokens behind a cache.
TEST(OnnxExport, WritesANumberOfExtents) {
  const Index size = symbol("size");
  for (const Index& diagonal : {size - Index(3), floor_div(Index(1) - size, Index(2))}) {
    const TestFolder folder;
    GraphBuilder builder;
    const Value x = builder.input("x", {ElementType::Float32, Shape{size, size}});
    const auto y = builder.apply(OpKind::Trilu, {x}, {{"k", diagonal}});
    ASSERT_TRUE(y.ok()) << y.error().message;
    builder.output("y", *y);
    builder.metadata().opsets[""] = 17;
    const Graph graph = builder.build();
    const Status written = export_onnx(graph, folder.file("a.onnx"));
    ASSERT_TRUE(written.ok()) << written.error().message;
    const auto imported = import_onnx(folder.file("a.onnx"));
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    for (const int64_t n : {3, 4, 6}) {
      const std::map<std::string, Tensor> inputs{
          {"x", Tensor::from_values<double>(ElementType::Float32, {n, n},
                                            std::vector<double>(static_cast<size_t>(n * n), 1))}};
      const auto expected = interpret(graph, inputs), actual = interpret(imported->graph, inputs);
      ASSERT_TRUE(expected.ok()) << expected.error().message;
      ASSERT_TRUE(actual.ok()) << actual.error().message;
      EXPECT_EQ((*expected)[0].to_doubles(), (*actual)[0].to_doubles()) << to_string(diagonal);
    }
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

// Before opset 13 Softmax is over all axes from one on: what was one node is one node again.
TEST(OnnxExport, SoftmaxOverSeveralAxesIsOneNode) {
  const std::vector<Dims> shapes = {{2, 3, 4}, {"n", 3, 4}};
  for (const char* op : {"Softmax", "LogSoftmax"})
    for (const auto& shape : shapes)
      for (const bool reshaped : {false, true}) {
        if (reshaped && &shape != &shapes[0]) continue;
        const TestFolder folder;
        TestModel model(11);
        model.input("x", shape);
        model.constant(int_tensor("flat", {24}));
        model.node(op, {"x"}, {reshaped ? "s" : "y"}).name("the softmax");
        if (reshaped) model.node("Reshape", {"s", "flat"}, {"y"});
        model.output("y", reshaped ? Dims{24} : shape);
        const onnx::ModelProto b = written_again(model, folder);
        const auto imported = import_onnx(folder.file("a.onnx"));
        ASSERT_TRUE(imported.ok()) << imported.error().message;
        ASSERT_EQ(b.graph().node_size(), reshaped ? 2 : 1);
        EXPECT_EQ(b.graph().node(0).op_type(), op);
        EXPECT_EQ(b.graph().node(0).name(), "the softmax");
        EXPECT_EQ(b.graph().node(0).input(0), "x");
        ASSERT_EQ(b.graph().node(0).attribute_size(), 1);
        EXPECT_EQ(b.graph().node(0).attribute(0).i(), 1);
        const auto again = import_onnx(folder.file("b.onnx"));
        ASSERT_TRUE(again.ok()) << again.error().message;
        const auto inputs = random_inputs(imported->graph);
        const auto expected = interpret(imported->graph, inputs), actual = interpret(again->graph, inputs);
        ASSERT_TRUE(expected.ok() && actual.ok());
        EXPECT_EQ((*expected)[0].to_doubles(), (*actual)[0].to_doubles());
      }
}

// A Reshape that was merged with the one that the Softmax was read as.
TEST(OnnxExport, SoftmaxOfAMatrixTakesInOneOfItsReshapes) {
  for (const bool is_before : {false, true}) {
    const TestFolder folder;
    GraphBuilder builder;
    const Shape three{Index(2), Index(3), Index(4)}, other{Index(3), Index(8)};
    const Value x = builder.input("x", {ElementType::Float32, is_before ? other : three});
    const auto matrix = builder.apply(OpKind::Reshape, {x}, {{"shape", std::vector<Index>{2, 12}}});
    const auto soft = builder.apply(OpKind::Softmax, {*matrix}, {{"axis", Index(1)}});
    const auto y = builder.apply(OpKind::Reshape, {*soft}, {{"shape", is_before ? three : other}});
    ASSERT_TRUE(y.ok()) << y.error().message;
    builder.output("y", *y);
    builder.metadata().opsets[""] = 11;
    const Graph graph = builder.build();
    ASSERT_TRUE(export_onnx(graph, folder.file("a.onnx")).ok());
    onnx::ModelProto a;
    ASSERT_TRUE(a.ParseFromString(read_file(folder.file("a.onnx"))));
    ASSERT_EQ(a.graph().node_size(), 2);
    EXPECT_EQ(a.graph().node(is_before ? 0 : 1).op_type(), "Reshape");
    EXPECT_EQ(a.graph().node(is_before ? 1 : 0).op_type(), "Softmax");
    const auto imported = import_onnx(folder.file("a.onnx"));
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    const auto inputs = random_inputs(graph);
    const auto expected = interpret(graph, inputs), actual = interpret(imported->graph, inputs);
    ASSERT_TRUE(expected.ok() && actual.ok());
    EXPECT_EQ((*expected)[0].to_doubles(), (*actual)[0].to_doubles());
  }
}

TEST(OnnxImport, ShapeArithmeticOfStaticShapesDisappears) {
  const TestFolder folder;
  TestModel model(15);
  fill_sample("Opset15Ir8", model);
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
  for (const SampleModel& row : sample_models()) {
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

// Before opset 14 a 0 means the input's extent: an extent of 0 in another place is what is left of no elements.
TEST(RoundTripOfOldOpsets, NoElementsKeepTheirShape) {
  const TestFolder folder;
  TestModel model(11);
  model.input("x", {3, 0}, kInt64);
  model.constant(int_tensor("first", {0, -1, 1}));
  model.constant(int_tensor("second", {-1, 3}));
  model.node("Reshape", {"x", "first"}, {"a"});
  model.node("Reshape", {"a", "second"}, {"y"});
  model.output("y", {0, 3}, kInt64);
  const onnx::ModelProto written = written_again(model, folder);
  EXPECT_GT(written.graph().node_size(), 0);
  const auto again = import_onnx(folder.file("b.onnx"));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(to_string(again->graph.outputs()[0].value.type()), "i64[0,3]");
}

}  // namespace
}  // namespace gopt
