#include "recurrences.h"

#include <algorithm>

#include "../buffers.h"
#include "gopt/recurrence.h"

namespace gopt::codegen {
namespace {

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
  const auto buffer_of = [&](Recurrence::Input input) {
    return kernel.input_buffers[static_cast<size_t>(operand_of(node, input))];
  };
  const std::vector<int64_t>&sums = plan.buffer(buffer_of(Recurrence::kSums)).dims,
        &weights = plan.buffer(buffer_of(Recurrence::kWeights)).dims;
  const bool has_fixed_weights = locate(plan, buffer_of(Recurrence::kWeights)).place == BufferPlace::Weight;
  const std::string name = "gopt_recurrence_" + std::to_string(number),
                    head = "void " + name +
                           "(const float* sums, const float* weights, const float* state, const float* cell_state, "
                           "const float* bias, const float* peepholes, const int64_t* lengths, float* result, float* "
                           "last, float* last_cell, cudaStream_t stream)";
  PrintedRecurrence printed;
  printed.declaration = head + ";\n";
  printed.text = "// " + kernel.name + "\n" + head +
                 " {\n  using namespace gopt_runtime::recurrences;\n  launch<Cell::" + to_string(r.cell) + ", " +
                 std::to_string(held_fours(weights[1])) +
                 ">({sums, weights, state, cell_state, bias, peepholes, lengths, result, last, last_cell, " +
                 std::to_string(sums[0]) + ", " + std::to_string(sums[1]) + ", " + std::to_string(weights[0]) + ", " +
                 std::to_string(weights[1]) + (r.is_reversed ? ", true" : ", false") +
                 (has_fixed_weights ? ", true" : ", false") + "}, stream);\n}\n\n";
  printed.call = name + "(";
  for (size_t input = 0; input < Recurrence::kInputs; input++) {
    const int at = operand_of(node, static_cast<Recurrence::Input>(input));
    const char* type = input == Recurrence::kLengths ? "int64_t" : "float";
    printed.call += at < 0 ? std::string("nullptr, ")
                           : std::string("(const ") + type + "*)(" +
                                 pointer_text(locate(plan, kernel.input_buffers[static_cast<size_t>(at)])) + "), ";
  }
  for (int output = 0; output < 3; output++) {
    const auto id = result_of(kernel, output);
    printed.call += id ? "(float*)(" + pointer_text(locate(plan, *id)) + "), " : "nullptr, ";
  }
  printed.call += "stream);";
  return printed;
}

}  // namespace gopt::codegen
