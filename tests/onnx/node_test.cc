// ONNX's own node tests, through the reader and the interpreter: other people's statement of what each operator
// computes.
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "gopt/interpreter.h"
#include "gopt/onnx.h"
#include "run_command.h"
#include "test_folder.h"

namespace gopt {
namespace {

namespace fs = std::filesystem;

constexpr int kFewestPassing = 571;  // of Debian 12's data, so that no operator drops out unseen

// What cannot hold here, each with its reason.
struct Excluded {
  std::string name, reason;
};
const std::vector<Excluded> kExcluded = {
    {"test_adam_multiple", "the data are of an epsilon of 0.01, which the model does not say"},
    {"test_batchnorm_epsilon_training_mode", "training statistics are outputs; the node stays opaque"},
    {"test_batchnorm_example_training_mode", "training statistics are outputs; the node stays opaque"},
    {"test_cast_BFLOAT16_to_FLOAT", "the test data hold bf16 numbers as u16"},
    {"test_cast_FLOAT_to_BFLOAT16", "the test data hold bf16 numbers as u16"},
    {"test_castlike_BFLOAT16_to_FLOAT", "the test data hold bf16 numbers as u16"},
    {"test_castlike_FLOAT_to_BFLOAT16", "the test data hold bf16 numbers as u16"},
    {"test_castlike_BFLOAT16_to_FLOAT_expanded", "the test data hold bf16 numbers as u16"},
    {"test_castlike_FLOAT_to_BFLOAT16_expanded", "the test data hold bf16 numbers as u16"},
    {"test_cast_FLOAT_to_STRING", "strings are not computed with; the node stays opaque"},
    {"test_cast_STRING_to_FLOAT", "strings are not computed with; the node stays opaque"},
    {"test_castlike_FLOAT_to_STRING_expanded", "strings are not computed with; the node stays opaque"},
    {"test_castlike_STRING_to_FLOAT_expanded", "strings are not computed with; the node stays opaque"},
    {"test_dropout_default_mask", "the mask is asked for; the node stays opaque"},
    {"test_dropout_default_mask_ratio", "the mask is asked for; the node stays opaque"},
    {"test_training_dropout", "training draws random numbers; the node stays opaque"},
    {"test_training_dropout_default", "training draws random numbers; the node stays opaque"},
    {"test_training_dropout_default_mask", "training draws random numbers; the node stays opaque"},
    {"test_training_dropout_mask", "training draws random numbers; the node stays opaque"},
    {"test_training_dropout_zero_ratio", "training mode; the node stays opaque"},
    {"test_training_dropout_zero_ratio_mask", "training mode; the node stays opaque"},
    {"test_maxpool_with_argmax_2d_precomputed_pads", "the second output, indices, is asked for; the node stays opaque"},
    {"test_maxpool_with_argmax_2d_precomputed_strides",
     "the second output, indices, is asked for; the node stays opaque"},
};

const Excluded* excluded(const std::string& name) {
  const auto it = std::find_if(kExcluded.begin(), kExcluded.end(), [&](const Excluded& e) { return e.name == name; });
  return it == kExcluded.end() ? nullptr : &*it;
}

bool is_in_table(const onnx::ModelProto& model) {
  return std::all_of(model.graph().node().begin(), model.graph().node().end(), [](const onnx::NodeProto& node) {
    const bool known = find_op(node.op_type()) || node.op_type() == "Constant" || node.op_type() == "Dropout";
    return node.domain().empty() && known;
  });
}

bool has_tensors_only(const onnx::ModelProto& model) {
  const auto is_tensor = [](const onnx::ValueInfoProto& info) { return info.type().has_tensor_type(); };
  return std::all_of(model.graph().input().begin(), model.graph().input().end(), is_tensor) &&
         std::all_of(model.graph().output().begin(), model.graph().output().end(), is_tensor);
}

// Names of graph inputs that the operator table has as attributes: the tests leave them open, models do not. The extent
// of Range depends on its inputs, however they are computed, so a model with one has all of its inputs fixed.
std::set<std::string> attribute_inputs(const onnx::ModelProto& model) {
  std::set<std::string> names;
  for (const auto& node : model.graph().node()) {
    if (node.op_type() == "Dropout") names.insert(node.input().begin() + 1, node.input().end());
    const auto kind = find_op(node.op_type());
    if (!kind) continue;
    if (*kind == OpKind::Range)
      for (const auto& input : model.graph().input()) names.insert(input.name());
    const OpInfo& info = op_info(*kind);
    if (info.onnx_inputs.empty()) continue;
    for (int i = info.max_inputs; i < node.input_size(); i++) names.insert(node.input(i));
  }
  return names;
}

onnx::TensorProto load_proto(const fs::path& path) {
  onnx::TensorProto proto;
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(proto.ParseFromIstream(&in)) << path;
  return proto;
}

// The model with such inputs as initializers, in a file.
void write_with_constants(onnx::ModelProto model, const std::set<std::string>& names, const fs::path& data,
                          const std::string& path) {
  onnx::GraphProto& graph = *model.mutable_graph();
  for (int i = 0, position = 0; i < graph.input_size(); position++) {
    const std::string name = graph.input(i).name();
    if (!names.contains(name)) {
      i++;
      continue;
    }
    onnx::TensorProto proto = load_proto(data / ("input_" + std::to_string(position) + ".pb"));
    proto.set_name(name);
    *graph.add_initializer() = proto;
    graph.mutable_input()->DeleteSubrange(i, 1);
  }
  std::ofstream out(path, std::ios::binary);
  ASSERT_TRUE(model.SerializeToOstream(&out));
}

// ONNX's own tolerance for floats; integers and bools are equal.
std::string difference(const Tensor& expected, const Tensor& actual) {
  if (expected.type() != actual.type() || expected.dims() != actual.dims())
    return to_string(actual.tensor_type()) + ", expected " + to_string(expected.tensor_type());
  if (!is_floating(expected.type()))
    return expected.to_ints() == actual.to_ints() ? "" : "other integers than expected";
  const std::vector<double> a = expected.to_doubles(), b = actual.to_doubles();
  for (size_t i = 0; i < a.size(); i++) {
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    if (!same && !(std::fabs(a[i] - b[i]) <= 1e-7 + 1e-3 * std::fabs(a[i])))
      return "element " + std::to_string(i) + " is " + std::to_string(b[i]) + ", expected " + std::to_string(a[i]);
  }
  return "";
}

// What is wrong with what the graph computes of one data set, if anything.
std::string run_graph(const Graph& graph, const onnx::ModelProto& model, const fs::path& data) {
  std::map<std::string, Tensor> inputs;
  for (int i = 0; i < model.graph().input_size(); i++) {  // more than the graph still needs
    auto tensor = read_tensor_proto(data / ("input_" + std::to_string(i) + ".pb"));
    if (!tensor.ok()) return tensor.error().message;
    inputs[model.graph().input(i).name()] = *std::move(tensor);
  }
  const auto outputs = interpret(graph, inputs);
  if (!outputs.ok()) return outputs.error().message;
  for (size_t i = 0; i < outputs->size(); i++) {
    const auto expected = read_tensor_proto(data / ("output_" + std::to_string(i) + ".pb"));
    if (!expected.ok()) return expected.error().message;
    if (const std::string text = difference(*expected, (*outputs)[i]); !text.empty())
      return "output " + std::to_string(i) + ": " + text;
  }
  return "";
}

std::string run_data_set(const onnx::ModelProto& model, const fs::path& data, const TestFolder& folder) {
  const std::string path = folder.file("model.onnx");
  write_with_constants(model, attribute_inputs(model), data, path);
  const auto imported = import_onnx(path);
  return imported.ok() ? run_graph(imported->graph, model, data) : imported.error().message;
}

// Sizes, scales, axes and the like, which only fixed ones can be lowered by.
std::set<std::string> small_inputs(const onnx::ModelProto& model) {
  std::set<std::string> names;
  for (const onnx::ValueInfoProto& input : model.graph().input())
    if (input.type().tensor_type().shape().dim_size() <= 1) names.insert(input.name());
  return names;
}

bool has_unknown_nodes(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const NodePtr& node) { return node->is(OpKind::Opaque) && !node->is_whole(); });
}

// The model lowered, its small inputs as they are or, where that is not enough, fixed. Nothing where nodes remain.
std::optional<Graph> lowered(const onnx::ModelProto& model, const fs::path& data, const TestFolder& folder) {
  ImportOptions options;
  options.lower = true;
  const std::string path = folder.file("model.onnx");
  for (const std::set<std::string>& fixed : {std::set<std::string>(), small_inputs(model)}) {
    write_with_constants(model, fixed, data, path);
    const auto imported = import_onnx(path, options);
    if (imported.ok() && !has_unknown_nodes(imported->graph)) return imported->graph;
  }
  return std::nullopt;
}

std::vector<fs::path> test_folders() {
  std::vector<fs::path> folders;
  const char* other = std::getenv("GOPT_ONNX_TESTDATA");  // data of another version
  const fs::path root = fs::path(other ? other : GOPT_ONNX_TESTDATA) / "node";
  if (fs::exists(root))
    for (const auto& entry : fs::directory_iterator(root)) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  return folders;
}

TEST(OnnxNodeTests, EveryOperatorOfTheTableComputesWhatOnnxSays) {
  const std::vector<fs::path> folders = test_folders();
  if (folders.empty()) GTEST_SKIP() << "ONNX's test data are not installed (Debian: libonnx-testdata)";
  const TestFolder folder;
  int passed = 0, other = 0, left_out = 0;
  for (const fs::path& test : folders) {
    onnx::ModelProto model;
    std::ifstream in(test / "model.onnx", std::ios::binary);
    ASSERT_TRUE(model.ParseFromIstream(&in)) << test;
    if (!is_in_table(model) || !has_tensors_only(model)) {
      other++;
      continue;
    }
    if (excluded(test.filename())) {
      left_out++;
      continue;
    }
    std::string wrong;
    for (int set = 0; fs::exists(test / ("test_data_set_" + std::to_string(set))) && wrong.empty(); set++)
      wrong = run_data_set(model, test / ("test_data_set_" + std::to_string(set)), folder);
    EXPECT_EQ(wrong, "") << test.filename();
    passed += wrong.empty() ? 1 : 0;
  }
  std::cout << passed << " node tests pass, " << left_out << " are excluded with a reason, " << other
            << " use operators that are not in the table\n";
  EXPECT_GE(passed, kFewestPassing);
}

TEST(OnnxNodeTests, WhatIsLoweredComputesWhatOnnxSays) {
  const std::vector<fs::path> folders = test_folders();
  if (folders.empty()) GTEST_SKIP() << "ONNX's test data are not installed (Debian: libonnx-testdata)";
  constexpr int kFewestLowered = 281;
  const TestFolder folder;
  int right = 0, left = 0;
  for (const fs::path& test : folders) {
    onnx::ModelProto model;
    std::ifstream in(test / "model.onnx", std::ios::binary);
    ASSERT_TRUE(model.ParseFromIstream(&in)) << test;
    const fs::path data = test / "test_data_set_0";
    if (is_in_table(model) || !has_tensors_only(model) || excluded(test.filename()) || !fs::exists(data)) continue;
    const std::optional<Graph> graph = lowered(model, data, folder);
    left += graph ? 0 : 1;
    if (!graph) continue;
    EXPECT_EQ(run_graph(*graph, model, data), "") << test.filename();
    right++;
  }
  std::cout << right << " node tests of operators that are lowered, " << left << " of others\n";
  EXPECT_GE(right, kFewestLowered);
}

// Every model of the suite, those with nodes that are not in the table too, is read, written, and run by another
// reader.
TEST(OnnxNodeTests, WhatIsWrittenComputesTheSameInOnnxRuntime) {
  const std::vector<fs::path> folders = test_folders();
  if (folders.empty()) GTEST_SKIP() << "ONNX's test data are not installed (Debian: libonnx-testdata)";
  if (!python_has("onnxruntime, onnx")) GTEST_SKIP() << "no Python with ONNX Runtime (set GOPT_PYTHON to one)";
  const TestFolder folder;
  for (const fs::path& test : folders) {
    const auto imported = import_onnx(test / "model.onnx");
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    const Status written = export_onnx(imported->graph, folder.file(test.filename().string() + ".onnx"));
    ASSERT_TRUE(written.ok()) << written.error().message;
  }
  const Outcome outcome = run_command(test_python() + " " GOPT_CHECK_BACKEND " " + folders[0].parent_path().string() +
                                      " " + folder.path().string());
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  std::cout << outcome.text;
}

}  // namespace
}  // namespace gopt
