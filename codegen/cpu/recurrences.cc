// Recurrences as calls of the runtime's Library.
#include "../buffers.h"
#include "../sizes.h"
#include "emit_cpu.h"
#include "gopt/recurrence.h"

namespace gopt::codegen {

LibraryCall print_recurrence_call(const Plan& plan, const Kernel& kernel, const std::string& primitive) {
  const Node& node = *kernel.nodes[0];
  const Recurrence& r = *node.opaque->recurrence;
  const auto text_of = [&](BufferId id) { return pointer_text(locate(plan, id), plan.target.open); };
  const auto size_of = [&](const Index& extent) { return size_text(extent, plan.target.open); };
  const auto operand = [&](Recurrence::Input input, const char* type) {
    const int at = operand_of(node, input);
    return at < 0
               ? std::string("nullptr")
               : std::string("(const ") + type + "*)(" + text_of(kernel.input_buffers[static_cast<size_t>(at)]) + ")";
  };
  const BufferId sums = kernel.input_buffers[static_cast<size_t>(operand_of(node, Recurrence::kSums))],
                 weights = kernel.input_buffers[static_cast<size_t>(operand_of(node, Recurrence::kWeights))];
  const Shape &given = shape_of(plan.buffer(sums)), &by = shape_of(plan.buffer(weights));
  const bool is_constant = locate(plan, weights).place == BufferPlace::Weight;
  LibraryCall call;
  call.create = "{\n  RecurrenceShape d;\n  d.cell = RecurrentCell::" + std::string(to_string(r.cell)) +
                ";\n  d.steps = " + size_of(given[0]) + ", d.batch = " + size_of(given[1]) +
                ", d.directions = " + size_of(by[0]) + ", d.hidden = " + size_of(by[1]) + ";\n" +
                (r.is_reversed ? "  d.is_reversed = true;\n" : "") + "  library.add(d, " +
                (is_constant ? operand(Recurrence::kWeights, "float") : "nullptr") + ");\n}\n";
  call.run = "library.run(" + primitive + ", {";
  for (const auto input : {Recurrence::kSums, Recurrence::kWeights, Recurrence::kState, Recurrence::kCellState,
                           Recurrence::kBias, Recurrence::kPeepholes})
    call.run += operand(input, "float") + ", ";
  call.run += operand(Recurrence::kLengths, "int64_t");
  for (int output = 0; output < 3; output++) {
    const auto id = result_of(kernel, output);
    call.run += id ? ", (float*)(" + text_of(*id) + ")" : ", nullptr";
  }
  call.run += "});";
  return call;
}

}  // namespace gopt::codegen
