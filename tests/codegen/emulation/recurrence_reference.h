// RNN, GRU and LSTM in float64, a step and a unit at a time, as ONNX's specification has them: what kernels are
// compared with, by numbers drawn.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace reference {

enum class Cell { Tanh, Relu, Gru, Lstm };

struct Case {
  const char* name;
  Cell cell;
  int64_t steps, batch, directions, hidden;
  bool has_lengths = false, has_peepholes = false, is_reversed = false;
  float scale = 1;  // of the sums
};

inline int64_t gates_of(Cell cell) { return cell == Cell::Lstm ? 4 : cell == Cell::Gru ? 3 : 1; }

struct Operands {
  std::vector<float> sums, weights, state, cell_state, bias, peepholes;
  std::vector<int64_t> lengths;

  explicit Operands(const Case& c) {
    std::mt19937 random(7);
    const auto draw = [&](int64_t count, float scale) {
      std::vector<float> numbers(static_cast<size_t>(count) + 1);
      for (float& x : numbers) x = scale * std::normal_distribution<float>()(random);
      return numbers;
    };
    const int64_t width = gates_of(c.cell) * c.hidden, states = c.directions * c.batch * c.hidden;
    sums = draw(c.steps * c.batch * c.directions * width, c.scale);
    weights = draw(c.directions * c.hidden * width, 1 / std::sqrt(static_cast<float>(c.hidden)));
    state = draw(states, 1);
    cell_state = draw(states, 1);
    bias = draw(c.directions * width, 0.5f);
    peepholes = draw(c.directions * 3 * c.hidden, 0.5f);
    for (int64_t b = 0; b < c.batch; b++) lengths.push_back((b * 3 + 1) % (c.steps + 1));
  }
};

struct Results {
  std::vector<double> all, last, last_cell;  // [steps, directions, batch, hidden]; [directions, batch, hidden]
};

inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// A GRU has the bias, an LSTM peepholes where it says so.
inline Results compute(const Case& c, const Operands& o) {
  const int64_t gates = gates_of(c.cell), states = c.directions * c.batch * c.hidden;
  const auto at = [](const std::vector<float>& from, int64_t number) {
    return static_cast<double>(from[static_cast<size_t>(number)]);
  };
  Results r{std::vector<double>(static_cast<size_t>(c.steps * states)),
            {o.state.begin(), o.state.begin() + states},
            {o.cell_state.begin(), o.cell_state.begin() + states}};
  for (int64_t line = 0; line < c.directions * c.batch; line++) {
    const int64_t d = line / c.batch, b = line % c.batch;
    double *const h = r.last.data() + line * c.hidden, *const cells = r.last_cell.data() + line * c.hidden;
    for (int64_t k = 0; k < c.steps; k++) {
      const int64_t t = c.is_reversed || d == 1 ? c.steps - 1 - k : k;
      if (c.has_lengths && t >= o.lengths[static_cast<size_t>(b)]) continue;
      std::vector<double> next(static_cast<size_t>(c.hidden));
      for (int64_t u = 0; u < c.hidden; u++) {
        double x[4] = {}, s[4] = {};
        for (int64_t g = 0; g < gates; g++) {
          x[g] = at(o.sums, (((t * c.batch + b) * c.directions + d) * gates + g) * c.hidden + u);
          if (c.cell == Cell::Gru) s[g] = at(o.bias, (d * gates + g) * c.hidden + u);
          for (int64_t from = 0; from < c.hidden; from++)
            s[g] += h[from] * at(o.weights, ((d * gates + g) * c.hidden + u) * c.hidden + from);
        }
        const auto peeped = [&](int64_t g, double cell) {
          return c.has_peepholes ? at(o.peepholes, (d * 3 + g) * c.hidden + u) * cell : 0;
        };
        double& made = next[static_cast<size_t>(u)];
        if (c.cell == Cell::Lstm) {
          const double i = logistic(x[0] + s[0] + peeped(0, cells[u])), f = logistic(x[2] + s[2] + peeped(2, cells[u]));
          cells[u] = f * cells[u] + i * std::tanh(x[3] + s[3]);
          made = logistic(x[1] + s[1] + peeped(1, cells[u])) * std::tanh(cells[u]);
        } else if (c.cell == Cell::Gru) {
          const double z = logistic(x[0] + s[0]);
          made = (1 - z) * std::tanh(x[2] + logistic(x[1] + s[1]) * s[2]) + z * h[u];
        } else {
          made = c.cell == Cell::Tanh ? std::tanh(x[0] + s[0]) : std::max(0.0, x[0] + s[0]);
        }
      }
      std::copy(next.begin(), next.end(), h);
      std::copy(next.begin(), next.end(), r.all.begin() + ((t * c.directions + d) * c.batch + b) * c.hidden);
    }
  }
  return r;
}

// The number of the first that differs by more than `loss` and what sums in floats do; -1: none. A NaN differs.
inline int64_t first_wrong(const std::vector<float>& got, const std::vector<double>& want, double loss = 0) {
  constexpr double kOfFloats = 2e-5;
  for (size_t i = 0; i < want.size(); i++)
    if (!(std::abs(got[i] - want[i]) <= (kOfFloats + loss) * std::max(1.0, std::abs(want[i]))))
      return static_cast<int64_t>(i);
  return -1;
}

}  // namespace reference
