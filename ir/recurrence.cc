#include "gopt/recurrence.h"

#include <algorithm>
#include <cstring>

#include "gopt/interpreter.h"

namespace gopt {
namespace {

const float* floats_of(const Tensor& tensor) { return reinterpret_cast<const float*>(tensor.bytes().data()); }

Tensor tensor_of(std::vector<int64_t> dims, const float* from) {
  const auto count = static_cast<size_t>(element_count(dims));
  std::vector<std::byte> bytes(count * sizeof(float));
  if (count > 0) std::memcpy(bytes.data(), from, bytes.size());
  return Tensor::from_bytes(ElementType::Float32, std::move(dims), std::move(bytes));
}

// Of a matrix.
Tensor transposed(const Tensor& matrix) {
  const int64_t rows = matrix.dims()[0], columns = matrix.dims()[1];
  std::vector<float> turned;
  for (int64_t c = 0; c < columns; c++)
    for (int64_t r = 0; r < rows; r++) turned.push_back(floats_of(matrix)[r * columns + c]);
  return tensor_of({columns, rows}, turned.data());
}

// Of all steps of a node's directions, one after another.
class StepByStep {
 public:
  StepByStep(const Recurrence& recurrence, const std::vector<Tensor>& inputs, Products products)
      : r_(recurrence), inputs_(inputs), products_(products) {
    const std::vector<int64_t>&sums = inputs[Recurrence::kSums].dims(), &weights = inputs[Recurrence::kWeights].dims();
    steps_ = sums[0], batch_ = sums[1], directions_ = weights[0], width_ = weights[1], hidden_ = weights[2];
    if (has(Recurrence::kLengths)) lengths_ = inputs[Recurrence::kLengths].to_ints();
    y_.resize(static_cast<size_t>(steps_ * directions_ * state_count()));
    last_.resize(static_cast<size_t>(directions_ * state_count()));
    if (r_.has_cell_state()) last_cell_.resize(last_.size());
  }

  Result<std::vector<Tensor>> run() {
    for (int64_t d = 0; d < directions_; d++) GOPT_RETURN_IF_ERROR(run_direction(d));
    const std::vector<int64_t> dims{directions_, batch_, hidden_};
    std::vector<Tensor> outputs{tensor_of({steps_, directions_, batch_, hidden_}, y_.data()),
                                tensor_of(dims, last_.data())};
    if (r_.has_cell_state()) outputs.push_back(tensor_of(dims, last_cell_.data()));
    return outputs;
  }

 private:
  bool has(size_t input) const { return input < inputs_.size() && inputs_[input].type() != ElementType::Undefined; }
  int64_t state_count() const { return batch_ * hidden_; }
  // The part of an input whose first axis is directions.
  Tensor of_direction(size_t input, int64_t direction) const {
    std::vector<int64_t> dims = inputs_[input].dims();
    dims.erase(dims.begin());
    const int64_t count = element_count(dims);
    return tensor_of(std::move(dims), floats_of(inputs_[input]) + direction * count);
  }
  Tensor sums_at(int64_t step, int64_t direction) const {
    std::vector<float> sums;
    for (int64_t b = 0; b < batch_; b++) {
      const float* from =
          floats_of(inputs_[Recurrence::kSums]) + ((step * batch_ + b) * directions_ + direction) * width_;
      sums.insert(sums.end(), from, from + width_);
    }
    return tensor_of({batch_, width_}, sums.data());
  }
  bool is_running(int64_t step, int64_t sequence) const {
    return lengths_.empty() || step < lengths_[static_cast<size_t>(sequence)];
  }

  Status run_direction(int64_t direction) {
    std::map<std::string, Tensor> given{{"weights", transposed(of_direction(Recurrence::kWeights, direction))}};
    if (has(Recurrence::kBias)) given["bias"] = of_direction(Recurrence::kBias, direction);
    if (has(Recurrence::kPeepholes)) given["peepholes"] = of_direction(Recurrence::kPeepholes, direction);
    std::vector<Tensor> states{of_direction(Recurrence::kState, direction)};
    if (r_.has_cell_state()) states.push_back(of_direction(Recurrence::kCellState, direction));
    const bool is_backwards = r_.is_reversed || direction == 1;
    for (int64_t k = 0; k < steps_; k++) {
      const int64_t step = is_backwards ? steps_ - 1 - k : k;
      given["sums"] = sums_at(step, direction);
      given["state"] = states[0];
      if (r_.has_cell_state()) given["cell"] = states[1];
      GOPT_ASSIGN_OR_RETURN(std::vector<Tensor> next, interpret(r_.step, given, products_));
      store(step, direction, next[0]);
      for (size_t s = 0; s < states.size(); s++) states[s] = kept(step, states[s], next[s]);
    }
    std::memcpy(last_.data() + direction * state_count(), floats_of(states[0]), states[0].bytes().size());
    if (r_.has_cell_state())
      std::memcpy(last_cell_.data() + direction * state_count(), floats_of(states[1]), states[1].bytes().size());
    return Unit{};
  }

  // Of sequences that have ended, zeros.
  void store(int64_t step, int64_t direction, const Tensor& state) {
    for (int64_t b = 0; b < batch_; b++)
      if (is_running(step, b))
        std::memcpy(y_.data() + ((step * directions_ + direction) * batch_ + b) * hidden_,
                    floats_of(state) + b * hidden_, static_cast<size_t>(hidden_) * sizeof(float));
  }
  // Of these the state before.
  Tensor kept(int64_t step, const Tensor& before, const Tensor& after) const {
    if (lengths_.empty()) return after;
    std::vector<float> states;
    for (int64_t b = 0; b < batch_; b++) {
      const float* from = floats_of(is_running(step, b) ? after : before) + b * hidden_;
      states.insert(states.end(), from, from + hidden_);
    }
    return tensor_of({batch_, hidden_}, states.data());
  }

  const Recurrence& r_;
  const std::vector<Tensor>& inputs_;
  Products products_;
  int64_t steps_, batch_, directions_, hidden_, width_;
  std::vector<int64_t> lengths_;
  std::vector<float> y_, last_, last_cell_;
};

}  // namespace

const char* to_string(Recurrence::Cell cell) {
  switch (cell) {
    case Recurrence::Cell::Tanh: return "Tanh";
    case Recurrence::Cell::Relu: return "Relu";
    case Recurrence::Cell::Gru: return "Gru";
    case Recurrence::Cell::Lstm: return "Lstm";
  }
  throw InternalError("a recurrence without a cell");
}

int operand_of(const Node& node, Recurrence::Input input) {
  if (!node.inputs[input]) return -1;
  const auto is_there = [](const Value& value) { return static_cast<bool>(value); };
  return static_cast<int>(std::count_if(node.inputs.begin(), node.inputs.begin() + input, is_there));
}

Result<std::vector<Tensor>> interpret_recurrence(const Recurrence& recurrence, const std::vector<Tensor>& inputs,
                                                 Products products) {
  return StepByStep(recurrence, inputs, products).run();
}

}  // namespace gopt
