// RNN, GRU and LSTM in loops of our own against float64 as ONNX's specification has them: units that fill no vector,
// sequences that fill no block, more threads than directions and sequences, sequences that end sooner, large sums.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "gopt_recurrence.h"

namespace gopt_runtime {
namespace {

struct Case {
  const char* name;
  RecurrentCell cell;
  int64_t steps, batch, directions, hidden;
  int threads = 1;
  bool has_lengths = false, has_peepholes = false, is_reversed = false;
  float scale = 1;  // of the sums
};
std::ostream& operator<<(std::ostream& os, const Case& c) { return os << c.name; }

constexpr auto kLstm = RecurrentCell::Lstm, kGru = RecurrentCell::Gru, kTanh = RecurrentCell::Tanh,
               kRelu = RecurrentCell::Relu;
const Case kCases[] = {
    {"Lstm", kLstm, 7, 1, 1, 32},
    {"LstmOneUnit", kLstm, 5, 2, 1, 1},
    {"LstmOddUnits", kLstm, 6, 3, 2, 37, 2},
    {"LstmManySequences", kLstm, 4, 23, 1, 20, 3},
    {"LstmPanelsOfThreads", kLstm, 9, 1, 1, 230, 3},
    {"LstmPanelsOfTwoDirections", kLstm, 4, 2, 2, 200, 5},
    {"LstmLengths", kLstm, 6, 4, 2, 17, 2, true},
    {"LstmPeepholes", kLstm, 5, 2, 2, 19, 1, true, true},
    {"LstmReversed", kLstm, 5, 2, 1, 16, 1, true, false, true},
    {"LstmNoSteps", kLstm, 0, 2, 2, 9},
    {"LstmNoSequences", kLstm, 3, 0, 1, 9},
    {"LstmLarge", kLstm, 5, 2, 1, 33, 1, false, false, false, 200},
    {"Gru", kGru, 7, 1, 1, 48},
    {"GruOddUnits", kGru, 6, 5, 2, 29, 2, true},
    {"GruPanelsOfThreads", kGru, 8, 1, 1, 290, 4},
    {"GruReversed", kGru, 5, 3, 1, 16, 2, false, false, true},
    {"Tanh", kTanh, 7, 1, 1, 40},
    {"TanhOddUnits", kTanh, 5, 11, 2, 31, 2, true},
    {"TanhPanelsOfThreads", kTanh, 5, 1, 1, 500, 3},
    {"Relu", kRelu, 7, 3, 2, 21},
};

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

class RecurrenceLoops : public ::testing::TestWithParam<Case> {};

TEST_P(RecurrenceLoops, AreAsInDouble) {
  const Case c = GetParam();
  const int64_t gates = gates_of(c.cell), states = c.directions * c.batch * c.hidden, width = gates * c.hidden;
  std::mt19937 random(7);
  const auto draw = [&](int64_t count, float scale) {
    std::vector<float> numbers(static_cast<size_t>(count) + 1);
    for (float& x : numbers) x = scale * std::normal_distribution<float>()(random);
    return numbers;
  };
  const std::vector<float> sums = draw(c.steps * c.batch * c.directions * width, c.scale),
                           weights = draw(c.directions * c.hidden * width, 1 / std::sqrt(static_cast<float>(c.hidden))),
                           state = draw(states, 1), cell_state = draw(states, 1),
                           bias = draw(c.directions * width, 0.5f), peepholes = draw(c.directions * 3 * c.hidden, 0.5f);
  std::vector<int64_t> lengths;
  for (int64_t b = 0; b < c.batch; b++) lengths.push_back((b * 3 + 1) % (c.steps + 1));
  std::vector<float> result(static_cast<size_t>(c.steps * states) + 1, 3e9f),
      last(static_cast<size_t>(states) + 1, 3e9f), last_cell(last);

  const RecurrenceLoop loop({c.cell, c.steps, c.batch, c.directions, c.hidden, c.is_reversed}, c.threads);
  std::vector<float> packed(loop.packed_floats() + 16), scratch(loop.scratch_floats() + 16, NAN);
  const auto aligned = [](std::vector<float>& room) {
    return reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(room.data()) + 63) / 64 * 64);
  };
  loop.pack(weights.data(), aligned(packed));
  RecurrenceOperands o{sums.data(), weights.data(), state.data()};
  if (c.cell == kLstm) o.cell_state = cell_state.data(), o.last_cell = last_cell.data();
  if (c.cell == kGru) o.bias = bias.data();
  if (c.has_peepholes) o.peepholes = peepholes.data();
  if (c.has_lengths) o.lengths = lengths.data();
  o.result = result.data(), o.last = last.data();
  loop.run(o, aligned(packed), aligned(scratch));
  loop.run(o, aligned(packed), aligned(scratch));  // nothing of the run before counts

  const auto hidden = static_cast<size_t>(c.hidden);
  for (int64_t d = 0; d < c.directions; d++)
    for (int64_t b = 0; b < c.batch; b++) {
      const int64_t line = (d * c.batch + b) * c.hidden;
      std::vector<double> h(state.begin() + line, state.begin() + line + c.hidden),
          own(cell_state.begin() + line, cell_state.begin() + line + c.hidden);
      for (int64_t k = 0; k < c.steps; k++) {
        const int64_t t = c.is_reversed || d == 1 ? c.steps - 1 - k : k;
        const bool runs = !c.has_lengths || t < lengths[static_cast<size_t>(b)];
        const float* x = sums.data() + ((t * c.batch + b) * c.directions + d) * width;
        std::vector<double> next(hidden);
        for (int64_t u = 0; u < c.hidden; u++) {
          double s[4] = {};
          for (int64_t g = 0; g < gates; g++) {
            if (c.cell == kGru) s[g] = bias[static_cast<size_t>((d * gates + g) * c.hidden + u)];
            for (int64_t k2 = 0; k2 < c.hidden; k2++)
              s[g] += h[static_cast<size_t>(k2)] *
                      weights[static_cast<size_t>(((d * c.hidden + k2) * gates + g) * c.hidden + u)];
          }
          const auto in = [&](int64_t g) { return static_cast<double>(x[g * c.hidden + u]); };
          const auto peeped = [&](int64_t g, double cell) {
            return c.has_peepholes ? peepholes[static_cast<size_t>((d * 3 + g) * c.hidden + u)] * cell : 0;
          };
          const auto at = static_cast<size_t>(u);
          if (c.cell == kLstm) {
            const double before = own[at], i = logistic(in(0) + s[0] + peeped(0, before)),
                         f = logistic(in(2) + s[2] + peeped(2, before)), now = f * before + i * std::tanh(in(3) + s[3]);
            if (runs) own[at] = now;
            next[at] = logistic(in(1) + s[1] + peeped(1, now)) * std::tanh(now);
          } else if (c.cell == kGru) {
            const double z = logistic(in(0) + s[0]), r = logistic(in(1) + s[1]);
            next[at] = (1 - z) * std::tanh(in(2) + r * s[2]) + z * h[at];
          } else {
            next[at] = c.cell == kTanh ? std::tanh(in(0) + s[0]) : std::max(0.0, in(0) + s[0]);
          }
        }
        for (int64_t u = 0; u < c.hidden; u++) {
          const double want = runs ? next[static_cast<size_t>(u)] : 0;
          const float got = result[static_cast<size_t>(((t * c.directions + d) * c.batch + b) * c.hidden + u)];
          ASSERT_LE(std::abs(got - want), 2e-5 * std::max(1.0, std::abs(want)))
              << "step " << t << ", direction " << d << ", sequence " << b << ", unit " << u;
        }
        if (runs) h = next;
      }
      for (int64_t u = 0; u < c.hidden; u++) {
        ASSERT_NEAR(last[static_cast<size_t>(line + u)], h[static_cast<size_t>(u)],
                    2e-5 * std::max(1.0, std::abs(h[static_cast<size_t>(u)])));
        if (c.cell == kLstm) {
          ASSERT_NEAR(last_cell[static_cast<size_t>(line + u)], own[static_cast<size_t>(u)], 5e-5);
        }
      }
    }
  EXPECT_EQ(result.back(), 3e9f);
  EXPECT_EQ(last.back(), 3e9f);
}

INSTANTIATE_TEST_SUITE_P(All, RecurrenceLoops, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace gopt_runtime
