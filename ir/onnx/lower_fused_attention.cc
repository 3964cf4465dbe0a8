// Attention as com.microsoft has it: what ONNX Runtime's optimizer for transformers writes. Masks are numbers that are
// added to scores; -10,000, where no other is said, hides a key among others, and hides none where all have it.
#include <cmath>
#include <limits>

#include "attention_values.h"
#include "fused_values.h"

namespace gopt::ir {
namespace {

constexpr double kHidden = -10000;

// [batch, length, heads x size] with its part of the bias, as [batch, heads, length, size].
Value heads_of(Lowering& l, const Value& x, const Value& bias, int64_t heads) {
  return split_heads(l, sum_of(l, {x, bias}), heads);
}

struct Operands {
  Value query, key, value;  // [batch, heads, length, size], before what was kept
  Value past_key, past_value;
};

class Scores {
 public:
  Scores(Lowering& l, const Operands& of)
      : l_(l),
        type_(type_of(of.query)),
        batch_(shape_of(of.query)[0]),
        rows_(shape_of(of.query)[2]),
        columns_(shape_of(of.key)[2]),
        behind_(of.past_key ? shape_of(of.past_key)[2] : Index(0)),
        hidden_(l.real("mask_filter_value", kHidden)) {}

  // Keys that count: a number for each sequence, how many; for each key, or each query and key, whether.
  void mask(const Value& given) {
    const ElementType kind = type_of(given);
    Lowering::require(kind == ElementType::Int32);
    const size_t rank = rank_of(given);
    const Shape& shape = shape_of(given);
    if (rank == 1) {
      Lowering::require(shape[0] == batch_);
      const Value ends = l_.reshape(given, {shape[0], Index(1), Index(1), Index(1)});
      hide(l_.op(OpKind::Less, {l_.range(columns_, 3, 4, kind), ends}));
      return;
    }
    Lowering::require((rank == 2 || (rank == 3 && shape[1] == rows_)) && shape[0] == batch_ &&
                      shape.back() == columns_);
    const Value counts = l_.op(OpKind::Less, {l_.scalar(kind, 0), given});
    hide(l_.unsqueeze(rank == 2 ? l_.unsqueeze(counts, 1) : counts, 1));
  }
  // Of no key behind the query's own. Where there are more keys than those, the last query looks at all of them, and
  // the others do not, which is left as it is.
  void causal() {
    const Index all = behind_ + rows_;
    if (rows_ == Index(1)) return;
    Lowering::require(columns_ == all);
    const Value query = l_.slice(l_.range(all, 2, 4), 2, behind_, all);
    const Value is_behind = l_.op(OpKind::Less, {query, l_.range(columns_, 3, 4)});
    const Value least = l_.scalar(type_, static_cast<double>(std::numeric_limits<float>::lowest()));
    added_ = l_.where(is_behind, least, added_ ? added_ : l_.scalar(type_, 0));
  }
  void add(const Value& bias) {
    Lowering::require(rank_of(bias) == 4);
    added_ = added_ ? l_.add(bias, added_) : bias;
  }
  Value weights(const Value& products) {
    return l_.op(OpKind::Softmax, {added_ ? l_.add(products, added_) : products}, {{"axis", Index(-1)}});
  }

 private:
  void hide(const Value& counts) {
    const Value mask = l_.where(counts, l_.scalar(type_, 0), l_.scalar(type_, hidden_));
    added_ = added_ ? l_.add(added_, mask) : mask;
  }

  Lowering& l_;
  ElementType type_;
  Index batch_, rows_, columns_, behind_;  // keys behind those that were kept
  double hidden_;
  Value added_;
};

// What both operators do with heads: the result as [batch, length, heads x size].
Value attended(Lowering& l, const Operands& of, const Value& mask, const Value& bias) {
  Scores scores(l, of);
  if (mask) scores.mask(mask);
  if (l.integer("unidirectional", 0) != 0) scores.causal();
  if (bias) scores.add(bias);
  const Shape &query = shape_of(of.query), &key = shape_of(of.key), &value = shape_of(of.value);
  Lowering::require(query[0] == key[0] && query[1] == key[1] && query[3] == key[3]);
  Lowering::require(value[0] == key[0] && value[1] == key[1] && value[2] == key[2]);
  const double given = l.real("scale", 0), size = static_cast<double>(extent_of(of.query, 3)),
               scale = given == 0 ? 1 / std::sqrt(size) : given;
  const Value products = l.op(OpKind::MatMul, {of.query, l.transpose(of.key, {0, 1, 3, 2})});
  const Value weights = scores.weights(l.mul(products, l.scalar(type_of(products), scale)));
  return joined_heads(l, l.op(OpKind::MatMul, {weights, of.value}));
}

// query, key, value and their biases one after another in one matrix.
Values lower_attention(Lowering& l) {
  const Value x = l.input(0), weights = l.input(1);
  const int64_t heads = l.integer("num_heads", 0), all = extent_of(weights, 1);
  Lowering::require(type_of(x) == ElementType::Float32 && rank_of(x) == 3 && rank_of(weights) == 2 && heads > 0 &&
                    l.integer("do_rotary", 0) == 0 && l.integer("past_present_share_buffer", 0) == 0 && !l.has(6));
  const std::vector<int64_t> sizes = l.integers("qkv_hidden_sizes", {all / 3, all / 3, all / 3});
  Lowering::require(sizes.size() == 3 && sizes[0] + sizes[1] + sizes[2] == all && sizes[0] == sizes[1]);
  const Value product = sum_of(l, {l.op(OpKind::MatMul, {x, weights}), optional_input(l, 2)});
  Values parts;
  int64_t from = 0;
  for (const int64_t size : sizes) {
    parts.push_back(split_heads(l, l.slice(product, 2, from, from + size), heads));
    from += size;
  }
  Operands of{parts[0], parts[1], parts[2], {}, {}};
  if (l.has(4)) {  // [2, batch, heads, length, size]
    const Value past = l.input(4);
    Lowering::require(rank_of(past) == 5 && sizes[2] == sizes[0]);
    const auto kept = [&](int64_t which) {
      const Value one = l.slice(past, 0, which, which + 1);
      return l.reshape(one, Shape(shape_of(past).begin() + 1, shape_of(past).end()));
    };
    of.past_key = kept(0), of.past_value = kept(1);
    of.key = l.concat({of.past_key, of.key}, 2), of.value = l.concat({of.past_value, of.value}, 2);
  }
  const Value y = attended(l, of, optional_input(l, 3), optional_input(l, 5));
  if (!l.output_used(1)) return {y};
  return {y, l.concat({l.unsqueeze(of.key, 0), l.unsqueeze(of.value, 0)}, 0)};
}

// Each by itself; packed in fives of axes they are left as they are.
Values lower_multi_head_attention(Lowering& l) {
  const Value query = l.input(0), key = l.input(1), value = l.input(2), bias = optional_input(l, 3);
  const int64_t heads = l.integer("num_heads", 0);
  Lowering::require(type_of(query) == ElementType::Float32 && rank_of(query) == 3 && heads > 0 && !l.has(8) &&
                    !l.has(9) && !l.output_used(3));
  const bool is_split = rank_of(key) == 4;  // of another sequence, computed before: without biases
  Lowering::require(rank_of(key) == rank_of(value) && (is_split || rank_of(key) == 3));
  const int64_t width = extent_of(query, 2);
  const auto part = [&](int64_t from, int64_t to) { return bias ? l.slice(bias, 0, from, to) : Value{}; };
  Operands of{heads_of(l, query, part(0, width), heads), key, value, {}, {}};
  if (!is_split) {
    of.key = heads_of(l, key, part(width, 2 * width), heads);
    of.value = heads_of(l, value, part(2 * width, 2 * width + extent_of(value, 2)), heads);
  }
  Lowering::require(l.has(6) == l.has(7));
  if (l.has(6)) {
    of.past_key = l.input(6), of.past_value = l.input(7);
    of.key = l.concat({of.past_key, of.key}, 2), of.value = l.concat({of.past_value, of.value}, 2);
  }
  return {attended(l, of, optional_input(l, 4), optional_input(l, 5)), of.key, of.value};
}

// Positions are an offset for all, or each word's own.
Values lower_rotary_embedding(Lowering& l) {
  const Value given = l.input(0), positions = l.input(1), cosines = l.input(2), sines = l.input(3);
  Lowering::require(l.integer("is_packed_batching", 0) == 0 && l.real("scale", 1) == 1 && rank_of(cosines) == 2);
  const int64_t half = extent_of(cosines, 1), turned = l.integer("rotary_embedding_dim", 0),
                heads = l.integer("num_heads", 0);
  const bool is_split = rank_of(given) == 4;
  Lowering::require(is_split || rank_of(given) == 3);
  Lowering::require(heads >= 0 && (turned == 0 || (turned == 2 * half && heads > 0)));
  const int64_t size = is_split ? extent_of(given, 3) : heads > 0 ? extent_of(given, 2) / heads : 2 * half;
  Lowering::require(size > 0 && (turned > 0 || size == 2 * half));
  const Value x = is_split ? given : split_heads(l, given, extent_of(given, 2) / size);
  Value places = positions;
  if (rank_of(positions) == 1) {
    Lowering::require(shape_of(positions)[0] == Index(1));
    places = l.add(l.range(shape_of(x)[2], 1, 2), l.reshape(positions, {Index(1), Index(1)}));
  }
  const auto angles = [&](const Value& table) {
    return l.unsqueeze(l.op(OpKind::Gather, {table, places}, {{"axis", Index(0)}}), 1);
  };
  const Value y = rotated(l, x, angles(cosines), angles(sines), 2 * half, l.integer("interleaved", 0) != 0);
  return {is_split ? y : joined_heads(l, y)};
}

constexpr LoweredOperator kAttention[] = {{"Attention", lower_attention},
                                          {"MultiHeadAttention", lower_multi_head_attention},
                                          {"RotaryEmbedding", lower_rotary_embedding}};

}  // namespace

std::span<const LoweredOperator> lowered_fused_attention() { return kAttention; }

}  // namespace gopt::ir
