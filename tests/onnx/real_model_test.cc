// Real architectures (tests/models), with weights made by their script: all of their operators are known, and they
// survive a round trip and a change of batch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "gopt/onnx.h"
#include "run_command.h"
#include "test_folder.h"

namespace gopt {
namespace {

namespace fs = std::filesystem;

std::map<std::string, int> count_operators(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const NodePtr& node : graph.nodes())
    counts[node->opaque ? "opaque " + node->opaque->op_type : op_info(node->op).name]++;
  return counts;
}

struct RealModel {
  std::string path;
  std::vector<int64_t> batched_input;
  std::vector<int64_t> batched_output;
};
void PrintTo(const RealModel& row, std::ostream* out) { *out << row.path; }

const std::vector<RealModel> kModels = {
    {"torchscript/squeezenet1_1", {3, 3, 224, 224}, {3, 1000}},
    {"dynamo/squeezenet1_1", {3, 3, 224, 224}, {3, 1000}},
    {"torchscript/mobilenet_v2", {3, 3, 224, 224}, {3, 1000}},
    {"dynamo/mobilenet_v2", {3, 3, 224, 224}, {3, 1000}},
    {"torchscript/nasrnn", {5, 3, 512}, {3, 512}},
    {"dynamo/nasrnn", {5, 3, 512}, {3, 512}},
};

class RealModelTest : public testing::TestWithParam<RealModel> {};

TEST_P(RealModelTest, IsKnownThroughout) {
  if (!python_has("numpy")) GTEST_SKIP() << "no Python with NumPy to make the weights (set GOPT_PYTHON to one)";
  const TestFolder folder;
  const std::string models = GOPT_TEST_MODELS, name = GetParam().path;
  ASSERT_EQ(std::system((test_python() + " " + models + "/fill_weights.py " + folder.path().string() + " " + models +
                         "/" + name + ".onnx >/dev/null")
                            .c_str()),
            0);
  const auto first = import_onnx(folder.file(name + ".onnx"));
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_TRUE(first->warnings.empty());
  const auto counts = count_operators(first->graph);
  for (const auto& [op, count] : counts) EXPECT_FALSE(op.starts_with("opaque")) << op;
  ASSERT_TRUE(export_onnx(first->graph, folder.file("out.onnx")).ok());
  const auto second = import_onnx(folder.file("out.onnx"));
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_EQ(count_operators(second->graph), counts);

  ImportOptions options;
  options.shapes["input"] = GetParam().batched_input;
  const auto batched = import_onnx(folder.file(name + ".onnx"), options);
  ASSERT_TRUE(batched.ok()) << batched.error().message;
  EXPECT_EQ(batched->graph.outputs()[0].value.type().static_shape(), GetParam().batched_output);
}

INSTANTIATE_TEST_SUITE_P(Onnx, RealModelTest, testing::ValuesIn(kModels), [](const auto& info) {
  std::string name = info.param.path;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
});

TEST(RealModel, WithoutItsWeightsIsAnErrorThatNamesTheFile) {
  const auto imported = import_onnx(std::string(GOPT_TEST_MODELS) + "/dynamo/nasrnn.onnx");
  ASSERT_FALSE(imported.ok());
  EXPECT_NE(imported.error().message.find("nasrnn.weights"), std::string::npos) << imported.error().message;
}

}  // namespace
}  // namespace gopt
