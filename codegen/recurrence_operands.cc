#include "recurrence_operands.h"

#include <algorithm>

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
    const auto it = std::ranges::find(kernel.outputs, Value{kernel.nodes[0], output});
    const auto number = static_cast<size_t>(it - kernel.outputs.begin());
    text += (output > 0 ? ", " : "") +
            (it == kernel.outputs.end() ? "nullptr" : pointer("float", kernel.output_buffers[number]));
  }
  return text;
}

}  // namespace gopt::codegen
