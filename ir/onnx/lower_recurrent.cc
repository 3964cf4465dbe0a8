// RNN, GRU and LSTM: the input's part of all steps is one product, made before them. Few steps are unrolled, a node for
// each; many are a node for all (gopt/recurrence.h), of a graph of one step.
#include <algorithm>
#include <cctype>

#include "gopt/recurrence.h"
#include "lowering.h"

namespace gopt::ir {
namespace {

constexpr int64_t kMostSteps = 1024;  // that are unrolled, of all directions together
constexpr int64_t kMostUnrolled = 2;  // where they need not be

// ---- activations ----

struct GateFunction {
  std::string name;
  double alpha = 0, beta = 0;
};

// Names in order, each with its own parameters where it takes any; lists name only those of functions that do.
std::vector<GateFunction> activations_of(Lowering& l, std::vector<std::string> names) {
  struct Known {
    const char* name;
    int parameters;
    double alpha, beta;
  };
  static constexpr Known kKnown[] = {{"relu", 0, 0, 0},
                                     {"tanh", 0, 0, 0},
                                     {"sigmoid", 0, 0, 0},
                                     {"softsign", 0, 0, 0},
                                     {"softplus", 0, 0, 0},
                                     {"affine", 2, 1, 0},
                                     {"leakyrelu", 1, 0.01, 0},
                                     {"elu", 1, 1, 0},
                                     {"thresholdedrelu", 1, 1, 0},
                                     {"scaledtanh", 2, 1, 1},
                                     {"hardsigmoid", 2, 0.2, 0.5}};
  const auto list = [&](const char* name) { return l.has_attribute(name) ? l.floats(name) : std::vector<double>(); };
  const std::vector<double> alphas = list("activation_alpha"), betas = list("activation_beta");
  size_t alpha = 0, beta = 0;
  std::vector<GateFunction> all;
  for (std::string& name : names) {
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto* known =
        std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Known& k) { return name == k.name; });
    Lowering::require(known != std::end(kKnown));
    GateFunction& a = all.emplace_back(GateFunction{name, known->alpha, known->beta});
    if (known->parameters >= 1 && alpha < alphas.size()) a.alpha = alphas[alpha++];
    if (known->parameters >= 2 && beta < betas.size()) a.beta = betas[beta++];
  }
  return all;
}

Value activated(Lowering& l, const Value& x, const GateFunction& a) {
  const auto number = [&](double value) { return l.scalar(type_of(x), value); };
  if (a.name == "relu") return l.op(OpKind::Relu, {x});
  if (a.name == "tanh") return l.op(OpKind::Tanh, {x});
  if (a.name == "sigmoid") return l.op(OpKind::Sigmoid, {x});
  if (a.name == "softsign") return l.op(OpKind::Softsign, {x});
  if (a.name == "softplus") return l.op(OpKind::Softplus, {x});
  if (a.name == "affine") return l.add(l.mul(x, number(a.alpha)), number(a.beta));
  if (a.name == "scaledtanh") return l.mul(l.op(OpKind::Tanh, {l.mul(x, number(a.beta))}), number(a.alpha));
  if (a.name == "thresholdedrelu") return l.where(l.op(OpKind::Less, {x, number(a.alpha)}), number(0), x);
  if (a.name == "leakyrelu") return l.op(OpKind::LeakyRelu, {x}, {{"alpha", a.alpha}});
  if (a.name == "elu") return l.op(OpKind::Elu, {x}, {{"alpha", a.alpha}});
  return l.op(OpKind::HardSigmoid, {x}, {{"alpha", a.alpha}, {"beta", a.beta}});
}

// ---- one direction ----

struct State {
  Value h, c;  // [batch, hidden]
};

// Weights of one direction, transposed for products from the right; biases of all gates in a row.
class Cell {
 public:
  Cell(Lowering& l, int64_t gates, int64_t hidden, std::vector<GateFunction> activations)
      : l_(l), gates_(gates), hidden_(hidden), activations_(std::move(activations)), clip_(l.real("clip", 0)) {}
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;
  virtual ~Cell() = default;

  // Of which a graph of one step is made, without biases of the input.
  void take_given(Value recurrent, Value recurrent_bias, Value peepholes) {
    recurrent_ = std::move(recurrent);
    recurrent_bias_ = std::move(recurrent_bias);
    peepholes_ = std::move(peepholes);
  }

  void take_weights(int64_t direction) {
    recurrent_ = transposed(of_direction(l_.input(2), direction));
    if (l_.has(3)) {
      const Value both = of_direction(l_.input(3), direction);
      input_bias_ = l_.slice(both, 0, 0, gates_ * hidden_);
      recurrent_bias_ = l_.slice(both, 0, gates_ * hidden_, 2 * gates_ * hidden_);
    }
    take_more(direction);
  }
  // The input's part of the gates, of all steps: [steps, batch, gates x hidden].
  Value projected(const Value& x, int64_t direction) {
    const Value product = l_.op(OpKind::MatMul, {x, transposed(of_direction(l_.input(1), direction))});
    if (!input_bias_) return product;
    const Value bias = adds_recurrent_bias() ? l_.add(input_bias_, recurrent_bias_) : input_bias_;
    return l_.add(product, bias);
  }
  virtual State step(const Value& x, const State& before) = 0;  // x: the step's part, [batch, gates x hidden]

 protected:
  virtual void take_more(int64_t) {}
  virtual bool adds_recurrent_bias() const { return true; }

  Value of_direction(const Value& v, int64_t direction) {
    return l_.op(OpKind::Squeeze, {l_.slice(v, 0, direction, direction + 1)}, {{"axes", std::vector<Index>{Index(0)}}});
  }
  Value transposed(const Value& matrix) { return l_.transpose(matrix, {1, 0}); }
  Value gate(const Value& v, int64_t k) {
    const auto axis = static_cast<int64_t>(rank_of(v)) - 1;
    return gates_ == 1 ? v : l_.slice(v, axis, k * hidden_, (k + 1) * hidden_);
  }
  Value apply(size_t activation, Value x) {
    if (clip_ > 0) x = l_.op(OpKind::Clip, {x}, {{"min", -clip_}, {"max", clip_}});
    return activated(l_, x, activations_.at(activation));
  }
  Value one_less(const Value& v) { return l_.sub(l_.scalar(type_of(v), 1), v); }

  Lowering& l_;
  int64_t gates_, hidden_;
  std::vector<GateFunction> activations_;
  double clip_;
  Value recurrent_, input_bias_, recurrent_bias_, peepholes_;
};

class RnnCell : public Cell {
 public:
  using Cell::Cell;
  State step(const Value& x, const State& before) override {
    return {apply(0, l_.add(x, l_.op(OpKind::MatMul, {before.h, recurrent_}))), {}};
  }
};

// Gates z, r, h.
class GruCell : public Cell {
 public:
  using Cell::Cell;
  State step(const Value& x, const State& before) override {
    const int64_t both = 2 * hidden_, all = 3 * hidden_;
    const Value x_gates = l_.slice(x, 1, 0, both), x_new = l_.slice(x, 1, both, all);
    Value h_gates, h_new;
    if (resets_after()) {
      Value product = l_.op(OpKind::MatMul, {before.h, recurrent_});
      if (recurrent_bias_) product = l_.add(product, recurrent_bias_);
      h_gates = l_.slice(product, 1, 0, both);
      h_new = l_.slice(product, 1, both, all);
    } else {
      h_gates = l_.op(OpKind::MatMul, {before.h, l_.slice(recurrent_, 1, 0, both)});
    }
    const Value gates = apply(0, l_.add(x_gates, h_gates));
    const Value z = l_.slice(gates, 1, 0, hidden_), r = l_.slice(gates, 1, hidden_, both);
    if (resets_after())
      h_new = l_.mul(r, h_new);
    else
      h_new = l_.op(OpKind::MatMul, {l_.mul(r, before.h), l_.slice(recurrent_, 1, both, all)});
    const Value fresh = apply(1, l_.add(x_new, h_new));
    return {l_.add(l_.mul(one_less(z), fresh), l_.mul(z, before.h)), {}};
  }

 protected:
  bool adds_recurrent_bias() const override { return !resets_after(); }

 private:
  bool resets_after() const { return l_.integer("linear_before_reset", 0) != 0; }
};

// Gates i, o, f, c.
class LstmCell : public Cell {
 public:
  using Cell::Cell;
  State step(const Value& x, const State& before) override {
    const Value sums = l_.add(x, l_.op(OpKind::MatMul, {before.h, recurrent_}));
    const Value i = apply(0, peeped(gate(sums, 0), 0, before.c));
    const Value f = l_.integer("input_forget", 0) != 0 ? one_less(i) : apply(0, peeped(gate(sums, 2), 2, before.c));
    const Value fresh = apply(1, gate(sums, 3));
    const Value c = l_.add(l_.mul(f, before.c), l_.mul(i, fresh));
    const Value o = apply(0, peeped(gate(sums, 1), 1, c));
    return {l_.mul(o, activated(l_, c, activations_.at(2))), c};
  }

 protected:
  void take_more(int64_t direction) override {
    if (l_.has(7)) peepholes_ = of_direction(l_.input(7), direction);
  }

 private:
  Value peeped(const Value& sum, int64_t k, const Value& c) {
    if (!peepholes_) return sum;
    return l_.add(sum, l_.mul(l_.slice(peepholes_, 0, k * hidden_, (k + 1) * hidden_), c));
  }
};

// ---- the whole ----

// Which sequences are still running at each step; null where all run to the end.
class Lengths {
 public:
  // `steps`: 0 where they are any number.
  Lengths(Lowering& l, int64_t steps) : l_(l) {
    if (!l.has(4)) return;
    const Value given = l.input(4);
    if (given.node->is(OpKind::Constant) && steps > 0) {
      const std::vector<int64_t> known = given.node->tensor.to_ints();
      if (std::all_of(known.begin(), known.end(), [&](int64_t length) { return length >= steps; })) return;
    }
    lengths_ = l.cast(given, ElementType::Int64);
  }
  const Value& all() const { return lengths_; }  // [batch]; null where all run to the end
  Value chosen(int64_t step, const Value& running, const Value& ended) const {
    if (!lengths_) return running;
    const Value at = l_.scalar(ElementType::Int64, static_cast<double>(step));
    return l_.where(l_.op(OpKind::Less, {at, l_.unsqueeze(lengths_, 1)}), running, ended);
  }

 private:
  Lowering& l_;
  Value lengths_;
};

struct Unrolled {
  Value y;  // [steps, 1, batch, hidden]
  State last;
};
Unrolled unrolled(Lowering& l, Cell& cell, const Value& x, State state, int64_t direction, bool backwards,
                  const Lengths& lengths) {
  const int64_t steps = extent_of(x, 0);
  cell.take_weights(direction);
  const Value projected = cell.projected(x, direction), zero = l.scalar(type_of(x), 0);
  Values ys(static_cast<size_t>(steps));
  for (int64_t k = 0; k < steps; k++) {
    const int64_t t = backwards ? steps - 1 - k : k;
    const Value part = l.slice(projected, 0, t, t + 1);
    const State next = cell.step(l.op(OpKind::Squeeze, {part}, {{"axes", std::vector<Index>{Index(0)}}}), state);
    ys[static_cast<size_t>(t)] =
        l.op(OpKind::Unsqueeze, {lengths.chosen(t, next.h, zero)}, {{"axes", std::vector<Index>{Index(0), Index(1)}}});
    state.h = lengths.chosen(t, next.h, state.h);
    if (next.c) state.c = lengths.chosen(t, next.c, state.c);
  }
  return {ys.size() == 1 ? ys[0] : l.concat(ys, 0), state};
}

// The batch is the first axis of X, Y and the states where `layout` is 1.
Value batch_second(Lowering& l, const Value& v) { return l.integer("layout", 0) != 0 ? l.transpose(v, {1, 0, 2}) : v; }

State initial_state(Lowering& l, bool has_cell, int64_t direction, const Value& x, int64_t hidden) {
  const auto part = [&](size_t i) {
    if (!l.has(i)) return l.expand(l.scalar(type_of(x), 0), {shape_of(x)[1], Index(hidden)});
    const Value all = batch_second(l, l.input(i));
    return l.op(OpKind::Squeeze, {l.slice(all, 0, direction, direction + 1)}, {{"axes", std::vector<Index>{Index(0)}}});
  };
  return {part(5), has_cell ? part(6) : Value{}};
}

// ---- a node for all steps ----

// The cell that code has a kernel for, in all directions; nothing where it is another one.
std::optional<Recurrence::Cell> whole_cell(Lowering& l, int64_t gates, const std::vector<GateFunction>& activations) {
  using Cells = Recurrence::Cell;
  std::vector<std::string> wanted{activations[0].name};
  Cells cell = wanted[0] == "relu" ? Cells::Relu : Cells::Tanh;
  if (gates == 4) wanted = {"sigmoid", "tanh", "tanh"}, cell = Cells::Lstm;
  if (gates == 3) wanted = {"sigmoid", "tanh"}, cell = Cells::Gru;
  if (gates == 1 && wanted[0] != "tanh" && wanted[0] != "relu") return std::nullopt;
  for (size_t k = 0; k < activations.size(); k++)
    if (activations[k].name != wanted[k % wanted.size()]) return std::nullopt;
  const bool is_usual = l.real("clip", 0) == 0 && (gates != 4 || l.integer("input_forget", 0) == 0) &&
                        (gates != 3 || l.integer("linear_before_reset", 0) != 0);
  return is_usual && type_of(l.input(0)) == ElementType::Float32 ? std::optional(cell) : std::nullopt;
}

// The value, whose shape is that at the sizes at which open extents agree, and at others an error.
Value of_shape(Lowering& l, const Value& x, const Shape& shape) {
  Lowering::require(rank_of(x) == shape.size());
  for (size_t axis = 0; axis < shape.size(); axis++) {
    const Index& own = shape_of(x)[axis];
    Lowering::require(own == shape[axis] || !own.is_constant() || !shape[axis].is_constant());
  }
  return l.reshape(x, shape);
}

// States of all directions before the first step, [directions, batch, hidden].
Value initial_states(Lowering& l, size_t input, const Value& x, int64_t directions, int64_t hidden) {
  const Shape states{Index(directions), shape_of(x)[1], Index(hidden)};
  if (l.has(input)) return of_shape(l, batch_second(l, l.input(input)), states);
  return l.expand(l.scalar(type_of(x), 0), states);
}

class WholeRecurrence {
 public:
  WholeRecurrence(Lowering& l, Recurrence::Cell cell, const Value& x, bool is_reversed) : l_(l), x_(x) {
    r_.cell = cell;
    r_.is_reversed = is_reversed;
    directions_ = extent_of(l.input(2), 0), hidden_ = extent_of(l.input(2), 2), width_ = r_.gates() * hidden_;
  }

  // `step` is of one direction: of which it is does not matter.
  Values run(Cell& step, const Lengths& lengths) {
    const Index ways(directions_), gates(width_), hidden(hidden_);
    require_shape(1, {ways, gates, shape_of(x_)[2]});
    require_shape(2, {ways, gates, hidden});
    require_shape(3, {ways, gates + gates});
    require_shape(7, {ways, Index(3 * hidden_)});
    Values inputs(Recurrence::kInputs);
    inputs[Recurrence::kWeights] = l_.input(2);
    inputs[Recurrence::kSums] = sums(inputs);
    inputs[Recurrence::kState] = initial_states(l_, 5, x_, directions_, hidden_);
    if (r_.has_cell_state()) inputs[Recurrence::kCellState] = initial_states(l_, 6, x_, directions_, hidden_);
    if (r_.has_cell_state() && l_.has(7)) inputs[Recurrence::kPeepholes] = l_.input(7);
    if (lengths.all()) inputs[Recurrence::kLengths] = of_shape(l_, lengths.all(), {shape_of(x_)[1]});
    r_.step = l_.apart([&] { build_step(step, inputs); });
    const ElementType type = type_of(x_);
    const Shape &from = shape_of(x_), state{Index(directions_), from[1], Index(hidden_)};
    std::vector<TensorType> types{{type, Shape{from[0], Index(directions_), from[1], Index(hidden_)}}, {type, state}};
    if (r_.has_cell_state()) types.push_back({type, state});
    const size_t outputs = types.size();
    const NodePtr node =
        l_.recurrence(std::make_shared<Recurrence>(std::move(r_)), std::move(inputs), std::move(types));
    Values results;
    for (size_t k = 0; k < outputs; k++) results.push_back({node, static_cast<int>(k)});
    return results;
  }

 private:
  // Where there is such an input: the kernel reads so much.
  void require_shape(size_t input, const Shape& shape) const {
    Lowering::require(!l_.has(input) || shape_of(l_.input(input)) == shape);
  }
  // The input's part of all steps and directions; of the recurrent biases what is not kept apart, too.
  Value sums(Values& inputs) {
    const Value weights =
        l_.reshape(l_.transpose(l_.input(1), {2, 0, 1}), {shape_of(x_)[2], Index(directions_ * width_)});
    const Value product = l_.op(OpKind::MatMul, {x_, weights});
    if (!l_.has(3)) return product;
    Value bias = l_.slice(l_.input(3), 1, 0, width_);
    const Value recurrent = l_.slice(l_.input(3), 1, width_, 2 * width_);
    if (r_.cell == Recurrence::Cell::Gru)
      inputs[Recurrence::kBias] = recurrent;
    else
      bias = l_.add(bias, recurrent);
    return l_.add(product, l_.reshape(bias, {Index(directions_ * width_)}));
  }

  void build_step(Cell& step, const Values& inputs) {
    const Index batch = shape_of(x_)[1];
    const auto input = [&](const char* name, const Shape& shape) { return l_.graph_input(name, {type_of(x_), shape}); };
    const Value own_sums = input("sums", {batch, Index(width_)}),
                weights = input("weights", {Index(hidden_), Index(width_)});
    State state{input("state", {batch, Index(hidden_)}), {}};
    if (r_.has_cell_state()) state.c = input("cell", {batch, Index(hidden_)});
    Value bias, peepholes;
    if (inputs[Recurrence::kBias]) bias = input("bias", {Index(width_)});
    if (inputs[Recurrence::kPeepholes]) peepholes = input("peepholes", {Index(3 * hidden_)});
    step.take_given(weights, bias, peepholes);
    const State next = step.step(own_sums, state);
    l_.graph_output("next", next.h);
    if (next.c) l_.graph_output("next_cell", next.c);
  }

  Lowering& l_;
  const Value x_;
  Recurrence r_;
  int64_t directions_ = 1, hidden_ = 1, width_ = 1;
};

// As the operator gives them, from [steps, directions, batch, hidden] and states.
Values in_layout(Lowering& l, Values results) {
  if (l.integer("layout", 0) != 0) results[0] = l.transpose(results[0], {2, 0, 1, 3});
  for (size_t k = 1; k < results.size(); k++) results[k] = batch_second(l, results[k]);
  return results;
}

// Where there is such an input: what of its shape is known is as the operator has it.
void require_shape(const Lowering& l, size_t input, const Shape& wanted) {
  if (!l.has(input)) return;
  const Shape shape = shape_of(l.input(input));
  Lowering::require(shape.size() == wanted.size());
  for (size_t k = 0; k < shape.size(); k++)
    Lowering::require(!shape[k].is_constant() || !wanted[k].is_constant() || shape[k] == wanted[k]);
}

template <class C>
Values lower_recurrent(Lowering& l, int64_t gates, const std::vector<std::string>& defaults) {
  const Value x = batch_second(l, l.input(0));
  Lowering::require(rank_of(x) == 3 && is_floating(type_of(x)) && rank_of(l.input(2)) == 3);
  const int64_t directions = extent_of(l.input(2), 0), hidden = extent_of(l.input(2), 2);
  const std::string way = l.text("direction", "forward");
  Lowering::require(way == "forward" || way == "reverse" || way == "bidirectional");
  Lowering::require(directions == (way == "bidirectional" ? 2 : 1) && l.integer("hidden_size", hidden) == hidden);
  const Index ways(directions), width(gates * hidden), batch = shape_of(x)[1];
  require_shape(l, 1, {ways, width, shape_of(x)[2]});
  require_shape(l, 2, {ways, width, Index(hidden)});
  require_shape(l, 3, {ways, width + width});
  require_shape(l, 4, {batch});
  for (const size_t state : {5, 6})
    require_shape(l, state,
                  l.integer("layout", 0) != 0 ? Shape{batch, ways, Index(hidden)} : Shape{ways, batch, Index(hidden)});
  require_shape(l, 7, {ways, Index(3 * hidden)});
  std::vector<std::string> names = l.texts("activations");
  if (names.empty())
    for (int64_t d = 0; d < directions; d++) names.insert(names.end(), defaults.begin(), defaults.end());
  const std::vector<GateFunction> activations = activations_of(l, names);
  Lowering::require(activations.size() == defaults.size() * static_cast<size_t>(directions));
  const bool has_cell = defaults.size() == 3;
  const bool is_open = !shape_of(x)[0].is_constant();
  if (const auto whole = whole_cell(l, gates, activations);
      whole && (is_open || extent_of(x, 0) == 0 || extent_of(x, 0) > kMostUnrolled)) {
    C cell(l, gates, hidden, {activations.begin(), activations.begin() + static_cast<int64_t>(defaults.size())});
    const Lengths lengths(l, is_open ? 0 : extent_of(x, 0));
    return in_layout(l, WholeRecurrence(l, *whole, x, way == "reverse").run(cell, lengths));
  }
  const int64_t steps = extent_of(x, 0);
  Lowering::require(steps > 0 && steps * directions <= kMostSteps);
  const Lengths lengths(l, steps);
  Values y, h, c;
  for (int64_t d = 0; d < directions; d++) {
    const auto first = activations.begin() + d * static_cast<int64_t>(defaults.size());
    C cell(l, gates, hidden, {first, first + static_cast<int64_t>(defaults.size())});
    const Unrolled one =
        unrolled(l, cell, x, initial_state(l, has_cell, d, x, hidden), d, way == "reverse" || d == 1, lengths);
    y.push_back(one.y);
    h.push_back(l.unsqueeze(one.last.h, 0));
    if (has_cell) c.push_back(l.unsqueeze(one.last.c, 0));
  }
  const auto joined = [&](const Values& parts, int64_t axis) {
    return parts.size() == 1 ? parts[0] : l.concat(parts, axis);
  };
  Values results{joined(y, 1), joined(h, 0)};
  if (has_cell) results.push_back(joined(c, 0));
  return in_layout(l, std::move(results));
}

Values lower_rnn(Lowering& l) { return lower_recurrent<RnnCell>(l, 1, {"Tanh"}); }
Values lower_gru(Lowering& l) { return lower_recurrent<GruCell>(l, 3, {"Sigmoid", "Tanh"}); }
Values lower_lstm(Lowering& l) { return lower_recurrent<LstmCell>(l, 4, {"Sigmoid", "Tanh", "Tanh"}); }

constexpr LoweredOperator kRecurrent[] = {{"RNN", lower_rnn}, {"GRU", lower_gru}, {"LSTM", lower_lstm}};

}  // namespace

std::span<const LoweredOperator> lowered_recurrent() { return kRecurrent; }

}  // namespace gopt::ir
