#include "opaque_types.h"

#include <onnx/defs/schema.h>

#include <algorithm>
#include <mutex>

#include "declarations.h"
#include "einsum_equation.h"
#include "inference_process.h"

namespace gopt::ir {
namespace {

constexpr int64_t kDataBelow = 1024;  // elements of constants that inference may look at (sizes, axes, scales)
using Outputs = google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>;
constexpr int64_t kNewestKnown = 17;  // opset of libonnx 1.12

std::string type_text(ElementType type) {
  static const std::map<ElementType, std::string> texts = {
      {ElementType::Float32, "float"},     {ElementType::Float64, "double"}, {ElementType::Float16, "float16"},
      {ElementType::BFloat16, "bfloat16"}, {ElementType::Int8, "int8"},      {ElementType::Int16, "int16"},
      {ElementType::Int32, "int32"},       {ElementType::Int64, "int64"},    {ElementType::UInt8, "uint8"},
      {ElementType::UInt16, "uint16"},     {ElementType::UInt32, "uint32"},  {ElementType::UInt64, "uint64"},
      {ElementType::Bool, "bool"},         {ElementType::String, "string"}};
  const auto it = texts.find(type);
  return it == texts.end() ? "" : "tensor(" + it->second + ")";
}

// Where both branches of an If declare an output alike, it is so; of other subgraphs nothing is concluded.
std::vector<TensorType> branch_types(const ImportState& state, const onnx::NodeProto& node, const std::string& suffix) {
  std::vector<TensorType> types(static_cast<size_t>(node.output_size()));
  if (node.op_type() != "If" || node.attribute_size() != 2) return types;
  const onnx::GraphProto &one = node.attribute(0).g(), &other = node.attribute(1).g();
  for (int i = 0; i < node.output_size() && i < one.output_size() && i < other.output_size(); i++) {
    const std::string name = node.output(i) + suffix;
    const TensorType type = declared_type(state, one.output(i).type(), name);
    if (type == declared_type(state, other.output(i).type(), name)) types[static_cast<size_t>(i)] = type;
  }
  return types;
}

bool has_subgraph(const onnx::NodeProto& node) {
  return std::any_of(node.attribute().begin(), node.attribute().end(), [](const onnx::AttributeProto& attribute) {
    return attribute.has_g() || attribute.graphs_size() > 0;
  });
}

// Operators that have since been given more ranks, inputs or combinations of attributes than libonnx knows of.
bool is_wider_since(const std::string& op) {
  static const std::set<std::string> kWider = {"DFT", "GridSample", "OptionalHasElement"};
  return kWider.contains(op);
}

// True where libonnx's operator has all that the node says.
bool is_covered(const onnx::NodeProto& node, const std::vector<Value>& inputs, int64_t opset) {
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(node.op_type(), static_cast<int>(opset), "");
  if (!schema) return false;
  if (opset <= kNewestKnown) return true;
  for (const auto& attribute : node.attribute()) {
    if (!schema->attributes().contains(attribute.name())) return false;
    if ((attribute.name() == "to" || attribute.name() == "dtype") &&
        !onnx::TensorProto::DataType_IsValid(static_cast<int>(attribute.i())))
      return false;
  }
  if (node.input_size() > schema->max_input() || schema->inputs().empty()) return false;
  for (size_t i = 0; i < static_cast<size_t>(node.input_size()); i++) {
    if (!inputs[i]) continue;
    const auto& allowed = schema->inputs()[std::min(i, schema->inputs().size() - 1)].GetTypes();
    const std::string text = type_text(inputs[i].type().element);
    if (std::none_of(allowed.begin(), allowed.end(), [&](const auto* type) { return *type == text; })) return false;
  }
  return true;
}

// `declarations`: of values that are no tensors, which have no type of ours.
onnx::GraphProto graph_of(const onnx::NodeProto& node, const std::vector<std::string>& names,
                          const std::vector<Value>& inputs, const std::map<std::string, std::string>& declarations) {
  onnx::GraphProto graph;
  std::set<std::string> seen;
  for (size_t i = 0; i < names.size(); i++) {
    if (names[i].empty() || !inputs[i] || !seen.insert(names[i]).second) continue;
    const Node& producer = *inputs[i].node;
    onnx::ValueInfoProto& info = *graph.add_input();
    const auto declared = declarations.find(names[i]);
    const bool is_tensor = inputs[i].type().element != ElementType::Undefined;
    if (!is_tensor && declared != declarations.end()) info.ParseFromString(declared->second);
    info.set_name(names[i]);
    if (is_tensor) write_type(inputs[i].type(), info);
    if (producer.is(OpKind::Constant) && producer.tensor.count() <= kDataBelow)
      *graph.add_initializer() = tensor_message(producer.tensor, names[i]);
  }
  *graph.add_node() = node;
  const bool has_sides = std::ranges::any_of(node.attribute(), [](const auto& a) { return a.name() == "onesided"; });
  if (node.op_type() == "STFT" && !has_sides) {  // which ONNX has as 1, but libonnx infers by 0
    onnx::AttributeProto& sides = *graph.mutable_node(0)->add_attribute();
    sides.set_name("onesided");
    sides.set_type(onnx::AttributeProto::INT);
    sides.set_i(1);
  }
  for (const std::string& name : node.output())
    if (!name.empty()) graph.add_output()->set_name(name);
  return graph;
}

// Names that inference makes up for extents mean nothing beyond this one node: they are taken out again.
void forget_invented_names(onnx::GraphProto& graph) {
  std::set<std::string> known;
  for (const auto& input : graph.input())
    for (const auto& dim : input.type().tensor_type().shape().dim()) known.insert(dim.dim_param());
  for (auto& output : *graph.mutable_output()) {
    if (!output.type().has_tensor_type() || !output.type().tensor_type().has_shape()) continue;
    for (auto& dim : *output.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
      if (!dim.has_dim_value() && !known.contains(dim.dim_param())) dim.clear_value();
  }
}

// Old versions of libonnx infer the rank of an Einsum alone: its extents follow from the equation.
void infer_einsum_extents(const onnx::NodeProto& node, const std::vector<Value>& inputs, const std::string& name,
                          TensorType& type) {
  std::vector<Shape> shapes;
  std::vector<size_t> ranks;
  for (const Value& input : inputs) {
    if (!input || !input.type().shape) return;
    shapes.push_back(*input.type().shape);
    ranks.push_back(shapes.back().size());
  }
  const auto given = std::ranges::find(node.attribute(), "equation", &onnx::AttributeProto::name);
  if (given == node.attribute().end()) return;
  const auto equation = read_einsum(given->s(), ranks);
  if (!equation) return;
  const auto extents = einsum_extents(*equation, shapes);
  // Of labels in upper case, and of an ellipsis that stands for more axes in one input than in another, they say too
  // little or nothing.
  if (!type.shape || type.shape->size() != extents.size()) {
    type = {inputs[0].type().element, Shape()};
    for (size_t axis = 0; axis < extents.size(); axis++)
      type.shape->push_back(Index::from_atom(symbol_atom(name + "_dim" + std::to_string(axis))));
  }
  for (size_t axis = 0; axis < extents.size(); axis++)
    if (extents[axis]) (*type.shape)[axis] = *extents[axis];
}

}  // namespace

std::vector<TensorType> infer_opaque_types(ImportState& state, const onnx::NodeProto& node,
                                           const std::vector<std::string>& names, const std::vector<Value>& inputs,
                                           const NameScope& scope) {
  // Open extents are named after the value; names of inlined bodies may repeat.
  const std::string suffix = scope.depth > 0 ? "_" + std::to_string(state.opaque_count) : "";
  if (has_subgraph(node)) return branch_types(state, node, suffix);
  std::vector<TensorType> types(static_cast<size_t>(node.output_size()));
  if (!normal_domain(node.domain()).empty() || !is_covered(node, inputs, scope.opset())) return types;
  static InferenceProcess process;
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  auto graph = process.infer(graph_of(node, names, inputs, state.builder.metadata().declarations), scope.opsets);
  if (graph) forget_invented_names(*graph);  // what libonnx cannot make sense of stays unknown
  // Of an input whose type is not known it says that there is none, which is no fault of the node.
  const bool may_be_newer = scope.opset() > kNewestKnown, is_known = !may_be_newer || !is_wider_since(node.op_type()),
             is_told = graph && is_known && graph->doc_string().find("instead is null") == std::string::npos;
  // A newer opset may allow what this one refuses: said is whose words these are.
  const std::string opset = may_be_newer ? " (by opset " + std::to_string(kNewestKnown) + ")" : "";
  if (is_told && !graph->doc_string().empty() && node.output_size() > 0)
    state.warn("node of '" + node.output(0) + "' (" + node.op_type() +
               ") is kept as it is; ONNX's own check of it says" + opset + ": " + graph->doc_string());
  for (const auto& output : graph ? graph->output() : Outputs()) {
    const auto position = std::find(node.output().begin(), node.output().end(), output.name()) - node.output().begin();
    types[static_cast<size_t>(position)] = declared_type(state, output.type(), output.name() + suffix);
    if (scope.depth == 0 && (output.type().has_sequence_type() || output.type().has_optional_type()))
      state.builder.metadata().declarations.try_emplace(output.name(), output.SerializeAsString());
  }
  if (node.op_type() == "Einsum" && !types.empty())
    infer_einsum_extents(node, inputs, node.output(0) + suffix, types[0]);
  return types;
}

}  // namespace gopt::ir
