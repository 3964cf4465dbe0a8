// What identifies a whole plan, in every run alike: all that its code's time depends on.
#include "gopt/kernel_spec.h"

namespace gopt {
namespace {

std::string number(int64_t value) { return " " + std::to_string(value); }
std::string number_of(BufferId id) { return number(static_cast<uint32_t>(id)); }

std::string target_text(const Target& target) {
  std::string text = "target" + number(static_cast<int>(target.kind)) + number(target.threads) +
                     number(target.vector_lanes) + " " + to_string(target.precision) + number(target.has_tiles) +
                     number(target.calls_functions);
  for (const std::string& part : target.without) text += " without " + part;
  for (const OpenExtent& extent : target.open)
    text += " open " + atom(extent.symbol).name + number(extent.usual) + number(extent.maximum.value_or(-1));
  return text + "\n";
}

// Large weights are not read: what they are decides how long a run takes, but for subscripts hardly their numbers.
std::string tensor_text(const Tensor& tensor) {
  constexpr size_t kLarge = 4096;
  const bool may_be_subscripts = tensor.type() == ElementType::Int32 || tensor.type() == ElementType::Int64;
  const std::span<const std::byte> bytes = tensor.bytes();
  std::string text = to_string(tensor.tensor_type());
  if (bytes.size() <= kLarge || may_be_subscripts)
    text += " " + to_string(hash_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  return text;
}

std::string attributes_text_of(const Node& node) {
  std::string text;
  for (const auto& [name, value] : node.attributes) {
    const auto* tensor = std::get_if<Tensor>(&value);
    text += " " + name + "=" + (tensor ? tensor_text(*tensor) : to_string(value));
  }
  return text;
}

// Its own hash holds where large weights lie in memory.
std::string graph_text(const Graph& graph) {
  const auto text_of = [&graph](const Value& value) {
    return value ? number(static_cast<uint32_t>(graph.id_of(value.node))) + "." + std::to_string(value.output) : " -";
  };
  std::string text;
  for (const NodePtr& node : graph.nodes()) {
    text += (node->opaque ? external_name(*node) + " " + to_string(hash_bytes(node->opaque->payload))
                          : op_info(node->op).name) +
            attributes_text_of(*node);
    if (node->is(OpKind::Constant)) text += " " + tensor_text(node->tensor);
    for (const Value& input : node->inputs) text += text_of(input);
    for (const TensorType& type : node->outputs) text += " " + to_string(type);
    text += "\n";
  }
  for (const GraphOutput& output : graph.outputs()) text += text_of(output.value);
  return text + "\n";
}

// Where it lies, too: what shares lines of a cache with what is another plan's.
std::string buffer_text(const Buffer& buffer) {
  std::string text = to_string(buffer.element) + "[";
  for (const int64_t extent : buffer.dims) text += number(extent);
  text += " ] " + to_string(buffer.layout) + number(static_cast<int>(buffer.place)) + number(buffer.size_bytes) +
          number(buffer.offset);
  return text + (buffer.is_view ? " in" + number_of(buffer.parent) : "") + "\n";
}

std::string kernel_text(const Plan& plan, const Kernel& kernel) {
  std::string text = kernel_signature(plan, kernel) + number(static_cast<uint32_t>(kernel.stream));
  for (const BufferId id : kernel.input_buffers) text += number_of(id);
  text += " ->";
  for (const BufferId id : kernel.output_buffers) text += number_of(id);
  for (const Epilogue& step : kernel.epilogues)
    text += " then" + number(static_cast<int>(step.kind)) + number(static_cast<int>(step.activation.kind)) +
            number_of(step.operand);
  text += "\n";
  for (const Kernel& member : kernel.members) text += "  " + kernel_text(plan, member);
  return text;
}

}  // namespace

std::string graph_signature(const Graph& graph, const Target& target) {
  return to_string(hash_bytes(target_text(target) + graph_text(graph)));
}

std::string plan_signature(const Plan& plan) {
  std::string text = target_text(plan.target) + graph_text(plan.graph) + number(plan.arena_bytes) + "\n";
  for (const Buffer& buffer : plan.buffers) text += buffer_text(buffer);
  for (const Kernel& kernel : plan.kernels) text += kernel_text(plan, kernel);
  return to_string(hash_bytes(text));
}

}  // namespace gopt
