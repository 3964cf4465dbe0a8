// Shapes that a file declares: where ONNX's own inference was once wrong, the file still runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "gopt/onnx.h"
#include "model_builder.h"
#include "test_folder.h"

namespace gopt {
namespace {

// Three elements with a padding behind them, windows of two in steps of three: a second one would start in the padding,
// so that there is one. ONNX's inference once said two.
void fill_pool(TestModel& model, int64_t declared) {
  model.input("x", {1, 1, 3});
  model.node("MaxPool", {"x"}, {"p"})
      .name("pool")
      .ints("kernel_shape", {2})
      .ints("strides", {3})
      .ints("pads", {0, 1})
      .i("ceil_mode", 1);
  model.node("Relu", {"p"}, {"y"});
  model.output("y", {1, 1, declared});
  model.value("p", {1, 1, declared});
}

TEST(DeclaredShape, CeilModeMayDeclareAWindowTooMany) {
  const TestFolder folder;
  TestModel model;
  fill_pool(model, 2);
  model.save(folder.file("m.onnx"));
  const auto imported = import_onnx(folder.file("m.onnx"));
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  ASSERT_EQ(imported->warnings.size(), 1u);
  EXPECT_NE(imported->warnings[0].find("pool"), std::string::npos) << imported->warnings[0];
  EXPECT_EQ(to_string(imported->graph.outputs()[0].value.type()), "f32[1,1,1]");
  ASSERT_TRUE(export_onnx(imported->graph, folder.file("out.onnx")).ok());
  const auto again = import_onnx(folder.file("out.onnx"));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_TRUE(again->warnings.empty());
}

// Also of what follows, where the window's own result is not declared.
TEST(DeclaredShape, CeilModeMayDeclareItsFollowersWrong) {
  const TestFolder folder;
  TestModel model;
  model.input("x", {1, 1, 3});
  model.node("MaxPool", {"x"}, {"p"})
      .ints("kernel_shape", {2})
      .ints("strides", {3})
      .ints("pads", {0, 1})
      .i("ceil_mode", 1);
  model.node("Relu", {"p"}, {"y"}).name("relu");
  model.output("y", {1, 1, 2});
  model.save(folder.file("m.onnx"));
  const auto imported = import_onnx(folder.file("m.onnx"));
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  ASSERT_EQ(imported->warnings.size(), 1u);
  EXPECT_NE(imported->warnings[0].find("relu"), std::string::npos) << imported->warnings[0];
  EXPECT_EQ(to_string(imported->graph.outputs()[0].value.type()), "f32[1,1,1]");
}

// Without it a declaration is what the file says, and the file is wrong.
TEST(DeclaredShape, OtherShapesThatAreDeclaredWrongAreErrors) {
  const TestFolder folder;
  TestModel model;
  model.input("x", {1, 1, 3});
  model.node("Relu", {"x"}, {"y"});
  model.output("y", {1, 1, 2});
  model.save(folder.file("m.onnx"));
  EXPECT_FALSE(import_onnx(folder.file("m.onnx")).ok());
}

TEST(DeclaredShape, CeilModeThatIsDeclaredRightIsSilent) {
  const TestFolder folder;
  TestModel model;
  fill_pool(model, 1);
  model.save(folder.file("m.onnx"));
  const auto imported = import_onnx(folder.file("m.onnx"));
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_TRUE(imported->warnings.empty());
}

TEST(DeclaredShape, QuestionMarksAreNoNameOfOneExtent) {
  const TestFolder folder;
  TestModel model;
  model.input("x", {std::string("?"), 3, std::string("?"), std::string("None")});
  model.node("Relu", {"x"}, {"y"});
  model.output("y", {std::string("?"), 3, std::string("?"), std::string("None")});
  model.save(folder.file("m.onnx"));
  const auto open = import_onnx(folder.file("m.onnx"));
  ASSERT_TRUE(open.ok()) << open.error().message;
  EXPECT_EQ(to_string(open->graph.inputs()[0].type()), "f32[x_dim0,3,x_dim2,x_dim3]");
  const auto fixed = import_onnx(folder.file("m.onnx"), {.shapes = {{"x", {1, 3, 4, 5}}}});
  ASSERT_TRUE(fixed.ok()) << fixed.error().message;
  EXPECT_EQ(to_string(fixed->graph.outputs()[0].value.type()), "f32[1,3,4,5]");
}

// What the model is once it was read, written and read again; an error in it where one of these fails.
Result<ImportedModel> round_trip(TestModel& model) {
  const TestFolder folder;
  model.save(folder.file("m.onnx"));
  GOPT_ASSIGN_OR_RETURN(const ImportedModel imported, import_onnx(folder.file("m.onnx")));
  GOPT_RETURN_IF_ERROR(export_onnx(imported.graph, folder.file("out.onnx")));
  return import_onnx(folder.file("out.onnx"));
}

// The extent of an opaque node's output is known by name alone: what needs it must go on reading it from that output.
TEST(DeclaredShape, ExtentsOfTheMiddleAreReadAtRunTime) {
  TestModel model;
  model.input("x", {2, 1});
  model.node("NonZero", {"x"}, {"places"}).name("nonzero");
  model.value("places", {2, std::string("found")}, kInt64);
  model.node("Shape", {"places"}, {"extents"});
  model.node("Expand", {"x", "extents"}, {"y"}).name("expand");
  model.output("y", {2, std::string("found")});
  const auto again = round_trip(model);
  ASSERT_TRUE(again.ok()) << again.error().message;
  const Graph& graph = again->graph;
  EXPECT_TRUE(std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const NodePtr& node) {
    return node->is(OpKind::Opaque) && node->opaque->op_type == "NonZero";
  }));
}

// libonnx overflows, divides by zero or reads past the end on these; the reader must not end with it.
TEST(OnnxImport, AttributesThatLibonnxCrashesOnLeaveTypesOpen) {
  const std::vector<std::function<void(TestModel&)>> models = {
      [](TestModel& m) { m.node("DepthToSpace", {"x"}, {"y"}).i("blocksize", int64_t{1} << 32); },
      [](TestModel& m) {
        m.node("LayerNormalization", {"x", "w"}, {"y"}).i("axis", int64_t{1} << 31);
      },
      [](TestModel& m) {
        m.node("ConvTranspose", {"b", "b"}, {"y"});
      },
      [](TestModel& m) {
        m.node("MaxPool", {"x"}, {"y"}).ints("kernel_shape", {2, 2, 2, 2, 2, 2, 2});
      },
  };
  for (size_t k = 0; k < models.size(); k++) {
    const TestFolder folder;
    TestModel model;
    model.input("x", {1, 4, 2, 2});
    model.input("w", {2, 2});
    model.input("b", {5}, kBool);
    models[k](model);
    model.node("Relu", {"x"}, {"z"});
    model.output("y", {"", "", "", ""});
    model.output("z", {1, 4, 2, 2});
    model.save(folder.file("m.onnx"));
    const auto imported = import_onnx(folder.file("m.onnx"));
    if (!imported.ok()) {
      EXPECT_FALSE(imported.error().message.empty()) << k;
      continue;
    }
    EXPECT_EQ(imported->graph.outputs().size(), 2u) << k;
  }
}

// After a crash the next node is inferred again.
TEST(OnnxImport, InferenceGoesOnAfterACrash) {
  const TestFolder folder;
  TestModel model;
  model.input("x", {1, 4, 2, 2});
  model.node("DepthToSpace", {"x"}, {"y"}).i("blocksize", int64_t{1} << 32);
  model.node("Hardmax", {"x"}, {"h"});
  model.output("y", {"", "", "", ""});
  model.node("Relu", {"h"}, {"r"});
  model.output("r", {1, 4, 2, 2});
  model.save(folder.file("m.onnx"));
  const auto imported = import_onnx(folder.file("m.onnx"));
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  const Node& relu = *imported->graph.outputs()[1].value.node;
  ASSERT_FALSE(relu.inputs.empty());
  EXPECT_EQ(to_string(relu.inputs[0].type()), "f32[1,4,2,2]");
}

// What an Einsum gives, by its equation, where the file leaves it open.
std::string type_of_einsum(const std::string& equation, const Dims& a, const Dims& b, size_t rank) {
  const TestFolder folder;
  TestModel model;
  model.input("a", a);
  model.input("b", b);
  model.node("Einsum", {"a", "b"}, {"y"}).s("equation", equation);
  model.output("y", Dims(rank, std::string()));
  model.save(folder.file("m.onnx"));
  const auto imported = import_onnx(folder.file("m.onnx"));
  EXPECT_TRUE(imported.ok()) << imported.error().message;
  return imported.ok() ? to_string(imported->graph.outputs()[0].value.type()) : "";
}

TEST(DeclaredShape, ExtentsOfAnEinsumFollowFromItsEquation) {
  const std::string n = "n", m = "m";
  EXPECT_EQ(type_of_einsum("bij,bjk->bik", {n, 3, 4}, {n, 4, 5}, 3), "f32[n,3,5]");
  EXPECT_EQ(type_of_einsum("ij,jk", {m, 3}, {3, n}, 2), "f32[m,n]");
  EXPECT_EQ(type_of_einsum("kj,ji", {m, 3}, {3, n}, 2), "f32[n,m]");  // in alphabetical order: i, k
  EXPECT_EQ(type_of_einsum("...ij,...jk->...ik", {n, 1, 3, 4}, {7, 4, 5}, 4), "f32[n,7,3,5]");
  EXPECT_EQ(type_of_einsum("aB,Bc", {n, 3}, {3, m}, 2), "f32[n,m]");
  EXPECT_EQ(type_of_einsum("ij,ij->i", {n, 3}, {4, 3}, 1), "f32[4]");       // n is 4, or 1
  EXPECT_EQ(type_of_einsum("ij,ij->i", {n, 3}, {m, 3}, 1), "f32[y_dim0]");  // either may be 1
}

// Of a window that reaches over its padded input runtimes make one place (by less than a stride) or none.
TEST(DeclaredShape, AWindowLargerThanItsInputIsKept) {
  for (const char* op : {"MaxPool", "AveragePool", "LpPool"}) {
    TestModel model;
    model.input("x", {1, 1, 2, 2});
    model.node(op, {"x"}, {"y"}).ints("kernel_shape", {3, 3}).ints("strides", {2, 2});
    model.output("y", {1, 1, 1, 1});
    const auto again = round_trip(model);
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(to_string(again->graph.outputs()[0].value.type()), "f32[1,1,1,1]") << op;
  }
}

}  // namespace
}  // namespace gopt
