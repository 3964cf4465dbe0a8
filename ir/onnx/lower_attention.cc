// Attention and rotary embeddings.
#include <cmath>
#include <limits>

#include "attention_values.h"

namespace gopt::ir {

Value split_heads(Lowering& l, const Value& x, int64_t heads) {
  if (rank_of(x) == 4) return x;
  Lowering::require(rank_of(x) == 3 && heads > 0 && extent_of(x, 2) % heads == 0);
  const Value split = l.reshape(x, {shape_of(x)[0], shape_of(x)[1], Index(heads), Index(extent_of(x, 2) / heads)});
  return l.transpose(split, {0, 2, 1, 3});
}
Value joined_heads(Lowering& l, const Value& x) {
  const Value y = l.transpose(x, {0, 2, 1, 3});
  return l.reshape(y, {shape_of(y)[0], shape_of(y)[1], shape_of(y)[2] * shape_of(y)[3]});
}
Value rotated(Lowering& l, const Value& x, const Value& cosine, const Value& sine, int64_t turned, bool interleaved) {
  const int64_t half = turned / 2, size = extent_of(x, 3);
  Lowering::require(turned % 2 == 0 && turned <= size);
  const Value first = interleaved ? l.slice(x, 3, 0, turned, 2) : l.slice(x, 3, 0, half);
  const Value second = interleaved ? l.slice(x, 3, 1, turned, 2) : l.slice(x, 3, half, turned);
  const Value real = l.sub(l.mul(cosine, first), l.mul(sine, second));
  const Value imaginary = l.add(l.mul(sine, first), l.mul(cosine, second));
  Value y = l.concat({real, imaginary}, 3);
  if (interleaved) {
    Shape shape = shape_of(real);
    shape.back() = Index(turned);
    y = l.reshape(l.concat({l.unsqueeze(real, 4), l.unsqueeze(imaginary, 4)}, 4), shape);
  }
  return turned < size ? l.concat({y, l.slice(x, 3, turned, size)}, 3) : y;
}

namespace {

// Each head as often as query heads share it.
Value repeated_heads(Lowering& l, const Value& x, int64_t times) {
  if (times == 1) return x;
  const Shape& s = shape_of(x);
  const Value wide = l.expand(l.unsqueeze(x, 2), {s[0], s[1], Index(times), s[2], s[3]});
  return l.reshape(wide, {s[0], s[1] * Index(times), s[2], s[3]});
}

// What queries may look at: a condition, a number that is added, either, or all (null).
class Mask {
 public:
  Mask(Lowering& l, ElementType type, int64_t rows, int64_t columns) : l_(l), type_(type), columns_(columns) {
    read_given();
    // Where the first query stands among the keys: behind those that were kept, or at the end of those that count.
    Value first = number(l.has(4) ? static_cast<double>(columns - rows_of_input(1)) : 0);
    if (l.has(6)) {
      Lowering::require(rank_of(l.input(6)) == 1);
      const Value counts = l.reshape(l.cast(l.input(6), ElementType::Int64), {shape_of(l.input(6))[0], 1, 1, 1});
      allow(l.op(OpKind::Less, {keys(), counts}));
      may_hide_all_ = true;
      if (!l.has(4)) first = l.sub(counts, number(static_cast<double>(rows)));
    }
    const Value behind = l.sub(l.add(first, l.range(rows, 2, 4)), keys());  // how far each key lies behind each query
    if (l.integer("is_causal", 0) != 0) allow(l.op(OpKind::Less, {number(-1), behind}));
    const int64_t left = l.integer("left_window_size", -1), right = l.integer("right_window_size", -1);
    if (left >= 0) allow(l.op(OpKind::Less, {behind, number(static_cast<double>(left + 1))}));
    if (right >= 0) allow(l.op(OpKind::Less, {number(static_cast<double>(-right - 1)), behind}));
    may_hide_all_ = may_hide_all_ || left >= 0 || right >= 0;
  }

  Value applied(const Value& scores) {
    const Value moved = added_ ? l_.add(scores, added_) : scores;
    return allowed_ ? l_.where(allowed_, moved, l_.scalar(type_, -INFINITY)) : moved;
  }
  // A query that may look at nothing has weights of 0.
  Value guarded(const Value& weights) {
    if (!may_hide_all_) return weights;
    const Value nothing = l_.scalar(type_, -INFINITY), all = added_ ? added_ : l_.scalar(type_, 0);
    const Value bias = allowed_ ? l_.where(allowed_, all, nothing) : all;
    const Value most = l_.reduce(OpKind::ReduceMax, l_.cast(bias, ElementType::Float32), {Index(-1)});
    const Value least = l_.scalar(ElementType::Float32, static_cast<double>(std::numeric_limits<float>::lowest()));
    return l_.where(l_.op(OpKind::Less, {most, least}), l_.scalar(type_of(weights), 0), weights);
  }

 private:
  int64_t rows_of_input(size_t i) const {
    const Value x = l_.input(i);
    return extent_of(x, static_cast<int64_t>(rank_of(x)) - 2);
  }
  Value number(double value) { return l_.scalar(ElementType::Int64, value); }
  Value keys() { return l_.range(columns_, 3, 4); }
  void allow(const Value& condition) { allowed_ = allowed_ ? l_.op(OpKind::And, {allowed_, condition}) : condition; }
  void read_given() {
    if (!l_.has(3)) return;
    Value given = l_.input(3);
    const size_t rank = rank_of(given);
    const bool is_condition = type_of(given) == ElementType::Bool;
    Lowering::require(rank >= 1 && (is_condition || type_of(given) == type_));
    const int64_t missing = columns_ - extent_of(given, static_cast<int64_t>(rank) - 1);
    if (missing > 0) {  // keys that it does not name are hidden
      std::vector<Index> pads(2 * rank, Index(0));
      pads.back() = Index(missing);
      given = l_.op(OpKind::Pad, {given}, {{"pads", pads}, {"value", is_condition ? 0.0 : -INFINITY}});
    }
    (is_condition ? allowed_ : added_) = given;
    may_hide_all_ = true;
  }

  Lowering& l_;
  ElementType type_;
  int64_t columns_;
  Value allowed_, added_;
  bool may_hide_all_ = false;
};

// softmax(scale q k' + mask) v, by opsets 23 to 25.
Values lower_attention(Lowering& l) {
  const Value given_q = l.input(0);
  const ElementType type = type_of(given_q);
  Lowering::require(is_floating(type) && type_of(l.input(1)) == type && type_of(l.input(2)) == type);
  const Value q = split_heads(l, given_q, l.integer("q_num_heads", 0));
  Value k = split_heads(l, l.input(1), l.integer("kv_num_heads", 0)),
        v = split_heads(l, l.input(2), l.integer("kv_num_heads", 0));
  Lowering::require(l.has(4) == l.has(5) && !(l.has(4) && l.has(6)));
  if (l.has(4)) k = l.concat({l.input(4), k}, 2);
  if (l.has(5)) v = l.concat({l.input(5), v}, 2);
  const int64_t heads = extent_of(q, 1), shared = extent_of(k, 1);
  Lowering::require(shared > 0 && heads % shared == 0);
  const double scale =
      l.has_attribute("scale") ? l.real("scale", 1) : 1 / std::sqrt(static_cast<double>(extent_of(q, 3)));
  Lowering::require(scale > 0);
  const Value factor = l.scalar(type, std::sqrt(scale));
  Value scores = l.op(OpKind::MatMul, {l.mul(q, factor),
                                       l.transpose(l.mul(repeated_heads(l, k, heads / shared), factor), {0, 1, 3, 2})});
  const int64_t shown = l.integer("qk_matmul_output_mode", 0);
  const double cap = l.real("softcap", 0);
  Lowering::require(!l.output_used(3) || ((shown == 0 && cap <= 0) || shown > 0));
  if (cap > 0) scores = l.mul(l.op(OpKind::Tanh, {l.div(scores, l.scalar(type, cap))}), l.scalar(type, cap));
  Mask mask(l, type, extent_of(q, 2), extent_of(k, 2));
  const Value masked = mask.applied(scores);
  const auto precision = static_cast<ElementType>(l.integer("softmax_precision", static_cast<int64_t>(type)));
  Lowering::require(is_floating(precision));
  const Value soft = l.op(OpKind::Softmax, {l.cast(masked, precision)}, {{"axis", Index(-1)}});
  const Value weights = l.cast(mask.guarded(soft), type);
  Value y = l.op(OpKind::MatMul, {weights, repeated_heads(l, v, heads / shared)});
  if (rank_of(given_q) == 3) y = joined_heads(l, y);
  return {y, k, v, shown == 3 ? weights : shown == 2 ? masked : scores};
}

Values lower_rotary_embedding(Lowering& l) {
  const Value given = l.input(0);
  const int64_t heads = l.integer("num_heads", 0);
  const bool interleaved = l.integer("interleaved", 0) != 0;
  Value x = rank_of(given) == 3 ? split_heads(l, given, heads) : given;  // [batch, heads, length, size]
  Lowering::require(rank_of(x) == 4 && is_floating(type_of(x)));
  const int64_t size = extent_of(x, 3),
                turned = l.integer("rotary_embedding_dim", 0) > 0 ? l.integer("rotary_embedding_dim", 0) : size;
  Lowering::require(turned % 2 == 0 && turned <= size);
  const int64_t half = turned / 2;
  const auto angles = [&](size_t i) {  // [batch, 1, length, half]
    Value cache = l.input(i);
    if (l.has(3)) cache = l.op(OpKind::Gather, {cache, l.input(3)}, {{"axis", Index(0)}});
    Lowering::require(rank_of(cache) == 3 && extent_of(cache, 2) == half);
    return l.unsqueeze(cache, 1);
  };
  const Value y = rotated(l, x, angles(1), angles(2), turned, interleaved);
  return {rank_of(given) == 3 ? joined_heads(l, y) : y};
}

constexpr LoweredOperator kAttention[] = {{"Attention", lower_attention}, {"RotaryEmbedding", lower_rotary_embedding}};

}  // namespace

std::span<const LoweredOperator> lowered_attention() { return kAttention; }

}  // namespace gopt::ir
