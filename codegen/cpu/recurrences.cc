// Recurrences as calls of the runtime's Library.
#include "../buffers.h"
#include "../sizes.h"
#include "emit_cpu.h"
#include "gopt/recurrence.h"

namespace gopt::codegen {

namespace {
const char* cell_text(Recurrence::Cell cell) {
  switch (cell) {
    case Recurrence::Cell::Tanh: return "Tanh";
    case Recurrence::Cell::Relu: return "Relu";
    case Recurrence::Cell::Gru: return "Gru";
    case Recurrence::Cell::Lstm: return "Lstm";
  }
  throw InternalError("a recurrence without a cell");
}
}  // namespace

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
  const Shape& result = shape_of(plan.buffer(kernel.output_buffers[0]));
  const BufferId weights = kernel.input_buffers[static_cast<size_t>(operand_of(node, Recurrence::kWeights))];
  const bool is_constant = locate(plan, weights).place == BufferPlace::Weight;
  LibraryCall call;
  call.create = "{\n  RecurrenceShape d;\n  d.cell = RecurrentCell::" + std::string(cell_text(r.cell)) +
                ";\n  d.steps = " + size_of(result[0]) + ", d.directions = " + size_of(result[1]) +
                ", d.batch = " + size_of(result[2]) + ", d.hidden = " + size_of(result[3]) + ";\n" +
                (r.is_reversed ? "  d.is_reversed = true;\n" : "") + "  library.add(d, " +
                (is_constant ? operand(Recurrence::kWeights, "float") : "nullptr") + ");\n}\n";
  call.run = "library.run(" + primitive + ", {";
  for (const auto input : {Recurrence::kSums, Recurrence::kWeights, Recurrence::kState, Recurrence::kCellState,
                           Recurrence::kBias, Recurrence::kPeepholes})
    call.run += operand(input, "float") + ", ";
  call.run += operand(Recurrence::kLengths, "int64_t");
  for (const BufferId id : kernel.output_buffers) call.run += ", (float*)(" + text_of(id) + ")";
  call.run += r.has_cell_state() ? "});" : ", nullptr});";
  return call;
}

}  // namespace gopt::codegen
