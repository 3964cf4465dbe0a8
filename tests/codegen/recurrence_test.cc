// RNN, GRU and LSTM in loops of our own against float64: units that fill no vector, sequences that fill no block, more
// threads than directions and sequences, sequences that end sooner, large sums.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "emulation/recurrence_reference.h"
#include "gopt_recurrence.h"

namespace gopt_runtime {
namespace {

struct Case : reference::Case {
  int threads = 1;
};
std::ostream& operator<<(std::ostream& os, const Case& c) { return os << c.name; }

constexpr auto kLstm = reference::Cell::Lstm, kGru = reference::Cell::Gru, kTanh = reference::Cell::Tanh,
               kRelu = reference::Cell::Relu;
const Case kCases[] = {
    {{"Lstm", kLstm, 7, 1, 1, 32}},
    {{"LstmOneUnit", kLstm, 5, 2, 1, 1}},
    {{"LstmOddUnits", kLstm, 6, 3, 2, 37}, 2},
    {{"LstmManySequences", kLstm, 4, 23, 1, 20}, 3},
    {{"LstmPanelsOfThreads", kLstm, 9, 1, 1, 230}, 3},
    {{"LstmPanelsOfTwoDirections", kLstm, 4, 2, 2, 200}, 5},
    {{"LstmLengths", kLstm, 6, 4, 2, 17, true}, 2},
    {{"LstmPeepholes", kLstm, 5, 2, 2, 19, true, true}},
    {{"LstmReversed", kLstm, 5, 2, 1, 16, false, false, true}},
    {{"LstmNoSteps", kLstm, 0, 2, 2, 9}},
    {{"LstmNoSequences", kLstm, 3, 0, 1, 9}},
    {{"LstmLarge", kLstm, 5, 2, 1, 33, false, false, false, 200}},
    {{"Gru", kGru, 7, 1, 1, 48}},
    {{"GruOddUnits", kGru, 6, 5, 2, 29, true}, 2},
    {{"GruManySequences", kGru, 4, 13, 2, 37, true}, 2},
    {{"TanhManySequences", kTanh, 4, 13, 2, 21, true}, 2},
    {{"GruPanelsOfThreads", kGru, 8, 1, 1, 290}, 4},
    {{"GruReversed", kGru, 5, 3, 1, 16, false, false, true}, 2},
    {{"Tanh", kTanh, 7, 1, 1, 40}},
    {{"TanhOddUnits", kTanh, 5, 11, 2, 31, true}, 2},
    {{"TanhPanelsOfThreads", kTanh, 5, 1, 1, 500}, 3},
    {{"Relu", kRelu, 7, 3, 2, 21}},
};

class RecurrenceLoops : public ::testing::TestWithParam<Case> {};

TEST_P(RecurrenceLoops, AreAsInDouble) {
  const Case c = GetParam();
  const reference::Operands given(c);
  const reference::Results want = reference::compute(c, given);
  const auto cell = static_cast<RecurrentCell>(c.cell);
  const RecurrenceLoop loop({cell, c.steps, c.batch, c.directions, c.hidden, c.is_reversed}, c.threads);
  constexpr float kBeyond = 3e9f;
  std::vector<float> result(want.all.size() + 1, kBeyond), last(want.last.size() + 1, kBeyond), last_cell(last),
      packed(loop.packed_floats() + 16), scratch(loop.scratch_floats() + 16, NAN);
  const auto aligned = [](std::vector<float>& room) {
    return reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(room.data()) + 63) / 64 * 64);
  };
  loop.pack(given.weights.data(), aligned(packed));
  RecurrenceOperands o{given.sums.data(), given.weights.data(), given.state.data()};
  if (c.cell == kLstm) o.cell_state = given.cell_state.data(), o.last_cell = last_cell.data();
  if (c.cell == kGru) o.bias = given.bias.data();
  if (c.has_peepholes) o.peepholes = given.peepholes.data();
  if (c.has_lengths) o.lengths = given.lengths.data();
  o.result = result.data(), o.last = last.data();
  for (int runs = 0; runs < 2; runs++) {  // of the run before nothing counts
    loop.run(o, aligned(packed), aligned(scratch));
    EXPECT_EQ(reference::first_wrong(result, want.all), -1);
    EXPECT_EQ(reference::first_wrong(last, want.last), -1);
    if (c.cell == kLstm) EXPECT_EQ(reference::first_wrong(last_cell, want.last_cell), -1);
  }
  EXPECT_EQ(result.back(), kBeyond);
  EXPECT_EQ(last.back(), kBeyond);
  EXPECT_EQ(last_cell.back(), kBeyond);
  // What nobody reads is not written.
  o.result = nullptr, o.last_cell = nullptr;
  last.assign(last.size(), kBeyond);
  loop.run(o, aligned(packed), aligned(scratch));
  EXPECT_EQ(reference::first_wrong(last, want.last), -1);
}

static_assert(static_cast<int>(RecurrentCell::Lstm) == static_cast<int>(kLstm) &&
              static_cast<int>(RecurrentCell::Gru) == static_cast<int>(kGru) &&
              static_cast<int>(RecurrentCell::Relu) == static_cast<int>(kRelu));

INSTANTIATE_TEST_SUITE_P(All, RecurrenceLoops, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace gopt_runtime
