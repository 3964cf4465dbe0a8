// Recurrences as calls of the runtime's Library.
#include "../buffers.h"
#include "../recurrence_operands.h"
#include "../sizes.h"
#include "emit_cpu.h"

namespace gopt::codegen {

LibraryCall print_recurrence_call(const Plan& plan, const Kernel& kernel, const std::string& primitive) {
  const Recurrence& r = *kernel.nodes[0]->opaque->recurrence;
  const auto size_of = [&](const Index& extent) { return size_text(extent, plan.target.open); };
  const BufferId sums = operand_buffer(kernel, Recurrence::kSums),
                 weights = operand_buffer(kernel, Recurrence::kWeights);
  const Shape &given = shape_of(plan.buffer(sums)), &by = shape_of(plan.buffer(weights));
  const bool is_constant = locate(plan, weights).place == BufferPlace::Weight;
  LibraryCall call;
  call.create =
      "{\n  RecurrenceShape d;\n  d.cell = RecurrentCell::" + std::string(to_string(r.cell)) +
      ";\n  d.steps = " + size_of(given[0]) + ", d.batch = " + size_of(given[1]) +
      ", d.directions = " + size_of(by[0]) + ", d.hidden = " + size_of(by[2]) + ";\n" +
      (r.is_reversed ? "  d.is_reversed = true;\n" : "") + "  library.add(d, " +
      (is_constant ? "(const float*)(" + pointer_text(locate(plan, weights), plan.target.open) + ")" : "nullptr") +
      ");\n}\n";
  call.run = "library.run(" + primitive + ", {" + recurrence_operands(plan, kernel) + "});";
  return call;
}

}  // namespace gopt::codegen
