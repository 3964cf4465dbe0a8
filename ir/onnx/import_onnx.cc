// import_onnx: the whole file, from its inputs to its outputs.
#include <algorithm>

#include "dimensions.h"
#include "import_state.h"
#include "opaque.h"
#include "tensor_proto.h"

namespace gopt::ir {
namespace {

constexpr int64_t kOldestOpset = 7, kNewestOpset = 26;

// ---- parts of the graph ----

// Inputs with a default value that a caller may put another for.
std::set<std::string> overridable_inputs(const ImportState& state) {
  std::set<std::string> names, both;
  if (state.options.freeze_initializers || state.file.model.ir_version() < 4) return both;
  for (const TensorSource& source : state.file.initializers) names.insert(source.proto.name());
  for (const auto& input : state.file.model.graph().input())
    if (names.contains(input.name())) both.insert(input.name());
  return both;
}

// Default values stay in what is left of the model, where the writer finds them.
void keep_defaults(ImportState& state, const onnx::GraphProto& defaults) {
  if (defaults.initializer_size() == 0) return;
  state.warn(std::to_string(defaults.initializer_size()) + " inputs have a default value ('" +
             defaults.initializer(0).name() +
             "', say) and may be given another: they are not folded; --freeze-initializers makes them constants");
  onnx::ModelProto rest;
  rest.ParseFromString(state.builder.metadata().remainder);
  rest.mutable_graph()->MergeFrom(defaults);
  state.builder.metadata().remainder = rest.SerializeAsString();
}

Status import_inputs(ImportState& state, NameScope& scope, const std::set<std::string>& constants) {
  for (const auto& input : state.file.model.graph().input()) {
    if (input.name().empty()) return Error{"a graph input has no name"};
    if (constants.contains(input.name())) {
      if (state.file.model.ir_version() >= 4)
        state.warn("input '" + input.name() + "' has a default value, which is taken as a constant");
      continue;
    }
    if (scope.values.contains(input.name())) return Error{"two graph inputs are named '" + input.name() + "'"};
    TensorType type = declared_type(state, input.type(), input.name());
    if (const auto it = state.options.shapes.find(input.name()); it != state.options.shapes.end())
      type.shape = Shape(it->second.begin(), it->second.end());
    if (type.shape)
      for (const Index& extent : *type.shape) collect_symbols(extent, state.input_symbols);
    state.seen_types[input.name()] = type;
    scope.values[input.name()] = state.builder.input(input.name(), type);
    state.builder.metadata().declarations[input.name()] = input.SerializeAsString();
  }
  return Unit{};
}

// Types that the file declares for values; their shapes are void once --shape changes extents.
void read_declared_types(ImportState& state) {
  const onnx::GraphProto& graph = state.file.model.graph();
  const auto take = [&](const onnx::ValueInfoProto& info) {
    TensorType type = declared_type(state, info.type(), info.name());
    if (state.original_types) type.shape.reset();
    state.declared[info.name()] = std::move(type);
  };
  for (const auto& info : graph.value_info()) {
    take(info);
    if (!state.original_types) state.builder.metadata().declarations[info.name()] = info.SerializeAsString();
  }
  for (const auto& info : graph.output()) take(info);
}

Status import_outputs(ImportState& state, const NameScope& scope) {
  std::set<std::string> names;
  for (const auto& output : state.file.model.graph().output()) {
    const Value* value = scope.find(output.name());
    if (!value) return Error{"graph output '" + output.name() + "' is defined by nothing"};
    if (!names.insert(output.name()).second) return Error{"two graph outputs are named '" + output.name() + "'"};
    state.builder.output(output.name(), *value);
    state.builder.metadata().declarations[output.name()] = output.SerializeAsString();
    const TensorType& declared = state.declared[output.name()];
    if (declared.shape) state.builder.metadata().declared[output.name()] = declared;
  }
  if (names.empty()) return Error{"the graph has no outputs"};
  return Unit{};
}

Result<Opsets> read_opsets(ImportState& state) {
  Opsets opsets;
  for (const auto& opset : state.file.model.opset_import()) opsets[normal_domain(opset.domain())] = opset.version();
  const auto& nodes = state.file.model.graph().node();
  const bool needed = std::any_of(nodes.begin(), nodes.end(),
                                  [](const onnx::NodeProto& node) { return normal_domain(node.domain()).empty(); });
  if (!opsets.contains("") && needed)
    return Error{"the file names no version of ONNX's operators (opset_import); it may be truncated"};
  if (!opsets.contains("")) return opsets;
  const int64_t opset = opsets[""];
  if (opset < kOldestOpset)
    state.warn("opset " + std::to_string(opset) + " is older than " + std::to_string(kOldestOpset) +
               ": its operators are kept as they are");
  if (opset > kNewestOpset)
    state.warn("opset " + std::to_string(opset) + " is newer than " + std::to_string(kNewestOpset) +
               ": what is not known of it is kept as it is");
  return opsets;
}

// What is left of the model without all that is read from it: documentation of the graph, quantization annotations, and
// fields of newer versions of the format, which the message classes carry along unseen.
onnx::ModelProto remainder_of(onnx::ModelProto& model) {
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
  nodes.Swap(model.mutable_graph()->mutable_node());
  onnx::ModelProto rest = model;
  nodes.Swap(model.mutable_graph()->mutable_node());
  rest.clear_opset_import();
  rest.clear_metadata_props();
  rest.clear_training_info();
  rest.clear_functions();
  onnx::GraphProto& graph = *rest.mutable_graph();
  graph.clear_input();
  graph.clear_output();
  graph.clear_value_info();
  graph.clear_sparse_initializer();
  return rest;
}

// All of the model's own fields but its graph, and of the graph's but what this reader understands.
void read_metadata(ImportState& state, const Opsets& opsets) {
  onnx::ModelProto& model = state.file.model;
  Metadata& metadata = state.builder.metadata();
  metadata.name = model.graph().name();
  metadata.doc_string = model.doc_string();
  metadata.producer_name = model.producer_name();
  metadata.producer_version = model.producer_version();
  metadata.domain = model.domain();
  metadata.model_version = model.model_version();
  metadata.ir_version = model.ir_version();
  metadata.opsets = opsets;
  for (const auto& entry : model.metadata_props()) metadata.properties[entry.key()] = entry.value();
  for (const auto& function : model.functions()) metadata.functions.push_back(function.SerializeAsString());
  if (model.training_info_size() > 0) state.warn("the training information is left out");
  metadata.remainder = remainder_of(model).SerializeAsString();
}

void count_operators(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                     std::map<std::string, int>& counts) {
  for (const auto& node : nodes) {
    const std::string domain = normal_domain(node.domain());
    if (!domain.empty() || node.op_type() != "Constant")
      counts[domain.empty() ? node.op_type() : domain + "." + node.op_type()]++;
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) count_operators(attribute.g().node(), counts);
      for (const auto& body : attribute.graphs()) count_operators(body.node(), counts);
    }
  }
}

Result<Graph> import_model(ImportState& state) {
  GOPT_RETURN_IF_ERROR(apply_shape_options(state));
  state.builder.set_broadcast_unknown(true);
  NameScope scope;
  GOPT_ASSIGN_OR_RETURN(scope.opsets, read_opsets(state));
  read_metadata(state, scope.opsets);
  for (const auto& function : state.file.model.functions()) {
    const auto [it, added] =
        state.functions.emplace(std::pair(normal_domain(function.domain()), function.name()), &function);
    if (!added) it->second = nullptr;  // overloads, which these message classes cannot tell apart: calls stay calls
  }
  read_declared_types(state);
  const std::set<std::string> overridable = overridable_inputs(state);
  std::set<std::string> constants = initializer_names(state.file);
  for (const std::string& name : overridable) constants.erase(name);
  GOPT_RETURN_IF_ERROR(import_inputs(state, scope, constants));
  onnx::GraphProto defaults;
  std::set<std::string> seen_defaults;
  for (TensorSource& source : state.file.initializers) {
    const std::string name = source.proto.name();
    auto tensor = take_tensor(source, state.file.external);
    if (!tensor.ok()) return Error{"initializer '" + name + "' " + tensor.error().message};
    if (overridable.contains(name)) {
      if (!seen_defaults.insert(name).second) return Error{"two initializers are named '" + name + "'"};
      *defaults.add_initializer() = tensor_message(*tensor, name);
      continue;
    }
    if (scope.values.contains(name)) return Error{"two initializers are named '" + name + "'"};
    scope.values[name] = state.builder.constant(*std::move(tensor), name);
  }
  keep_defaults(state, defaults);
  onnx::GraphProto& graph = *state.file.model.mutable_graph();
  GOPT_RETURN_IF_ERROR(import_initializers(state, graph, scope));
  for (const auto& output : graph.output()) scope.used.insert(output.name());
  GOPT_RETURN_IF_ERROR(import_nodes(state, *graph.mutable_node(), scope));
  GOPT_RETURN_IF_ERROR(import_outputs(state, scope));
  if (state.shapes_changed > 0)
    state.warn("--shape: " + std::to_string(state.shapes_changed) +
               " constants that held the old extents follow the new ones; compare the results with the original's");
  return state.builder.build();
}

// Extents that depend on data and that some node is made by, though the node that says them is not in the graph: what
// it gives was only counted, and that was known as an extent.
std::set<AtomId> extents_of_nothing(const Graph& graph, const std::set<AtomId>& of_inputs) {
  std::set<AtomId> used, said = of_inputs;
  for (const NodePtr& node : graph.nodes()) {
    for (const auto& [_, attribute] : node->attributes) collect_symbols(attribute, used);
    if (!node->is(OpKind::Opaque) && !node->is(OpKind::Input)) continue;
    for (const TensorType& type : node->outputs)
      if (type.shape)
        for (const Index& extent : *type.shape) collect_symbols(extent, said);
  }
  std::set<AtomId> lost;
  std::ranges::set_difference(used, said, std::inserter(lost, lost.end()));
  return lost;
}

}  // namespace

const Value* NameScope::find(const std::string& name) const {
  for (const NameScope* scope = this; scope; scope = scope->outer)
    if (const auto it = scope->values.find(name); it != scope->values.end()) return &it->second;
  return nullptr;
}

int64_t NameScope::opset() const {
  const auto it = opsets.find("");
  return it == opsets.end() ? 0 : it->second;
}

void ImportState::warn(const std::string& text) {
  if (std::find(warnings.begin(), warnings.end(), text) == warnings.end()) warnings.push_back(text);
}

Status import_initializers(ImportState& state, onnx::GraphProto& graph, NameScope& scope) {
  const auto define = [&](const std::string& name, Result<Tensor> tensor) -> Status {
    if (!tensor.ok()) return Error{"initializer '" + name + "' " + tensor.error().message};
    if (scope.values.contains(name)) return Error{"two initializers are named '" + name + "'"};
    scope.values[name] = state.builder.constant(*std::move(tensor), name);
    return Unit{};
  };
  for (auto& proto : *graph.mutable_initializer()) {
    const std::string name = proto.name();
    TensorSource source{std::move(proto), {}};
    GOPT_RETURN_IF_ERROR(define(name, take_tensor(source, state.file.external)));
  }
  for (auto& sparse : *graph.mutable_sparse_initializer()) {
    const std::string name = sparse.values().name();
    GOPT_RETURN_IF_ERROR(define(name, take_sparse_tensor(sparse, state.file.external)));
  }
  return Unit{};
}

}  // namespace gopt::ir

namespace gopt {

using namespace ir;

Result<ImportedModel> import_onnx(const std::string& path, const ImportOptions& options) {
  GOPT_ASSIGN_OR_RETURN(ModelFile file, read_model_file(path));
  std::map<std::string, TensorType> original_types;
  std::vector<std::pair<int64_t, int64_t>> changed;
  const auto kept = without_changed_extents(file, options, changed);
  if (kept) {
    ImportState original(file, *kept);
    if (auto graph = import_model(original); !graph.ok()) return Error{path + ": " + graph.error().message};
    original_types = std::move(original.seen_types);
    GOPT_ASSIGN_OR_RETURN(file, read_model_file(path));
  }
  std::map<std::string, int> operators;
  count_operators(file.model.graph().node(), operators);
  std::set<AtomId> forgotten;
  while (true) {
    ImportState state(file, options);
    if (kept) state.original_types = &original_types;
    state.changed_extents = changed;
    state.forgotten = forgotten;
    auto graph = import_model(state);
    if (!graph.ok()) return Error{path + ": " + graph.error().message};
    const std::set<AtomId> lost = extents_of_nothing(*graph, state.input_symbols);
    if (std::ranges::includes(forgotten, lost)) {
      std::vector<std::string> files = file.external.paths();
      files.insert(files.begin(), path);
      return ImportedModel{*std::move(graph),    std::move(state.warnings), std::move(files),
                           std::move(operators), std::move(state.changed),  state.has_cut_ranges};
    }
    forgotten.insert(lost.begin(), lost.end());
    GOPT_ASSIGN_OR_RETURN(file, read_model_file(path));
  }
}

}  // namespace gopt
