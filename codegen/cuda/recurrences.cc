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

// Whether weights and states are rounded: not what a caller gives where a precision has the range of floats.
bool may_round(const Plan& plan, const Kernel& kernel) {
  const bool are_known = std::ranges::all_of(std::array{Recurrence::kWeights, Recurrence::kState}, [&](auto operand) {
    return locate(plan, operand_buffer(kernel, operand)).place == BufferPlace::Weight;
  });
  return may_recur_in_halves(plan, kernel) && (plan.target.precision == Precision::Fp16 || are_known);
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Of a block where blocks of the whole device meet (runtime/gopt_recurrence_shares.cuh): units, and sequences at a
// time.
constexpr int64_t kUnitsOfBlock = 16, kSequences = 8;

// Eights of sequences that such a block has: as few as there are multiprocessors for, which a smaller device than an
// H100 finds out when it launches. 0: there are too many units.
int64_t eights_of(int64_t batch, int64_t directions, int64_t hidden) {
  constexpr int64_t kMultiprocessors = 132;
  for (const int64_t eights : {1, 2, 4})
    if (directions * ceil_div(batch, kSequences * eights) * ceil_div(hidden, kUnitsOfBlock) <= kMultiprocessors)
      return eights;
  return 0;
}
// Halves of two steps, of pairs of blocks.
int64_t exchange_bytes(int64_t eights, int64_t batch, int64_t directions, int64_t hidden) {
  constexpr int64_t kSteps = 2, kBytesOfHalf = 2;
  const int64_t sequences = ceil_div(batch, kSequences * eights) * kSequences * eights,
                units = ceil_div(hidden, 2 * kUnitsOfBlock) * 2 * kUnitsOfBlock;
  return kSteps * kBytesOfHalf * directions * sequences * units;
}

}  // namespace

PrintedLaunch print_recurrence(const Plan& plan, const Kernel& kernel, size_t number, const std::string& scratch) {
  const Recurrence& r = *kernel.nodes[0]->opaque->recurrence;
  const BufferId given = operand_buffer(kernel, Recurrence::kSums), by = operand_buffer(kernel, Recurrence::kWeights);
  const std::vector<int64_t>&sums = plan.buffer(given).dims, &weights = plan.buffer(by).dims;
  const int64_t steps = sums[0], batch = sums[1], directions = weights[0], hidden = weights[2];
  const bool has_fixed_weights = locate(plan, by).place == BufferPlace::Weight, rounds = may_round(plan, kernel);
  const int64_t eights = rounds ? eights_of(batch, directions, hidden) : 0;
  const std::string name = "gopt_recurrence_" + std::to_string(number),
                    head = "void " + name +
                           "(const float* sums, const float* weights, const float* state, const float* cell_state, "
                           "const float* bias, const float* peepholes, const int64_t* lengths, float* result, float* "
                           "last, float* last_cell, void* exchange, cudaStream_t stream)";
  PrintedLaunch printed;
  printed.scratch_bytes = eights > 0 ? exchange_bytes(eights, batch, directions, hidden) : 0;
  printed.declaration = head + ";\n";
  std::string memory;
  if (eights > 0)
    memory = "  static_assert(shares::bytes_of_exchange(" + std::to_string(directions) + ", " + std::to_string(batch) +
             ", " + std::to_string(hidden) + ", " + std::to_string(eights) +
             ") == " + std::to_string(printed.scratch_bytes) + ");\n";
  printed.text = "// " + kernel.name + "\n" + head + " {\n  using namespace gopt_runtime::recurrences;\n" + memory +
                 "  launch<Cell::" + to_string(r.cell) + ", " + std::to_string(held_fours(hidden)) +
                 (rounds ? ", true, " : ", false, ") + std::to_string(eights) +
                 ">({sums, weights, state, cell_state, bias, peepholes, lengths, result, last, last_cell, " +
                 std::to_string(steps) + ", " + std::to_string(batch) + ", " + std::to_string(directions) + ", " +
                 std::to_string(hidden) + (r.is_reversed ? ", true" : ", false") +
                 (has_fixed_weights ? ", true" : ", false") + "}, exchange, stream);\n}\n\n";
  printed.call =
      name + "(" + recurrence_operands(plan, kernel) + (eights > 0 ? ", " + scratch : ", nullptr") + ", stream);";
  return printed;
}

}  // namespace gopt::codegen
