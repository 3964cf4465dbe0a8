#include "gopt_recurrence.h"

#include <algorithm>
#include <cstring>

#include "gopt_math.h"
#include "gopt_panel_sums.h"
#include "gopt_team.h"

namespace gopt_runtime {
namespace {

// Multiplications of a step for which a thread is worth to be waited for.
constexpr int64_t kOfThread = 32 * 1024;

// Rows that a panel is multiplied by at once, and of how many gates: sums, a line of these gates and a row's number are
// in registers.
constexpr int kMostRows = 6;
template <int gates, int rows>
constexpr int kGatesAtOnce = rows* gates + gates <= kRegisters + 3 ? gates : 2;
// How many sums each is, which are added up in the end: of few, each addition would wait for the one before.
template <int gates, int rows>
constexpr int kSumsOf = gates* rows <= 2   ? 4
                        : gates* rows <= 4 ? 2
                                           : 1;

// Of so many rows by `part` gates of a panel's lines, from the gate at `w` on.
template <int gates, int part, int rows>
[[gnu::always_inline]] inline void multiply(const ScatteredRows<rows>& x, const float* w, int64_t depth,
                                            float (*to)[gates][kLanes]) {
  constexpr int sums = kSumsOf<part, rows>, line = gates * kLanes;
  Vector s[sums][rows][part];
  for (int n = 0; n < sums; n++)
    for (int r = 0; r < rows; r++)
      for (int g = 0; g < part; g++) s[n][r][g] = Vector{};
  int64_t k = 0;
  for (; k + sums <= depth; k += sums)
#pragma GCC unroll 4
    for (int n = 0; n < sums; n++, w += line) add_line(s[n], x, k + n, w);
  for (; k < depth; k++, w += line) add_line(s[0], x, k, w);
  for (int r = 0; r < rows; r++)
    for (int g = 0; g < part; g++) {
      for (int n = 1; n < sums; n++) s[0][r][g] += s[n][r][g];
      std::memcpy(to[r][g], &s[0][r][g], sizeof to[r][g]);
    }
}

inline float logistic(float x) { return 1.0f / (1.0f + gopt_exp(-x)); }

// Where what a row's units are computed of begins, and goes to.
struct Units {
  const float *x, *sums, *before, *peepholes;  // x and peepholes: `gate` numbers from one gate to the next
  int64_t gate;
  float *cell, *after;
};

template <int lanes>
inline void finish_lstm(const Units& u, int count) {
  const int n = lanes > 0 ? lanes : count;
  const float *i = u.x, *o = u.x + u.gate, *f = o + u.gate, *fresh = f + u.gate;
  const float *si = u.sums, *so = si + kLanes, *sf = so + kLanes, *sc = sf + kLanes;
  if (u.peepholes) {
    const float *pi = u.peepholes, *po = pi + u.gate, *pf = po + u.gate;
#pragma omp simd
    for (int j = 0; j < n; j++) {
      const float before = u.cell[j];
      const float cell = logistic(f[j] + sf[j] + pf[j] * before) * before +
                         logistic(i[j] + si[j] + pi[j] * before) * gopt_tanh(fresh[j] + sc[j]);
      u.cell[j] = cell;
      u.after[j] = logistic(o[j] + so[j] + po[j] * cell) * gopt_tanh(cell);
    }
    return;
  }
#pragma omp simd
  for (int j = 0; j < n; j++) {
    const float cell = logistic(f[j] + sf[j]) * u.cell[j] + logistic(i[j] + si[j]) * gopt_tanh(fresh[j] + sc[j]);
    u.cell[j] = cell;
    u.after[j] = logistic(o[j] + so[j]) * gopt_tanh(cell);
  }
}

template <int lanes>
inline void finish_gru(const Units& u, int count) {
  const int n = lanes > 0 ? lanes : count;
  const float *z = u.x, *r = u.x + u.gate, *fresh = r + u.gate;
  const float *sz = u.sums, *sr = sz + kLanes, *sh = sr + kLanes;
#pragma omp simd
  for (int j = 0; j < n; j++) {
    const float kept = logistic(z[j] + sz[j]);
    const float made = gopt_tanh(fresh[j] + logistic(r[j] + sr[j]) * sh[j]);
    u.after[j] = (1.0f - kept) * made + kept * u.before[j];
  }
}

template <int lanes>
inline void finish_plain(const Units& u, int count, bool is_relu) {
  const int n = lanes > 0 ? lanes : count;
  if (is_relu) {
#pragma omp simd
    for (int j = 0; j < n; j++) {
      const float x = u.x[j] + u.sums[j];
      u.after[j] = x < 0.0f ? 0.0f : x;
    }
    return;
  }
#pragma omp simd
  for (int j = 0; j < n; j++) u.after[j] = gopt_tanh(u.x[j] + u.sums[j]);
}

template <int lanes>
inline void finish(RecurrentCell cell, const Units& u, int count) {
  switch (cell) {
    case RecurrentCell::Lstm: return finish_lstm<lanes>(u, count);
    case RecurrentCell::Gru: return finish_gru<lanes>(u, count);
    case RecurrentCell::Tanh: return finish_plain<lanes>(u, count, false);
    case RecurrentCell::Relu: return finish_plain<lanes>(u, count, true);
  }
}

}  // namespace

RecurrenceLoop::RecurrenceLoop(const RecurrenceShape& shape, int threads)
    : s_(shape),
      threads_(threads),
      gates_(gates_of(shape.cell)),
      panels_(ceil_div(shape.hidden, kLanes)),
      padded_(panels_ * kLanes) {}

size_t RecurrenceLoop::packed_floats() const {
  return static_cast<size_t>(s_.directions * s_.hidden * gates_ * padded_);
}

size_t RecurrenceLoop::scratch_floats() const { return static_cast<size_t>(3 * s_.directions * s_.batch * padded_); }

void RecurrenceLoop::pack(const float* weights, float* packed) const {
  for (int64_t d = 0; d < s_.directions; d++)
    for (int64_t panel = 0; panel < panels_; panel++)
      for (int64_t k = 0; k < s_.hidden; k++)
        for (int64_t g = 0; g < gates_; g++)
          for (int64_t unit = panel * kLanes; unit < (panel + 1) * kLanes; unit++)
            *packed++ = unit < s_.hidden ? weights[((d * gates_ + g) * s_.hidden + unit) * s_.hidden + k] : 0.0f;
}

RecurrenceLoop::States RecurrenceLoop::states_in(float* scratch) const {
  const int64_t count = s_.directions * s_.batch * padded_;
  return {scratch, scratch + count, scratch + 2 * count};
}

// From the operands, or to the last ones that there are.
void RecurrenceLoop::copy_states(const RecurrenceOperands& o, const States& states, bool to_last) const {
  const auto bytes = static_cast<size_t>(s_.hidden) * sizeof(float);
  for (int64_t line = 0; line < s_.directions * s_.batch; line++) {
    const int64_t own = line * padded_, other = line * s_.hidden;
    if (!to_last) {
      std::memcpy(states.now + own, o.state + other, bytes);
      if (o.cell_state) std::memcpy(states.cell + own, o.cell_state + other, bytes);
      continue;
    }
    if (o.last) std::memcpy(o.last + other, states.now + own, bytes);
    if (o.last_cell) std::memcpy(o.last_cell + other, states.cell + own, bytes);
  }
}

// The units of a panel, of so many sequences from `row` on.
template <int gates, int rows>
void RecurrenceLoop::add_rows(const RecurrenceOperands& o, const float* panel, const States& states, int64_t t,
                              int64_t direction, int64_t number, int64_t row) const {
  const int64_t first = number * kLanes, at = line(direction, row);
  const int count = static_cast<int>(std::min<int64_t>(kLanes, s_.hidden - first));
  constexpr int part = kGatesAtOnce<gates, rows>, rest = gates % part;
  const ScatteredRows<rows> x = rows_apart<rows>(states.now + at, padded_);
  float sums[rows][gates][kLanes];
  for (int gate = 0; gate + part <= gates; gate += part)
    multiply<gates, part>(x, panel + gate * kLanes, s_.hidden,
                          reinterpret_cast<float(*)[gates][kLanes]>(sums[0][gate]));
  if constexpr (rest > 0)
    multiply<gates, rest>(x, panel + (gates - rest) * kLanes, s_.hidden,
                          reinterpret_cast<float(*)[gates][kLanes]>(sums[0][gates - rest]));
  for (int r = 0; r < rows; r++) {
    auto& own = sums[r];
    if (o.bias)
      for (int g = 0; g < gates; g++)
        for (int j = 0; j < count; j++) own[g][j] += o.bias[(direction * gates + g) * s_.hidden + first + j];
    const int64_t sequence = row + r, place = at + r * padded_ + first;
    float* result =
        !o.result ? nullptr : o.result + ((t * s_.directions + direction) * s_.batch + sequence) * s_.hidden + first;
    if (o.lengths && t >= o.lengths[sequence]) {
      std::memcpy(states.next + place, states.now + place, static_cast<size_t>(count) * sizeof(float));
      if (result) std::fill_n(result, count, 0.0f);
      continue;
    }
    const Units units{o.sums + ((t * s_.batch + sequence) * s_.directions + direction) * gates * s_.hidden + first,
                      own[0],
                      states.now + place,
                      o.peepholes ? o.peepholes + direction * 3 * s_.hidden + first : nullptr,
                      s_.hidden,
                      states.cell + place,
                      states.next + place};
    if (count == kLanes)
      finish<kLanes>(s_.cell, units, count);
    else
      finish<0>(s_.cell, units, count);
    if (result) std::memcpy(result, states.next + place, static_cast<size_t>(count) * sizeof(float));
  }
}

template <int gates>
void RecurrenceLoop::step(const RecurrenceOperands& o, const float* packed, const States& states, int64_t k,
                          const Part& part) const {
  const int64_t t = is_backwards(part.direction) ? s_.steps - 1 - k : k, panel_floats = s_.hidden * gates * kLanes;
  for (int64_t panel = part.first_panel; panel < part.last_panel; panel++) {
    const float* own = packed + (part.direction * panels_ + panel) * panel_floats;
    int64_t row = part.first_row;
    for (; row + kMostRows <= part.last_row; row += kMostRows)
      add_rows<gates, kMostRows>(o, own, states, t, part.direction, panel, row);
    for (; row + 4 <= part.last_row; row += 4) add_rows<gates, 4>(o, own, states, t, part.direction, panel, row);
    for (; row + 2 <= part.last_row; row += 2) add_rows<gates, 2>(o, own, states, t, part.direction, panel, row);
    for (; row < part.last_row; row++) add_rows<gates, 1>(o, own, states, t, part.direction, panel, row);
  }
}

void RecurrenceLoop::step(const RecurrenceOperands& o, const float* packed, const States& states, int64_t k,
                          const Part& part) const {
  switch (gates_) {
    case 4: return step<4>(o, packed, states, k, part);
    case 3: return step<3>(o, packed, states, k, part);
    default: return step<1>(o, packed, states, k, part);
  }
}

void RecurrenceLoop::run_alone(const RecurrenceOperands& o, const float* packed, States states,
                               const Part& part) const {
  for (int64_t k = 0; k < s_.steps; k++) {
    step(o, packed, states, k, part);
    std::swap(states.now, states.next);
  }
}

void RecurrenceLoop::run(const RecurrenceOperands& o, const float* packed, float* scratch) const {
  States states = states_in(scratch);
  copy_states(o, states, false);
  const int64_t wanted = ceil_div(threads_, s_.directions), of_step = s_.batch * s_.hidden * s_.hidden * gates_;
  const int64_t useful = std::min<int64_t>(threads_, s_.directions * of_step / kOfThread);
  if (useful <= s_.directions) {
    const int64_t parts = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(s_.batch, 1));
    share(s_.directions * parts, threads_, [&](int64_t part, int) {
      const int64_t d = part / parts, p = part % parts;
      run_alone(o, packed, states, {d, 0, panels_, s_.batch * p / parts, s_.batch * (p + 1) / parts});
    });
    if (s_.steps % 2 != 0) std::swap(states.now, states.next);
  } else {
    const int64_t parts = std::min(panels_, ceil_div(useful, s_.directions));
    for (int64_t k = 0; k < s_.steps; k++) {
      share(s_.directions * parts, static_cast<int>(useful), [&](int64_t part, int) {
        const int64_t d = part / parts, p = part % parts;
        step(o, packed, states, k, {d, panels_ * p / parts, panels_ * (p + 1) / parts, 0, s_.batch});
      });
      std::swap(states.now, states.next);
    }
  }
  copy_states(o, states, true);
}

}  // namespace gopt_runtime
