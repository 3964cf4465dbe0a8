#include <cstdio>

#include "gopt/plan.h"

namespace gopt {
namespace {

std::string name_of(const Value& value) {
  const std::string& name = value.node->name;
  const std::string op = value.node->opaque ? value.node->opaque->op_type : op_info(value.node->op).name;
  return (name.empty() ? op : name) + (value.output == 0 ? "" : "." + std::to_string(value.output));
}

std::string_view place_text(BufferPlace place) {
  switch (place) {
    case BufferPlace::Input: return "input";
    case BufferPlace::Output: return "output";
    case BufferPlace::Weight: return "weight";
    case BufferPlace::Arena: return "arena";
  }
  return "";
}

// "conv1 f32[1,64,56,56] blocked16 arena+4096"; of a view, where it lies in its parent.
std::string buffer_text(const Plan& plan, BufferId id) {
  const Buffer& buffer = plan.buffer(id);
  std::string dims;
  for (int64_t extent : buffer.dims) dims += (dims.empty() ? "" : ",") + std::to_string(extent);
  const std::string place = buffer.is_view ? "in b" + std::to_string(static_cast<uint32_t>(buffer.parent))
                                           : std::string(place_text(buffer.place));
  return "b" + std::to_string(static_cast<uint32_t>(id)) + " " + name_of(buffer.value) + " " +
         to_string(buffer.element) + "[" + dims + "] " + to_string(buffer.layout) + " " + place + "+" +
         std::to_string(buffer.offset);
}

std::string epilogue_text(const Epilogue& e) {
  switch (e.kind) {
    case Epilogue::Kind::Bias: return "bias";
    case Epilogue::Kind::AddTensor: return "tensor";
    case Epilogue::Kind::Activation:
    case Epilogue::Kind::Quantize:
    case Epilogue::Kind::Cast: return op_info(e.node->op).name;
  }
  return "";
}

}  // namespace

std::string print_kernel(const Plan& plan, const Kernel& kernel) {
  std::string text = kernel.name + ": " + to_string(kernel.kind);
  if (!kernel.implementation.empty()) text += " " + kernel.implementation;
  text += " of";
  const auto add_nodes = [&text](const Kernel& own) {
    for (const NodePtr& node : own.nodes) text += " " + (node->opaque ? external_name(*node) : op_info(node->op).name);
    for (const Epilogue& e : own.epilogues) text += " +" + epilogue_text(e);
    if (own.prologue) text += own.prologue->gates >= 0 ? " gates+" : " channels+";
  };
  if (kernel.members.empty()) add_nodes(kernel);
  for (const Kernel& member : kernel.members) {
    if (&member != kernel.members.data()) text += kernel.kind == KernelKind::Group ? " beside" : ", then";
    add_nodes(member);
  }
  char time[32];
  snprintf(time, sizeof time, ", %.4g ms\n", kernel.estimated_ms);
  text += time;
  for (BufferId b : kernel.input_buffers) text += "  reads  " + buffer_text(plan, b) + "\n";
  for (BufferId b : kernel.output_buffers) text += "  writes " + buffer_text(plan, b) + "\n";
  return text;
}

namespace {
constexpr std::pair<Precision, std::string_view> kPrecisions[] = {{Precision::Fp32, "fp32"},
                                                                  {Precision::Tf32, "tf32"},
                                                                  {Precision::Fp16, "fp16"},
                                                                  {Precision::Bf16, "bf16"},
                                                                  {Precision::Bf16x3, "bf16x3"}};
}  // namespace

std::string to_string(Precision precision) {
  for (const auto& [known, name] : kPrecisions)
    if (known == precision) return std::string(name);
  throw InternalError("a precision without a name");
}

std::optional<Precision> parse_precision(std::string_view text) {
  for (const auto& [precision, name] : kPrecisions)
    if (name == text) return precision;
  return std::nullopt;
}

std::vector<Precision> precisions_of(TargetKind kind) {
  switch (kind) {
    case TargetKind::Cpu: return {Precision::Fp32, Precision::Bf16, Precision::Bf16x3};
    case TargetKind::Cuda: return {Precision::Fp32, Precision::Tf32, Precision::Fp16, Precision::Bf16};
    case TargetKind::Onnx: return {Precision::Fp32};
  }
  throw InternalError("a target without precisions");
}

ElementType storage_of(Precision precision) {
  switch (precision) {
    case Precision::Fp32:
    case Precision::Tf32:
    case Precision::Bf16x3: return ElementType::Float32;
    case Precision::Fp16: return ElementType::Float16;
    case Precision::Bf16: return ElementType::BFloat16;
  }
  throw InternalError("a precision without a type");
}

ValueKey key_of(const Value& value) { return {value.node->hash, value.output}; }

std::string print_plan(const Plan& plan) {
  std::string text = std::string("plan for ") + (plan.target.kind == TargetKind::Cuda ? "cuda" : "cpu") +
                     (plan.target.precision == Precision::Fp32 ? "" : " in " + to_string(plan.target.precision)) +
                     ", " + std::to_string(plan.target.threads) + " thread(s), arena of " +
                     std::to_string(plan.arena_bytes) + " bytes\n";
  for (const Kernel& kernel : plan.kernels) text += print_kernel(plan, kernel);
  return text;
}

}  // namespace gopt
