#include "opaque.h"

#include <algorithm>

#include "lowering.h"
#include "opaque_types.h"
#include "tensor_proto.h"

namespace gopt::ir {
namespace {

using Visit = std::function<void(std::string& name)>;

// Visits the names that a graph takes from outside.
void visit_free_names(onnx::GraphProto& graph, const std::set<std::string>& bound, const Visit& visit) {
  std::set<std::string> defined = bound;
  for (const auto& input : graph.input()) defined.insert(input.name());
  for (const auto& tensor : graph.initializer()) defined.insert(tensor.name());
  for (const auto& sparse : graph.sparse_initializer()) defined.insert(sparse.values().name());
  for (const auto& node : graph.node()) defined.insert(node.output().begin(), node.output().end());
  for (auto& node : *graph.mutable_node()) {
    for (std::string& name : *node.mutable_input())
      if (!name.empty() && !defined.contains(name)) visit(name);
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) visit_free_names(*attribute.mutable_g(), defined, visit);
      for (auto& inner : *attribute.mutable_graphs()) visit_free_names(inner, defined, visit);
    }
  }
  for (auto& output : *graph.mutable_output())
    if (!output.name().empty() && !defined.contains(output.name())) visit(*output.mutable_name());
}

void visit_free_names(onnx::NodeProto& node, const Visit& visit) {
  for (auto& attribute : *node.mutable_attribute()) {
    if (attribute.has_g()) visit_free_names(*attribute.mutable_g(), {}, visit);
    for (auto& graph : *attribute.mutable_graphs()) visit_free_names(graph, {}, visit);
  }
}

void collect_names(const onnx::GraphProto& graph, std::set<std::string>& names) {
  for (const auto& input : graph.input()) names.insert(input.name());
  for (const auto& tensor : graph.initializer()) names.insert(tensor.name());
  for (const auto& node : graph.node()) {
    names.insert(node.input().begin(), node.input().end());
    names.insert(node.output().begin(), node.output().end());
    collect_subgraph_names(node, names);
  }
}

// External tensors of attributes are read in: the node may be written to another folder.
Status internalize(onnx::TensorProto& proto, ExternalFiles& files) {
  if (proto.data_location() != onnx::TensorProto::EXTERNAL) return Unit{};
  TensorSource source{proto, {}};
  GOPT_ASSIGN_OR_RETURN(const Tensor tensor, take_tensor(source, files));
  proto = tensor_message(tensor, proto.name());
  return Unit{};
}

Status internalize(onnx::NodeProto& node, ExternalFiles& files);

Status internalize(onnx::GraphProto& graph, ExternalFiles& files) {
  for (auto& tensor : *graph.mutable_initializer()) GOPT_RETURN_IF_ERROR(internalize(tensor, files));
  for (auto& node : *graph.mutable_node()) GOPT_RETURN_IF_ERROR(internalize(node, files));
  return Unit{};
}

Status internalize(onnx::NodeProto& node, ExternalFiles& files) {
  for (auto& attribute : *node.mutable_attribute()) {
    if (attribute.has_t()) GOPT_RETURN_IF_ERROR(internalize(*attribute.mutable_t(), files));
    for (auto& tensor : *attribute.mutable_tensors()) GOPT_RETURN_IF_ERROR(internalize(tensor, files));
    if (attribute.has_g()) GOPT_RETURN_IF_ERROR(internalize(*attribute.mutable_g(), files));
    for (auto& graph : *attribute.mutable_graphs()) GOPT_RETURN_IF_ERROR(internalize(graph, files));
  }
  return Unit{};
}

// A declared type, with what was inferred where the file leaves an extent open.
TensorType with_inferred_extents(const ImportState& state, TensorType declared, const TensorType& inferred) {
  if (!inferred.shape || inferred.shape->size() != declared.shape->size()) return declared;
  for (size_t axis = 0; axis < declared.shape->size(); axis++) {
    std::set<AtomId> symbols;
    collect_symbols((*inferred.shape)[axis], symbols);
    const bool is_known =
        std::includes(state.input_symbols.begin(), state.input_symbols.end(), symbols.begin(), symbols.end());
    if (!(*declared.shape)[axis].is_constant() && is_known) (*declared.shape)[axis] = (*inferred.shape)[axis];
  }
  return declared;
}

bool is_unknown(const TensorType& type) { return type.element == ElementType::Undefined; }

}  // namespace

std::set<std::string> captured_names(const onnx::NodeProto& node) {
  std::set<std::string> names;
  bool has_graphs = false;
  for (const auto& attribute : node.attribute()) has_graphs |= attribute.has_g() || attribute.graphs_size() > 0;
  if (!has_graphs) return names;
  onnx::NodeProto copy = node;
  visit_free_names(copy, [&](std::string& name) { names.insert(name); });
  return names;
}

void collect_subgraph_names(const onnx::NodeProto& node, std::set<std::string>& names) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) collect_names(attribute.g(), names);
    for (const auto& graph : attribute.graphs()) collect_names(graph, names);
  }
}

void rename_captures(onnx::NodeProto& node, const std::map<std::string, std::string>& renamed) {
  visit_free_names(node, [&](std::string& name) {
    if (auto it = renamed.find(name); it != renamed.end()) name = it->second;
  });
}

Result<NodePtr> import_opaque(ImportState& state, const onnx::NodeProto& node, const std::vector<Value>& inputs,
                              NameScope& scope) {
  auto op = std::make_shared<OpaqueOp>();
  op->domain = normal_domain(node.domain());
  op->op_type = node.op_type();
  std::vector<Value> all = inputs;
  for (const std::string& name : captured_names(node)) {
    const Value* value = scope.find(name);
    if (!value) return Error{"a subgraph reads '" + name + "', which nothing defines"};
    op->captured_names.push_back(name);
    all.push_back(*value);
  }
  onnx::NodeProto kept = node;
  GOPT_RETURN_IF_ERROR(internalize(kept, state.file.external));
  kept.SerializeToString(&op->payload);
  std::vector<std::string> names(node.input().begin(), node.input().end());
  names.insert(names.end(), op->captured_names.begin(), op->captured_names.end());
  std::vector<TensorType> types = infer_opaque_types(state, node, names, all, scope);
  if (op->captured_names.empty() && std::ranges::all_of(types, is_unknown)) {
    const auto lowered = types_if_lowered(state, {node, inputs, scope, scope.opset()});
    std::copy_n(lowered.begin(), std::min(lowered.size(), types.size()), types.begin());
  }
  for (int i = 0; i < node.output_size(); i++) {
    const auto it = state.declared.find(node.output(i));
    if (scope.depth > 0 || it == state.declared.end() || !it->second.shape) continue;
    TensorType& type = types[static_cast<size_t>(i)];
    type = with_inferred_extents(state, it->second, type);
  }
  state.opaque_count++;
  return state.builder.opaque(std::move(op), std::move(all), std::move(types), node.name(),
                              {node.output().begin(), node.output().end()});
}

}  // namespace gopt::ir
