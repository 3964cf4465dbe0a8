#include "recurrence_operands.h"

#include "buffers.h"

namespace gopt::codegen {

BufferId operand_buffer(const Kernel& kernel, Recurrence::Input input) {
  return kernel.input_buffers[static_cast<size_t>(operand_of(*kernel.nodes[0], input))];
}

std::string recurrence_operands(const Plan& plan, const Kernel& kernel) {
  const Node& node = *kernel.nodes[0];
  const auto pointer = [&](const char* type, BufferId id) {
    return std::string("(") + type + "*)(" + pointer_text(locate(plan, id), plan.target.open) + ")";
  };
  std::string text;
  for (size_t number = 0; number < Recurrence::kInputs; number++) {
    const auto input = static_cast<Recurrence::Input>(number);
    const char* type = input == Recurrence::kLengths ? "const int64_t" : "const float";
    text += (operand_of(node, input) < 0 ? "nullptr" : pointer(type, operand_buffer(kernel, input))) + ", ";
  }
  for (int output = 0; output < 3; output++) {
    const auto buffer = result_buffer(kernel, output);
    text += (output > 0 ? ", " : "") + (buffer ? pointer("float", *buffer) : "nullptr");
  }
  return text;
}

}  // namespace gopt::codegen
