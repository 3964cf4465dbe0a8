// RNN, GRU and LSTM of any number of steps: the weights that a state is multiplied by are packed in the order in which
// they are read, a panel for each vector of hidden units with all of their gates, so that a panel's states are finished
// while its sums are in registers. Directions and sequences of a batch need nothing of each other: threads take these;
// of steps that are worth waiting for each other, their panels, so that each thread's weights stay in its cache.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gopt_runtime {

enum class RecurrentCell { Tanh, Relu, Gru, Lstm };

struct RecurrenceShape {
  RecurrentCell cell = RecurrentCell::Lstm;
  int64_t steps = 1, batch = 1, directions = 1, hidden = 1;
  bool is_reversed = false;  // the first direction; a second one always is
};

inline int64_t gates_of(RecurrentCell cell) {
  return cell == RecurrentCell::Lstm ? 4 : cell == RecurrentCell::Gru ? 3 : 1;
}

// All dense; null where the operator has none, or nobody reads what it gives.
struct RecurrenceOperands {
  const float* sums =
      nullptr;  // [steps, batch, directions, gates, hidden]: the input's part, with all biases but `bias`
  const float* weights = nullptr;     // [directions, gates, hidden, hidden]
  const float* state = nullptr;       // [directions, batch, hidden]
  const float* cell_state = nullptr;  // likewise, of an LSTM
  const float* bias = nullptr;        // [directions, gates, hidden], of a GRU: added before its reset gate
  const float* peepholes = nullptr;   // [directions, 3, hidden], of an LSTM: of its gates i, o and f
  const int64_t* lengths = nullptr;   // [batch]
  float* result = nullptr;            // [steps, directions, batch, hidden]
  float *last = nullptr, *last_cell = nullptr;
};

class RecurrenceLoop {
 public:
  RecurrenceLoop(const RecurrenceShape& shape, int threads);

  size_t packed_floats() const;
  void pack(const float* weights, float* packed) const;
  size_t scratch_floats() const;
  // `packed` and `scratch` are 64-byte aligned.
  void run(const RecurrenceOperands& operands, const float* packed, float* scratch) const;

 private:
  struct Part {
    int64_t direction, first_panel, last_panel, first_row, last_row;
  };
  struct States {  // [directions, batch, units of whole panels]
    float *now, *next, *cell;
  };

  template <int gates>
  void step(const RecurrenceOperands& o, const float* packed, const States& states, int64_t k, const Part& part) const;
  void step(const RecurrenceOperands& o, const float* packed, const States& states, int64_t k, const Part& part) const;
  template <int gates, int rows>
  void add_rows(const RecurrenceOperands& o, const float* panel, const States& states, int64_t t, int64_t direction,
                int64_t number, int64_t row) const;
  void run_alone(const RecurrenceOperands& o, const float* packed, States states, const Part& part) const;
  void copy_states(const RecurrenceOperands& o, const States& states, bool to_last) const;
  States states_in(float* scratch) const;
  bool is_backwards(int64_t direction) const { return s_.is_reversed || direction == 1; }
  int64_t line(int64_t direction, int64_t row) const { return (direction * s_.batch + row) * padded_; }

  RecurrenceShape s_;
  int threads_;
  int64_t gates_, panels_, padded_;
};

}  // namespace gopt_runtime
