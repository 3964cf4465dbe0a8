// RNN, GRU and LSTM whole: what an operator of so many steps that a node for each would be too many is read as for
// code. Its node is opaque to passes and rules; what it computes is a graph of one step, which the interpreter runs
// step by step and the code's kernels are checked against.
#pragma once

#include "gopt/graph.h"

namespace gopt {

struct Recurrence {
  enum class Cell { Tanh, Relu, Gru, Lstm };
  // The node's inputs, floats but for the lengths; null where they are left out.
  enum Input : size_t {
    kSums,     // [steps, batch, directions x gates x hidden]: the input's part of the gates, with all biases but kBias
    kWeights,  // [directions, gates x hidden, hidden]: what a state is multiplied by, as ONNX has it
    kState,    // [directions, batch, hidden], before the first step
    kCellState,  // likewise, of an LSTM
    kBias,       // [directions, gates x hidden], added to that product before a GRU's reset gate
    kPeepholes,  // [directions, 3 x hidden], of an LSTM
    kLengths,    // [batch], int64: sequences that end sooner keep their states, and give zeros
    kInputs
  };
  // Its outputs: [steps, directions, batch, hidden], then the last states, as kState and kCellState.

  Cell cell;
  bool is_reversed = false;  // the first direction goes from the last step to the first; a second one always does
  // Of one direction. Inputs "sums" [batch, gates x hidden], "weights" [hidden, gates x hidden], "state" [batch,
  // hidden], and as far as the node has them "cell", "bias", "peepholes", without the axis of directions; outputs the
  // next state and cell state.
  Graph step;

  int64_t gates() const { return cell == Cell::Lstm ? 4 : cell == Cell::Gru ? 3 : 1; }
  bool has_cell_state() const { return cell == Cell::Lstm; }
};

const char* to_string(Recurrence::Cell cell);  // "Lstm"

// The number of an operand among the inputs that a node has, in order; -1: it is left out.
int operand_of(const Node& node, Recurrence::Input input);

}  // namespace gopt
