#include "recurrences.h"

#include <algorithm>

#include "../buffers.h"
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

// Fours of the depth that a lane has in registers (runtime/gopt_recurrence.cuh), which are all of as many as 16.
int64_t held_fours(int64_t hidden) {
  constexpr int64_t kOfLanes = 32, kMost = 16;
  int64_t held = 1;
  while (held < kMost && held * kOfLanes < hidden) held *= 2;
  return held;
}

}  // namespace

PrintedRecurrence print_recurrence(const Plan& plan, const Kernel& kernel, size_t number) {
  const Node& node = *kernel.nodes[0];
  const Recurrence& r = *node.opaque->recurrence;
  const std::vector<int64_t>& result = plan.buffer(kernel.output_buffers[0]).dims;
  const auto is_fixed = [&](Recurrence::Input input) {
    const int at = operand_of(node, input);
    return at < 0 || locate(plan, kernel.input_buffers[static_cast<size_t>(at)]).place == BufferPlace::Weight;
  };
  const std::string name = "gopt_recurrence_" + std::to_string(number),
                    head = "void " + name +
                           "(const float* sums, const float* weights, const float* state, const float* cell_state, "
                           "const float* bias, const float* peepholes, const int64_t* lengths, float* result, float* "
                           "last, float* last_cell, cudaStream_t stream)";
  PrintedRecurrence printed;
  printed.declaration = head + ";\n";
  printed.text = "// " + kernel.name + "\n" + head +
                 " {\n  using namespace gopt_runtime::recurrences;\n  launch<Cell::" + cell_text(r.cell) + ", " +
                 std::to_string(held_fours(result[3])) +
                 ">({sums, weights, state, cell_state, bias, peepholes, lengths, result, last, last_cell, " +
                 std::to_string(result[0]) + ", " + std::to_string(result[2]) + ", " + std::to_string(result[1]) +
                 ", " + std::to_string(result[3]) + (r.is_reversed ? ", true" : ", false") +
                 (is_fixed(Recurrence::kWeights) ? ", true" : ", false") + "}, stream);\n}\n\n";
  printed.call = name + "(";
  for (size_t input = 0; input < Recurrence::kInputs; input++) {
    const int at = operand_of(node, static_cast<Recurrence::Input>(input));
    const char* type = input == Recurrence::kLengths ? "int64_t" : "float";
    printed.call += at < 0 ? std::string("nullptr, ")
                           : std::string("(const ") + type + "*)(" +
                                 pointer_text(locate(plan, kernel.input_buffers[static_cast<size_t>(at)])) + "), ";
  }
  for (const BufferId id : kernel.output_buffers) printed.call += "(float*)(" + pointer_text(locate(plan, id)) + "), ";
  printed.call += r.has_cell_state() ? "stream);" : "nullptr, stream);";
  return printed;
}

}  // namespace gopt::codegen
