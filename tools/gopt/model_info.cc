#include "model_info.h"

#include <algorithm>
#include <set>

#include "gopt/node_operations.h"
#include "report.h"

namespace gopt::cli {
namespace {

bool runs(const Graph& graph, uint32_t k) {
  const Node& node = *graph.nodes()[k];
  return !node.is(OpKind::Input) && !node.is(OpKind::Constant) && !graph.depends_on_weights_only(NodeId{k});
}

bool is_weight(const Graph& graph, const NodePtr& node) {
  return node->is(OpKind::Constant) || graph.depends_on_weights_only(graph.id_of(node));
}

void add_weights(const Graph& graph, ModelInfo& info) {
  for (const NodePtr& node : graph.nodes()) {
    if (!node->is(OpKind::Constant)) continue;
    info.parameters += node->tensor.count();
    info.parameter_bytes += static_cast<int64_t>(node->tensor.bytes().size());
  }
}

void add_operations(const Graph& graph, ModelInfo& info) {
  double total = 0;
  for (uint32_t k = 0; k < graph.nodes().size(); k++) {
    const Node& node = *graph.nodes()[k];
    if (!runs(graph, k)) continue;
    const auto is_static = [](const TensorType& type) { return type.has_static_shape(); };
    if (!std::ranges::all_of(node.outputs, is_static)) return;
    if (const double own = scalar_operations(node); own > 0) {
      info.operations_of[op_info(node.op).name] += own;
      total += own;
    }
  }
  info.operations = total;
}

void add_kept(const Graph& graph, const std::set<std::string>& for_code, ModelInfo& info) {
  static const std::set<std::string> kControlFlow = {"If", "Loop", "Scan"};
  for (const NodePtr& node : graph.nodes()) {
    if (!node->opaque) continue;
    const std::string name = operator_name(*node);
    auto& kept = !for_code.contains(name)      ? info.taken_apart
                 : kControlFlow.contains(name) ? info.control_flow
                                               : info.not_defined;
    kept[name]++;
  }
}

std::optional<int64_t> bytes_of(const NodePtr& node) {
  int64_t bytes = 0;
  for (const TensorType& type : node->outputs) {
    if (type.element == ElementType::Undefined) continue;  // an output that is left out
    if (!type.has_static_shape()) return std::nullopt;
    bytes += element_count(type.static_shape()) * static_cast<int64_t>(size_bytes(type.element));
  }
  return bytes;
}

// Nodes in the graph's order; what a node makes is alive until its last user has run, outputs to the end.
std::optional<int64_t> peak_bytes(const Graph& graph) {
  std::set<NodePtr> kept;
  for (const GraphOutput& output : graph.outputs()) kept.insert(output.value.node);
  std::vector<std::vector<int64_t>> ends(graph.nodes().size());  // bytes that are free after this node
  std::vector<int64_t> made(graph.nodes().size());
  for (uint32_t k = 0; k < graph.nodes().size(); k++) {
    const NodePtr& node = graph.nodes()[k];
    if (is_weight(graph, node)) continue;
    const auto bytes = bytes_of(node);
    if (!bytes) return std::nullopt;
    made[k] = *bytes;
    const std::vector<NodeId>& users = graph.users()[k];
    if (kept.contains(node) || users.empty()) continue;
    const NodeId last = *std::ranges::max_element(users, {}, [](NodeId id) { return static_cast<uint32_t>(id); });
    ends[static_cast<uint32_t>(last)].push_back(*bytes);
  }
  int64_t alive = 0, peak = 0;
  for (size_t k = 0; k < made.size(); k++) {
    alive += made[k];
    peak = std::max(peak, alive);
    for (const int64_t bytes : ends[k]) alive -= bytes;
  }
  return peak;
}

nlohmann::json values_json(const std::vector<ModelValue>& values) {
  nlohmann::json rows = nlohmann::json::array();
  for (const ModelValue& v : values) {
    nlohmann::json shape;
    if (v.type.shape) {
      shape = nlohmann::json::array();
      for (const Index& extent : *v.type.shape) {
        if (extent.is_constant())
          shape.push_back(extent.constant());
        else
          shape.push_back(to_string(extent));
      }
    }
    rows.push_back({{"name", v.name}, {"element", to_string(v.type.element)}, {"shape", shape}});
  }
  return rows;
}

template <class T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

}  // namespace

std::set<std::string> not_defined_in(const Graph& graph) {
  std::set<std::string> names;
  for (const NodePtr& node : graph.nodes())
    if (node->opaque && !node->is_whole()) names.insert(operator_name(*node));
  return names;
}

ModelInfo model_info(const ImportedModel& model, const std::set<std::string>& for_code) {
  const Graph& graph = model.graph;
  ModelInfo info;
  for (const Value& v : graph.inputs()) info.inputs.push_back({v.node->name, v.type()});
  for (const GraphOutput& o : graph.outputs()) info.outputs.push_back({o.name, o.value.type()});
  for (const AtomId symbol : input_symbols(graph)) info.symbols.push_back(to_string(Index::from_atom(symbol)));
  std::ranges::sort(info.symbols);
  info.opsets = graph.metadata().opsets;
  info.in_file = model.operators;
  info.operators = running_operators(graph);
  add_kept(graph, for_code, info);
  add_weights(graph, info);
  add_operations(graph, info);
  info.peak_bytes = peak_bytes(graph);
  return info;
}

nlohmann::json info_json(const ModelInfo& info) {
  nlohmann::json opsets = nlohmann::json::object();
  for (const auto& [domain, version] : info.opsets) opsets[domain.empty() ? "ai.onnx" : domain] = version;
  return {{"inputs", values_json(info.inputs)},
          {"outputs", values_json(info.outputs)},
          {"symbols", info.symbols},
          {"opsets", opsets},
          {"operators_in_file", info.in_file},
          {"operators", info.operators},
          {"taken_apart", info.taken_apart},
          {"control_flow", info.control_flow},
          {"not_defined", info.not_defined},
          {"parameters", info.parameters},
          {"parameter_bytes", info.parameter_bytes},
          {"operations", or_null(info.operations)},
          {"operations_of", info.operations_of},
          {"peak_bytes", or_null(info.peak_bytes)}};
}

}  // namespace gopt::cli
