#include "recurrences.h"

#include <algorithm>
#include <array>

#include "../buffers.h"
#include "../recurrence_operands.h"

namespace gopt::codegen {
namespace {

// Fours of the depth that a lane has in registers (runtime/gopt_recurrence.cuh), which are all of as many as eight.
int64_t held_fours(int64_t hidden) {
  constexpr int64_t kOfLanes = 128, kMost = 8;
  return std::min(kMost, (hidden + kOfLanes - 1) / kOfLanes);
}

// Whether weights and states may be rounded to halves, by which several sequences are multiplied on the tensor cores:
// not what Relu gives, nor what a caller gives where a precision has the range of floats.
bool may_round(const Plan& plan, const Kernel& kernel, int64_t batch) {
  const Precision precision = plan.target.precision;
  const bool are_known = std::ranges::all_of(std::array{Recurrence::kWeights, Recurrence::kState}, [&](auto operand) {
    return locate(plan, operand_buffer(kernel, operand)).place == BufferPlace::Weight;
  });
  return precision != Precision::Fp32 && batch > 1 && (precision == Precision::Fp16 || are_known) &&
         kernel.nodes[0]->opaque->recurrence->cell != Recurrence::Cell::Relu;
}

}  // namespace

PrintedLaunch print_recurrence(const Plan& plan, const Kernel& kernel, size_t number) {
  const Recurrence& r = *kernel.nodes[0]->opaque->recurrence;
  const BufferId given = operand_buffer(kernel, Recurrence::kSums), by = operand_buffer(kernel, Recurrence::kWeights);
  const std::vector<int64_t>&sums = plan.buffer(given).dims, &weights = plan.buffer(by).dims;
  const bool has_fixed_weights = locate(plan, by).place == BufferPlace::Weight;
  const std::string name = "gopt_recurrence_" + std::to_string(number),
                    head = "void " + name +
                           "(const float* sums, const float* weights, const float* state, const float* cell_state, "
                           "const float* bias, const float* peepholes, const int64_t* lengths, float* result, float* "
                           "last, float* last_cell, cudaStream_t stream)";
  PrintedLaunch printed;
  printed.declaration = head + ";\n";
  printed.text = "// " + kernel.name + "\n" + head +
                 " {\n  using namespace gopt_runtime::recurrences;\n  launch<Cell::" + to_string(r.cell) + ", " +
                 std::to_string(held_fours(weights[2])) + (may_round(plan, kernel, sums[1]) ? ", true" : ", false") +
                 ">({sums, weights, state, cell_state, bias, peepholes, lengths, result, last, last_cell, " +
                 std::to_string(sums[0]) + ", " + std::to_string(sums[1]) + ", " + std::to_string(weights[0]) + ", " +
                 std::to_string(weights[2]) + (r.is_reversed ? ", true" : ", false") +
                 (has_fixed_weights ? ", true" : ", false") + "}, stream);\n}\n\n";
  printed.call = name + "(" + recurrence_operands(plan, kernel) + ", stream);";
  return printed;
}

}  // namespace gopt::codegen
