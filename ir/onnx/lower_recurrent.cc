// RNN, GRU and LSTM, unrolled over the steps: the input's part of all steps is one product, made before them.
#include <algorithm>
#include <cctype>

#include "lowering.h"

namespace gopt::ir {
namespace {

constexpr int64_t kMostSteps = 1024;  // of all directions together

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
  Value recurrent_, input_bias_, recurrent_bias_;
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
  Value peepholes_;
};

// ---- the whole ----

// Which sequences are still running at each step; null where all run to the end.
class Lengths {
 public:
  Lengths(Lowering& l, int64_t steps) : l_(l) {
    if (!l.has(4)) return;
    const Value given = l.input(4);
    if (given.node->is(OpKind::Constant)) {
      const std::vector<int64_t> known = given.node->tensor.to_ints();
      if (std::all_of(known.begin(), known.end(), [&](int64_t length) { return length >= steps; })) return;
    }
    lengths_ = l.unsqueeze(l.cast(given, ElementType::Int64), 1);
  }
  Value chosen(int64_t step, const Value& running, const Value& ended) const {
    if (!lengths_) return running;
    const Value at = l_.scalar(ElementType::Int64, static_cast<double>(step));
    return l_.where(l_.op(OpKind::Less, {at, lengths_}), running, ended);
  }

 private:
  Lowering& l_;
  Value lengths_;  // [batch, 1]
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

template <class C>
Values lower_recurrent(Lowering& l, int64_t gates, const std::vector<std::string>& defaults) {
  const Value x = batch_second(l, l.input(0));
  Lowering::require(rank_of(x) == 3 && is_floating(type_of(x)) && rank_of(l.input(2)) == 3);
  const int64_t directions = extent_of(l.input(2), 0), hidden = extent_of(l.input(2), 2), steps = extent_of(x, 0);
  const std::string way = l.text("direction", "forward");
  Lowering::require(directions == (way == "bidirectional" ? 2 : 1) && steps > 0 && steps * directions <= kMostSteps);
  std::vector<std::string> names = l.texts("activations");
  if (names.empty())
    for (int64_t d = 0; d < directions; d++) names.insert(names.end(), defaults.begin(), defaults.end());
  const std::vector<GateFunction> activations = activations_of(l, names);
  Lowering::require(activations.size() == defaults.size() * static_cast<size_t>(directions));
  const bool has_cell = defaults.size() == 3;
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
  Value all = joined(y, 1);
  if (l.integer("layout", 0) != 0) all = l.transpose(all, {2, 0, 1, 3});
  Values results{all, batch_second(l, joined(h, 0))};
  if (has_cell) results.push_back(batch_second(l, joined(c, 0)));
  return results;
}

Values lower_rnn(Lowering& l) { return lower_recurrent<RnnCell>(l, 1, {"Tanh"}); }
Values lower_gru(Lowering& l) { return lower_recurrent<GruCell>(l, 3, {"Sigmoid", "Tanh"}); }
Values lower_lstm(Lowering& l) { return lower_recurrent<LstmCell>(l, 4, {"Sigmoid", "Tanh", "Tanh"}); }

constexpr LoweredOperator kRecurrent[] = {{"RNN", lower_rnn}, {"GRU", lower_gru}, {"LSTM", lower_lstm}};

}  // namespace

std::span<const LoweredOperator> lowered_recurrent() { return kRecurrent; }

}  // namespace gopt::ir
