#include "report_parts.h"

#include <set>

#include "gopt/kernel_costs.h"
#include "gopt/text_reader.h"

namespace gopt::cli {
namespace {

using nlohmann::json;

constexpr size_t kLongestAttributes = 400;  // bytes: a tensor may be among them

// What a reader wants to tell apart at a glance.
std::string_view kind_of(const Node& node) {
  if (node.is(OpKind::Input)) return "input";
  if (node.is(OpKind::Constant)) return "constant";
  if (node.is_recurrence()) return "product";
  if (node.is_row_function()) return "other";
  if (node.is(OpKind::Opaque)) return "opaque";
  const OpInfo& info = op_info(node.op);
  if (info.has(kDataMovement) || info.has(kShapeOnly)) return "movement";
  if (info.has(kElementwise)) return "elementwise";
  return info.has(kMultilinear) ? "product" : "other";
}

std::string name_of(const Node& node) {
  if (!node.name.empty() || node.output_names.empty()) return node.name;
  return node.output_names.front();
}

json value_json(const Graph& graph, const Value& value) {
  if (!value || !graph.contains(value.node)) return nullptr;
  return json::array({graph.id_of(value.node), value.output});
}

json node_json(const Graph& graph, NodeId id) {
  const Node& node = *graph.node(id);
  json inputs = json::array(), types = json::array();
  for (const Value& input : node.inputs) inputs.push_back(value_json(graph, input));
  for (const TensorType& type : node.outputs) types.push_back(to_string(type));
  std::string attributes = attributes_text(node);
  if (attributes.size() > kLongestAttributes) attributes = attributes.substr(0, kLongestAttributes) + "...";
  return {{"name", name_of(node)},   {"op", node.opaque ? node.opaque->op_type : op_info(node.op).name},
          {"kind", kind_of(node)},   {"weight", graph.depends_on_weights_only(id)},
          {"inputs", inputs},        {"types", types},
          {"attributes", attributes}};
}

std::string_view place_name(BufferPlace place) {
  switch (place) {
    case BufferPlace::Input: return "input";
    case BufferPlace::Output: return "output";
    case BufferPlace::Weight: return "weight";
    case BufferPlace::Arena: return "arena";
  }
  return "";
}

json kernel_json(const Plan& plan, const Kernel& kernel) {
  std::set<NodeId> nodes;
  for (const NodePtr& node : kernel.nodes)
    if (plan.graph.contains(node)) nodes.insert(plan.graph.id_of(node));
  const KernelWork work = kernel_work(plan, kernel);
  return {{"name", kernel.name}, {"kind", to_string(kernel.kind)},      {"implementation", kernel.implementation},
          {"nodes", nodes},      {"estimated_ms", kernel.estimated_ms}, {"operations", work.operations},
          {"bytes", work.bytes}, {"reads", kernel.input_buffers},       {"writes", kernel.output_buffers}};
}

json buffer_json(const Plan& plan, const Buffer& buffer, const BufferLife& life) {
  json dims = json::array();
  for (int64_t extent : buffer.dims) dims.push_back(extent);
  return {{"value", value_json(plan.graph, buffer.value)},
          {"dims", dims},
          {"element", to_string(buffer.element)},
          {"layout", to_string(buffer.layout)},
          {"place", place_name(buffer.place)},
          {"bytes", buffer.size_bytes},
          {"offset", buffer.offset},
          {"view_of", buffer.is_view ? json(buffer.parent) : json(nullptr)},
          {"first_kernel", life.first},
          {"last_kernel", life.last}};
}

// By kernel: bytes of the arena that are in use while it runs.
std::vector<int64_t> live_bytes(const Plan& plan, const std::vector<BufferLife>& lives) {
  std::vector<int64_t> live(plan.kernels.size());
  for (size_t b = 0; b < plan.buffers.size(); b++) {
    const Buffer& buffer = plan.buffers[b];
    if (buffer.is_view || buffer.place != BufferPlace::Arena || lives[b].first < 0) continue;
    for (int k = lives[b].first; k <= lives[b].last; k++) live[static_cast<size_t>(k)] += buffer.size_bytes;
  }
  return live;
}

}  // namespace

json graph_json(const Graph& graph) {
  json nodes = json::array(), outputs = json::array();
  for (uint32_t id = 0; id < graph.nodes().size(); id++) nodes.push_back(node_json(graph, NodeId{id}));
  for (const GraphOutput& output : graph.outputs())
    outputs.push_back({{"name", output.name}, {"value", value_json(graph, output.value)}});
  return {{"nodes", nodes}, {"outputs", outputs}};
}

json rule_json(const RewriteRule& rule) {
  json marks = json::array();
  for (const MarkInfo& mark : all_marks())
    if (rule.marks.*(mark.flag)) marks.push_back({{"name", mark.name}, {"meaning", mark.meaning}});
  return {{"text", print_rule(rule)},
          {"any_rank", rule.scheme != nullptr},  // the sides are then of one instance
          {"marks", marks},
          {"origin", rule.origin},
          {"left", graph_json(rule.left)},
          {"right", graph_json(rule.right)}};
}

json plan_json(const Plan& plan) {
  const std::vector<BufferLife> lives = buffer_lives(plan);
  json kernels = json::array(), buffers = json::array();
  for (const Kernel& kernel : plan.kernels) kernels.push_back(kernel_json(plan, kernel));
  for (size_t b = 0; b < plan.buffers.size(); b++) buffers.push_back(buffer_json(plan, plan.buffers[b], lives[b]));
  return {{"target", plan.target.kind == TargetKind::Cuda ? "cuda" : "cpu"},
          {"threads", plan.target.threads},
          {"estimated_ms", plan.estimated_ms},
          {"arena_bytes", plan.arena_bytes},
          {"live_bytes", live_bytes(plan, lives)},
          {"kernels", kernels},
          {"buffers", buffers}};
}

}  // namespace gopt::cli
