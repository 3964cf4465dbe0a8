// Shapes that a file declares: where ONNX's own inference was once wrong, the file still runs.
#include <gtest/gtest.h>

#include "gopt/onnx.h"
#include "model_builder.h"
#include "temporary_folder.h"

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
  const TemporaryFolder folder;
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

TEST(DeclaredShape, CeilModeThatIsDeclaredRightIsSilent) {
  const TemporaryFolder folder;
  TestModel model;
  fill_pool(model, 1);
  model.save(folder.file("m.onnx"));
  const auto imported = import_onnx(folder.file("m.onnx"));
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_TRUE(imported->warnings.empty());
}

}  // namespace
}  // namespace gopt
