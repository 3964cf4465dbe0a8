// The kernel of recurrences, run on the processor (emulation/device.h) under its sanitizers, against float64: clusters
// of blocks whose threads run in any order between barriers, units that fill no block, weights in registers, in shared
// memory and in neither.
#include <gtest/gtest.h>

#include "emulated_program.h"

namespace gopt {
namespace {

constexpr const char* kProgram = R"(
namespace {
using namespace gopt_runtime::recurrences;
int wrong = 0;

// A case, and what a kernel makes of it.
template <reference::Cell cell>
struct Trial {
  static constexpr auto own = static_cast<Cell>(cell);
  const reference::Case& c;
  const reference::Operands given;
  const reference::Results want;
  std::vector<float> result, last, last_cell;
  const Call call;

  explicit Trial(const reference::Case& of)
      : c(of), given(of), want(reference::compute(of, given)), result(want.all.size()), last(want.last.size()), last_cell(last),
        call{given.sums.data(), given.weights.data(), given.state.data(), given.cell_state.data(),
             own == Cell::Gru ? given.bias.data() : nullptr, c.has_peepholes ? given.peepholes.data() : nullptr,
             c.has_lengths ? given.lengths.data() : nullptr, result.data(), last.data(), last_cell.data(),
             static_cast<int>(c.steps), static_cast<int>(c.batch), static_cast<int>(c.directions),
             static_cast<int>(c.hidden), c.is_reversed, true} {}

  // `room`: bytes of a block's shared memory; `loss`: of the result, beside what floats lose.
  void judge(int rows, int held, int blocks, size_t room, double loss) const {
    for (int block = 0; block < blocks; block++)
      for (size_t i = room; i < emulation::kMemory; i++)
        if (emulation::blocks[block].memory[i] != static_cast<char>(0xff)) std::abort();  // beyond what it has asked for
    const auto all_wrong = reference::first_wrong(result, want.all, loss), last_wrong = reference::first_wrong(last, want.last, loss);
    const auto cell_wrong = own == Cell::Lstm ? reference::first_wrong(last_cell, want.last_cell, loss) : -1;
    // A sequence without steps keeps its state to the last bit.
    for (size_t i = 0; i < last.size() && c.has_lengths; i++)
      if (given.lengths[i / static_cast<size_t>(c.hidden) % static_cast<size_t>(c.batch)] == 0) wrong += last[i] != given.state[i];
    std::printf("%s rows %d held %d blocks %d: %ld %ld %ld\n", c.name, rows, held, blocks, static_cast<long>(all_wrong),
                static_cast<long>(last_wrong), static_cast<long>(cell_wrong));
    wrong += all_wrong >= 0 || last_wrong >= 0 || cell_wrong >= 0;
  }
};

template <reference::Cell cell, class Products, int held>
void run_by(const reference::Case& c, int blocks, bool keeps_weights, bool is_across = false,
         int64_t most_bytes = emulation::kMemory, double loss = 0) {
  constexpr int rows = Products::rows;
  constexpr auto own = static_cast<Cell>(cell);
  Trial<cell> trial(c);
  std::vector<float>& result = trial.result;
  const Call& call = trial.call;
  Division by = divide<own, Products, held>(call.hidden, blocks, is_across, most_bytes);
  if (!keeps_weights) by.kept /= 2;
  if (by.kept < 0 || room_bytes<own, Products, held>(by) > static_cast<int>(emulation::kMemory)) std::abort();
  if (is_across) std::memset(result.data(), 0xff, result.size() * sizeof(float));
  const int groups = (call.batch + rows - 1) / rows;
  const auto kernel =
      by.turns == 1 ? &take_all_steps<own, Products, held, true> : &take_all_steps<own, Products, held, false>;
  gopt_runtime::launch_cluster_kernel(kernel, call.directions * groups, blocks, kThreads, nullptr, call, by);
  if (!emulation::on_their_way.empty()) std::abort();  // to a block that may have ended
  trial.judge(rows, held, blocks, static_cast<size_t>(room_bytes<own, Products, held>(by)), loss);
}
template <reference::Cell cell, int rows, int held>
void run(const reference::Case& c, int blocks, bool keeps_weights, bool is_across = false,
         int64_t most_bytes = emulation::kMemory) {
  run_by<cell, InFloats<static_cast<Cell>(cell), rows>, held>(c, blocks, keeps_weights, is_across, most_bytes);
}
template <reference::Cell cell, int held>
void run_in_halves(const reference::Case& c, int blocks, bool keeps_weights, bool is_across = false) {
  constexpr double kLoss = 1e-3;
  run_by<cell, InHalves<static_cast<Cell>(cell)>, held>(c, blocks, keeps_weights, is_across, emulation::kMemory, kLoss);
}
// By blocks of the whole device, whose warps have shares of the depth.
template <reference::Cell cell, int eights, int held>
void run_by_shares(const reference::Case& c) {
  constexpr double kLoss = 2e-3;
  constexpr auto own = static_cast<Cell>(cell);
  Trial<cell> trial(c);
  const Call& call = trial.call;
  std::vector<unsigned> exchange(static_cast<size_t>(shares::bytes_of_exchange(call.directions, call.batch, call.hidden, eights)) / 4, ~0u), beyond(64, 7);
  exchange.insert(exchange.end(), beyond.begin(), beyond.end());
  const auto kernel = shares::rounds_of(call.hidden) > held ? &shares::take_steps_by_shares<own, eights, held, true>
                                                            : &shares::take_steps_by_shares<own, eights, held, false>;
  const int blocks = shares::blocks_of(call.hidden);
  gopt_runtime::launch_cluster_kernel(kernel, shares::groups_of(call.directions, call.batch, eights), blocks, kThreads, nullptr, call, exchange.data());
  if (!std::equal(beyond.begin(), beyond.end(), exchange.end() - 64)) std::abort();
  trial.judge(8 * eights, held, blocks, static_cast<size_t>(shares::room_bytes<own, eights, held>(call.hidden)), kLoss);
}
}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  constexpr auto lstm = reference::Cell::Lstm, gru = reference::Cell::Gru, tanh = reference::Cell::Tanh,
                 relu = reference::Cell::Relu;
  run<lstm, 1, 1>({"lstm", lstm, 3, 1, 1, 24}, 1, true);
  run<lstm, 1, 2>({"lstm of two directions", lstm, 3, 2, 2, 37}, 2, true);
  run<lstm, 4, 1>({"lstm of many sequences", lstm, 3, 7, 1, 70, true}, 4, true);
  run<lstm, 2, 2>({"lstm with peepholes", lstm, 3, 3, 2, 141, true, true}, 2, false);
  run<lstm, 1, 4>({"lstm of a few units", lstm, 2, 1, 1, 5, false, false, true}, 2, true);
  run<lstm, 2, 1>({"lstm of one step", lstm, 1, 2, 1, 9}, 4, true);
  run<tanh, 1, 4>({"tanh of many units", tanh, 2, 1, 1, 600}, 8, true);
  run<gru, 1, 1>({"gru without room for inputs", gru, 5, 2, 1, 40}, 1, true, false, 8 * 1024);
  run<gru, 8, 2>({"gru", gru, 3, 9, 1, 50, true}, 2, true);
  run<gru, 1, 1>({"gru of one unit", gru, 3, 2, 1, 1}, 1, true);
  run<tanh, 2, 1>({"tanh", tanh, 3, 3, 2, 150, true}, 2, true);
  run<tanh, 1, 4>({"tanh of units of several turns", tanh, 3, 1, 1, 101}, 1, true);
  run<relu, 1, 1>({"relu", relu, 3, 2, 1, 20, false, false, true}, 1, true);
  run<lstm, 8, 1>({"lstm of all sequences at once", lstm, 6, 8, 1, 35, true}, 8, true);
  run<gru, 2, 2>({"gru of two directions", gru, 6, 2, 2, 66}, 4, true);
  run<tanh, 4, 1>({"tanh of four sequences", tanh, 6, 4, 1, 90, true}, 8, true);
  run<relu, 1, 1>({"relu of several turns", relu, 5, 1, 1, 140, true, false, true}, 2, true);
  run<lstm, 1, 1>({"lstm across the device", lstm, 6, 1, 2, 36, true}, 8, true, true);
  run<gru, 4, 1>({"gru across the device", gru, 5, 6, 1, 44, true}, 4, true, true);
  run<lstm, 2, 1>({"lstm across, reversed", lstm, 4, 3, 1, 40, true, false, true}, 5, true, true);
  run<gru, 4, 1>({"gru across, both ways", gru, 4, 5, 2, 24, true}, 3, true, true);
  run<tanh, 8, 1>({"tanh across the device", tanh, 5, 11, 1, 132}, 2, true, true);
  run_in_halves<lstm, 3>({"lstm in halves", lstm, 4, 8, 1, 300}, 8, true);
  run_in_halves<gru, 1>({"gru in halves", gru, 4, 11, 2, 151, true}, 4, false);
  run_in_halves<tanh, 2>({"tanh in halves", tanh, 4, 5, 1, 141, true, false, true}, 2, true);
  run_in_halves<lstm, 1>({"lstm in halves of one block", lstm, 3, 3, 1, 45, true}, 1, true);
  run_in_halves<lstm, 1>({"lstm in halves, across", lstm, 5, 10, 1, 136, true, true}, 6, true, true);
  run_in_halves<gru, 2>({"gru in halves, across", gru, 4, 3, 2, 44, true}, 4, true, true);
  run_by_shares<lstm, 1, 4>({"lstm by shares", lstm, 4, 8, 1, 40});
  run_by_shares<lstm, 1, 4>({"lstm by shares, both ways", lstm, 5, 5, 2, 36, true, true});
  run_by_shares<gru, 1, 1>({"gru by shares, weights kept", gru, 3, 3, 1, 270, true});
  run_by_shares<tanh, 2, 4>({"tanh by shares of sixteen", tanh, 4, 19, 1, 33, true, false, true});
  run_by_shares<lstm, 4, 1>({"lstm by shares of many", lstm, 3, 40, 1, 17, true});
  run_by_shares<gru, 2, 1>({"gru by shares of one block", gru, 6, 9, 1, 5});
  run_by_shares<lstm, 1, 4>({"no steps by shares", lstm, 0, 2, 1, 9});
  run<lstm, 1, 1>({"no steps", lstm, 0, 2, 2, 9}, 2, true);
  std::printf(wrong == 0 ? "all are right\n" : "%d are wrong\n", wrong);
}
)";

TEST(EmulatedRecurrences, AreAsInDouble) {
  expect_all_right({"gopt_arrivals.cuh", "gopt_cluster.cuh", "gopt_fragments.cuh", "gopt_launch.h", "gopt_math.cuh",
                    "recurrence_reference.h"},
                   {"gopt_recurrence_step.cuh", "gopt_recurrence_division.cuh", "gopt_recurrence_halves.cuh",
                    "gopt_recurrence_shares.cuh", "gopt_recurrence.cuh"},
                   kProgram);
}

}  // namespace
}  // namespace gopt
