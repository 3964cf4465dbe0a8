// export_onnx: names, declarations, and the order in which all is written.
#include "declarations.h"
#include "export_plan.h"
#include "opaque.h"
#include "stream.h"
#include "tensor_proto.h"

namespace gopt::ir {
namespace {

constexpr int64_t kDefaultOpset = 17;

// ---- declarations ----

// An input or output as the file declared it, with its type of today.
onnx::ValueInfoProto declaration(const Graph& graph, const std::string& name, const TensorType& type) {
  onnx::ValueInfoProto info;
  const auto& known = graph.metadata().declarations;
  if (const auto it = known.find(name); it != known.end()) info.ParseFromString(it->second);
  info.set_name(name);
  if (type.shape) {
    // Extents of numbers that no longer hold give way; symbols that the file gave stay.
    if (info.type().has_tensor_type() && info.type().tensor_type().has_shape())
      for (auto& dim : *info.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
        if (dim.has_dim_value()) dim.clear_value();
  }
  write_type(type, info);
  return info;
}

TensorType output_type(const Graph& graph, const GraphOutput& output) {
  TensorType type = output.value.type();
  const auto it = graph.metadata().declared.find(output.name);
  if (it == graph.metadata().declared.end() || !it->second.shape) return type;
  if (!type.shape) return it->second;
  if (type.shape->size() != it->second.shape->size()) return type;
  for (size_t axis = 0; axis < type.shape->size(); axis++)
    if (!(*type.shape)[axis].is_constant()) (*type.shape)[axis] = (*it->second.shape)[axis];
  return type;
}

// ---- names ----

void reserve_names(ExportState& state, const ExportPlan& plan) {
  for (const Value& input : state.graph.inputs()) state.names.reserve(input.node->name);
  for (const GraphOutput& output : state.graph.outputs()) state.names.reserve(output.name);
  std::set<std::string> inner;
  for (const NodePtr& node : plan.nodes) {
    if (!node->is(OpKind::Opaque)) continue;
    onnx::NodeProto proto;
    if (proto.ParseFromString(node->opaque->payload)) collect_subgraph_names(proto, inner);
    for (const std::string& captured : node->opaque->captured_names) inner.erase(captured);
  }
  for (const std::string& name : inner) state.names.reserve(name);
}

// Output names go to the values themselves where they can: not to inputs, initializers, and values that have one
// already.
void name_outputs(ExportState& state, const ExportPlan& plan, std::vector<const GraphOutput*>& copies) {
  const std::set<Value> initializers(plan.initializers.begin(), plan.initializers.end());
  for (const GraphOutput& output : state.graph.outputs()) {
    const Value& value = output.value;
    if (value.node->is(OpKind::Input) && value.node->name == output.name) continue;
    const bool taken =
        value.node->is(OpKind::Input) || initializers.contains(value) || state.value_names.contains(value);
    if (taken) {
      copies.push_back(&output);
    } else {
      state.value_names[value] = output.name;
    }
  }
}

std::string wanted_name(const Value& value) {
  const auto& names = value.node->output_names;
  const auto k = static_cast<size_t>(value.output);
  if (k < names.size() && !names[k].empty()) return names[k];
  if (value.node->is(OpKind::Constant)) return value.node->name.empty() ? "constant" : value.node->name;
  const std::string op = value.node->opaque ? value.node->opaque->op_type : op_info(value.node->op).name;
  return op + (value.output > 0 ? "_value" + std::to_string(value.output) : "_value");
}

void name_values(ExportState& state, const ExportPlan& plan) {
  std::set<Value> used;
  for (const NodePtr& node : plan.nodes) used.insert(node->inputs.begin(), node->inputs.end());
  for (const Value& value : plan.initializers) state.value_names[value] = state.names.unique(wanted_name(value));
  for (const NodePtr& node : plan.nodes) {
    std::vector<std::string>& names = state.output_names[node.get()];
    for (int k = 0; k < static_cast<int>(node->outputs.size()); k++) {
      const Value value{node, k};
      const bool unnamed =
          static_cast<size_t>(k) >= node->output_names.size() || node->output_names[static_cast<size_t>(k)].empty();
      std::string& name = state.value_names[value];
      if (name.empty() && (!unnamed || used.contains(value) || !node->is(OpKind::Opaque)))
        name = state.names.unique(wanted_name(value));
      names.push_back(name);
    }
  }
}

// ---- the file ----

// Types of values between the nodes: those of opaque nodes cannot be inferred again.
void write_value_infos(ExportState& state, const ExportPlan& plan) {
  std::set<Value> outputs;
  for (const GraphOutput& output : state.graph.outputs()) outputs.insert(output.value);
  for (const NodePtr& node : plan.nodes) {
    for (int k = 0; k < static_cast<int>(node->outputs.size()); k++) {
      const Value value{node, k};
      const std::string name = state.name_of(value);
      const bool is_known = value.type().element != ElementType::Undefined && value.type().shape;
      const bool is_declared = state.graph.metadata().declarations.contains(name);
      if (name.empty() || outputs.contains(value) || (!is_known && !is_declared)) continue;
      *state.message.add_value_info() = declaration(state.graph, name, value.type());
    }
  }
}

// Annotations and the like name tensors; those of tensors that are gone go with them.
void keep_known_annotations(onnx::GraphProto& graph, const std::set<std::string>& names) {
  auto& annotations = *graph.mutable_quantization_annotation();
  for (int i = annotations.size(); i-- > 0;) {
    bool known = names.contains(annotations[i].tensor_name());
    for (const auto& entry : annotations[i].quant_parameter_tensor_names()) known &= names.contains(entry.value());
    if (!known) annotations.DeleteSubrange(i, 1);
  }
}

onnx::ModelProto model_head(const Metadata& metadata, int64_t opset) {
  onnx::ModelProto model;
  if (!metadata.remainder.empty()) model.ParseFromString(metadata.remainder);
  model.clear_graph();
  model.set_ir_version(metadata.ir_version);
  const auto set = [](const std::string& text, auto&& setter) {
    if (!text.empty()) setter(text);
  };
  set(metadata.producer_name, [&](const std::string& text) { model.set_producer_name(text); });
  set(metadata.producer_version, [&](const std::string& text) { model.set_producer_version(text); });
  set(metadata.domain, [&](const std::string& text) { model.set_domain(text); });
  set(metadata.doc_string, [&](const std::string& text) { model.set_doc_string(text); });
  if (metadata.model_version != 0) model.set_model_version(metadata.model_version);
  std::map<std::string, int64_t> opsets = metadata.opsets;
  opsets[""] = opset;
  for (const auto& [domain, version] : opsets) {
    auto& import = *model.add_opset_import();
    import.set_domain(domain);
    import.set_version(version);
  }
  for (const auto& [key, value] : metadata.properties) {
    auto& entry = *model.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  for (const std::string& function : metadata.functions) model.add_functions()->ParseFromString(function);
  return model;
}

void start_message(ExportState& state) {
  const Metadata& metadata = state.graph.metadata();
  onnx::ModelProto rest;
  if (!metadata.remainder.empty() && rest.ParseFromString(metadata.remainder)) state.message = rest.graph();
  state.message.set_name(metadata.name.empty() ? "graph" : metadata.name);
  for (const Value& input : state.graph.inputs())
    *state.message.add_input() = declaration(state.graph, input.node->name, input.type());
  for (const GraphOutput& output : state.graph.outputs())
    *state.message.add_output() = declaration(state.graph, output.name, output_type(state.graph, output));
}

// Before IR 4 an initializer has to be an input too.
void declare_initializers(ExportState& state) {
  for (const PendingTensor& tensor : state.tensors) {
    onnx::ValueInfoProto& info = *state.message.add_input();
    info.set_name(tensor.name);
    write_type(tensor.type(), info);
  }
}

// Default values of inputs, which the reader left in what remained of the model.
void write_defaults(ExportState& state) {
  google::protobuf::RepeatedPtrField<onnx::TensorProto> defaults;
  defaults.Swap(state.message.mutable_initializer());
  for (onnx::TensorProto& proto : defaults) {
    const auto type = static_cast<ElementType>(proto.data_type());
    if (!is_computable(type)) {
      *state.message.add_initializer() = std::move(proto);
      continue;
    }
    const auto bytes = std::as_bytes(std::span(proto.raw_data().data(), proto.raw_data().size()));
    const std::vector<int64_t> dims(proto.dims().begin(), proto.dims().end());
    state.tensors.push_back({proto.name(), Tensor::from_bytes(type, dims, {bytes.begin(), bytes.end()}), {}});
  }
}

std::string describe(const Node& node) {
  const std::string op = node.opaque ? node.opaque->op_type : op_info(node.op).name;
  return node.name.empty() ? op : "node '" + node.name + "' (" + op + ")";
}

int64_t opset_of(const Graph& graph) {
  const auto& opsets = graph.metadata().opsets;
  const auto opset = opsets.find("");
  return opset == opsets.end() ? kDefaultOpset : opset->second;
}

Status export_graph(ExportState& state) {
  state.flat_softmaxes = flat_softmaxes(state.graph, state.opset);
  const ExportPlan plan = plan_export(state);
  start_message(state);
  write_defaults(state);
  reserve_names(state, plan);
  for (const Value& input : state.graph.inputs()) {
    state.value_names[input] = input.node->name;
    state.written.insert(input.node.get());
  }
  std::vector<const GraphOutput*> copies;
  name_outputs(state, plan, copies);
  name_values(state, plan);
  for (const Value& value : plan.initializers) {
    const bool constant = value.node->is(OpKind::Constant);
    state.tensors.push_back(
        {state.name_of(value), constant ? value.node->tensor : Tensor(), constant ? Value{} : value});
    state.written.insert(value.node.get());
  }
  for (const NodePtr& node : plan.nodes) {
    if (const Status status = export_node(state, *node); !status.ok())
      return Error{describe(*node) + ": " + status.error().message};
    state.written.insert(node.get());
  }
  for (const GraphOutput* output : copies) state.add("Identity", {state.name_of(output->value)}, output->name);
  write_value_infos(state, plan);
  if (state.graph.metadata().ir_version < 4) declare_initializers(state);
  std::set<std::string> names;
  for (const auto& [value, name] : state.value_names) names.insert(name);
  keep_known_annotations(state.message, names);
  return Unit{};
}

}  // namespace

}  // namespace gopt::ir

namespace gopt {

using namespace ir;

Status check_exportable(const Graph& graph) {
  ExportState state(graph);
  state.opset = opset_of(graph);
  return export_graph(state);
}

Status stage_onnx(const Graph& graph, const std::string& path, const ExportOptions& options, StagedFiles& staged) {
  ExportState state(graph);
  state.opset = opset_of(graph);
  if (const Status status = export_graph(state); !status.ok()) return Error{path + ": " + status.error().message};
  return stream_model(model_head(graph.metadata(), state.opset), state.message, state.tensors, path, options, staged);
}

Status export_onnx(const Graph& graph, const std::string& path, const ExportOptions& options) {
  StagedFiles staged;
  GOPT_RETURN_IF_ERROR(stage_onnx(graph, path, options, staged));
  return staged.commit();
}

}  // namespace gopt
