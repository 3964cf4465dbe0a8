// Steps of optimizers (ONNX's training domain), and n-grams counted.
#include <algorithm>
#include <cmath>

#include "lowering.h"

namespace gopt::ir {
namespace {

// ---- optimizers: rate, count of steps, then for each tensor its value, its gradient and its states ----

struct UpdateStep {
  Value x, gradient;
  Values states;
};
using UpdateFunction = Values (*)(Lowering&, const UpdateStep&);  // the new value and states

Value number(Lowering& l, const Value& like, double value) { return l.scalar(type_of(like), value); }
Value rate(Lowering& l) { return l.input(0); }

Values updated(Lowering& l, size_t states, UpdateFunction update) {
  const auto inputs = static_cast<size_t>(l.input_count());
  Lowering::require(inputs > 2 && (inputs - 2) % (2 + states) == 0 && is_floating(type_of(l.input(2))));
  const size_t count = (inputs - 2) / (2 + states);
  Values results(count * (1 + states));
  for (size_t k = 0; k < count; k++) {
    UpdateStep step{l.input(2 + k), l.input(2 + count + k), {}};
    for (size_t s = 0; s < states; s++) step.states.push_back(l.input(2 + (2 + s) * count + k));
    const Value decay = number(l, step.x, l.real("norm_coefficient", 0));
    step.gradient = l.add(l.mul(decay, step.x), step.gradient);
    const Values one = update(l, step);
    for (size_t s = 0; s <= states; s++) results[s * count + k] = one.at(s);
  }
  return results;
}
Value as_real(Lowering& l, const Value& like) { return l.cast(l.input(1), type_of(like)); }

Values adagrad_step(Lowering& l, const UpdateStep& s) {
  const Value steps = l.add(l.mul(as_real(l, s.x), number(l, s.x, l.real("decay_factor", 0))), number(l, s.x, 1));
  const Value squares = l.add(s.states[0], l.mul(s.gradient, s.gradient));
  const Value scale = l.add(l.op(OpKind::Sqrt, {squares}), number(l, s.x, l.real("epsilon", 1e-6)));
  return {l.sub(s.x, l.div(l.mul(l.div(rate(l), steps), s.gradient), scale)), squares};
}

Values adam_step(Lowering& l, const UpdateStep& s) {
  const double alpha = l.real("alpha", 0.9), beta = l.real("beta", 0.999);
  const auto mixed = [&](double weight, const Value& old, const Value& fresh) {
    return l.add(l.mul(number(l, s.x, weight), old), l.mul(number(l, s.x, 1 - weight), fresh));
  };
  const Value first = mixed(alpha, s.states[0], s.gradient),
              second = mixed(beta, s.states[1], l.mul(s.gradient, s.gradient));
  const Value scale = l.add(l.op(OpKind::Sqrt, {second}), number(l, s.x, l.real("epsilon", 1e-6)));
  const Value steps = as_real(l, s.x), one = number(l, s.x, 1);
  const auto remaining = [&](double weight) { return l.sub(one, l.op(OpKind::Pow, {number(l, s.x, weight), steps})); };
  const Value corrected = l.div(l.mul(rate(l), l.op(OpKind::Sqrt, {remaining(beta)})), remaining(alpha));
  const Value chosen = l.where(l.op(OpKind::Less, {number(l, s.x, 0), steps}), corrected, rate(l));
  const Value y = l.sub(s.x, l.div(l.mul(chosen, first), scale));
  return {l.mul(number(l, s.x, 1 - l.real("norm_coefficient_post", 0)), y), first, second};
}

Values momentum_step(Lowering& l, const UpdateStep& s) {
  const double alpha = l.real("alpha", 0), beta = l.real("beta", 0);
  const Value later = number(l, s.x, beta),
              weight = l.where(l.op(OpKind::Less, {number(l, s.x, 0), as_real(l, s.x)}), later, number(l, s.x, 1));
  const Value velocity = l.add(l.mul(number(l, s.x, alpha), s.states[0]), l.mul(weight, s.gradient));
  const bool nesterov = l.text("mode", "standard") == "nesterov";
  const Value direction = nesterov ? l.add(s.gradient, l.mul(number(l, s.x, alpha), velocity)) : velocity;
  return {l.sub(s.x, l.mul(rate(l), direction)), velocity};
}

Values lower_adagrad(Lowering& l) { return updated(l, 1, adagrad_step); }
Values lower_adam(Lowering& l) { return updated(l, 2, adam_step); }
Values lower_momentum(Lowering& l) { return updated(l, 1, momentum_step); }

// ---- n-grams ----

// How often each of the grams [count, length] stands in the rows of x, with up to so many places left out between.
Value occurrences(Lowering& l, const Value& x, const std::vector<int64_t>& grams, int64_t length, int64_t skips) {
  const auto last = static_cast<int64_t>(rank_of(x)) - 1;
  const int64_t count = static_cast<int64_t>(grams.size()) / length, extent = extent_of(x, last);
  Value sum;
  for (int64_t skip = 0; skip <= (length == 1 ? 0 : skips); skip++) {
    const int64_t places = extent - (length - 1) * (skip + 1);
    if (places <= 0) continue;
    Value found;
    for (int64_t k = 0; k < length; k++) {
      std::vector<double> wanted;
      for (int64_t g = 0; g < count; g++)
        wanted.push_back(static_cast<double>(grams[static_cast<size_t>(g * length + k)]));
      const Value here = l.unsqueeze(l.slice(x, last, k * (skip + 1), k * (skip + 1) + places), last + 1);
      const Value same = l.op(OpKind::Equal, {here, l.along(wanted, last + 1, rank_of(here), type_of(x))});
      found = found ? l.op(OpKind::And, {found, same}) : same;
    }
    const Value times = l.reduce(OpKind::ReduceSum, l.cast(found, ElementType::Float32), {Index(last)}, false);
    sum = sum ? l.add(sum, times) : times;
  }
  if (sum) return sum;
  Shape shape = shape_of(x);
  shape.back() = Index(count);
  return l.expand(l.scalar(ElementType::Float32, 0), shape);
}

Values lower_tf_idf(Lowering& l) {
  const Value x = l.input(0);
  Lowering::require(is_integer(type_of(x)) && (rank_of(x) == 1 || rank_of(x) == 2));
  const std::vector<int64_t> pool = l.integers("pool_int64s", {}), begins = l.integers("ngram_counts", {}),
                             columns = l.integers("ngram_indexes", {});
  const int64_t shortest = l.integer("min_gram_length", 0), longest = l.integer("max_gram_length", 0);
  Lowering::require(!pool.empty() && shortest > 0 && longest <= static_cast<int64_t>(begins.size()));
  Values parts;
  std::vector<int64_t> order;  // of the grams in the parts, as the pool has them
  int64_t place = 0;
  for (int64_t length = 1; length <= static_cast<int64_t>(begins.size()); length++) {
    const auto at = static_cast<size_t>(length - 1);
    const int64_t begin = begins[at], end = at + 1 < begins.size() ? begins[at + 1] : static_cast<int64_t>(pool.size());
    Lowering::require(begin >= 0 && begin <= end && end <= static_cast<int64_t>(pool.size()) &&
                      (end - begin) % length == 0);
    const int64_t count = (end - begin) / length;
    if (count > 0 && length >= shortest && length <= longest) {
      parts.push_back(
          occurrences(l, x, {pool.begin() + begin, pool.begin() + end}, length, l.integer("max_skip_count", 0)));
      for (int64_t g = 0; g < count; g++) order.push_back(place + g);
    }
    place += count;
  }
  Lowering::require(!parts.empty() && place == static_cast<int64_t>(columns.size()));
  const int64_t width = *std::max_element(columns.begin(), columns.end()) + 1;
  std::vector<int64_t> from(static_cast<size_t>(width), 0);
  std::vector<double> factors(from.size(), 0), once(from.size(), 0);
  const std::vector<double> weights =
      l.has_attribute("weights") ? l.floats("weights") : std::vector<double>(columns.size(), 1);
  for (size_t k = 0; k < order.size(); k++) {
    const auto gram = static_cast<size_t>(order[k]);
    const auto column = static_cast<size_t>(columns.at(gram));
    Lowering::require(once.at(column) == 0);
    from[column] = static_cast<int64_t>(k);
    factors[column] = weights.at(gram);
    once[column] = 1;
  }
  const auto last = static_cast<int64_t>(rank_of(x)) - 1;
  const Value counts =
      l.op(OpKind::Gather, {parts.size() == 1 ? parts[0] : l.concat(parts, last), l.integers_constant(from)},
           {{"axis", Index(last)}});
  const auto by_column = [&](const std::vector<double>& values) {
    return l.along(values, last, rank_of(x), ElementType::Float32);
  };
  const std::string mode = l.text("mode", "");
  if (mode == "TF") return {l.mul(counts, by_column(once))};
  if (mode == "TFIDF") return {l.mul(counts, by_column(factors))};
  Lowering::require(mode == "IDF");
  const Value zero = l.scalar(ElementType::Float32, 0);
  return {l.where(l.op(OpKind::Less, {zero, counts}), by_column(factors), zero)};
}

constexpr LoweredOperator kTraining[] = {
    {"Adagrad", lower_adagrad}, {"Adam", lower_adam}, {"Momentum", lower_momentum}, {"TfIdfVectorizer", lower_tf_idf}};

}  // namespace

std::span<const LoweredOperator> lowered_training() { return kTraining; }

}  // namespace gopt::ir
