// Operators of com.microsoft that ONNX Runtime's quantization tools write: those of ONNX on integers with scales and
// zero points, and products by weights of few bits.
#include <algorithm>
#include <cmath>

#include "quantized_values.h"

namespace gopt::ir {
namespace {

// Inputs i, i + 1, i + 2: a tensor with scale and zero point of the whole.
Value operand(Lowering& l, size_t i) {
  const Value zero = optional_input(l, i + 2);
  return dequantize(l, l.input(i), along_axis(l, l.input(i + 1), 0, 1), zero ? along_axis(l, zero, 0, 1) : Value{});
}
// Of a result like `like`, where no zero point says another type.
Value result(Lowering& l, const Value& x, size_t scale, ElementType like) {
  const Value zero = l.has(scale + 1) ? along_axis(l, l.input(scale + 1), 0, 1) : l.scalar(like, 0);
  return quantize(l, x, along_axis(l, l.input(scale), 0, 1), zero);
}

Values lower_add(Lowering& l) { return {result(l, l.add(operand(l, 0), operand(l, 3)), 6, type_of(l.input(0)))}; }
Values lower_mul(Lowering& l) { return {result(l, l.mul(operand(l, 0), operand(l, 3)), 6, type_of(l.input(0)))}; }
Values lower_where(Lowering& l) {
  return {result(l, l.where(l.input(0), operand(l, 1), operand(l, 4)), 7, type_of(l.input(1)))};
}
Values lower_sigmoid(Lowering& l) {
  return {result(l, l.op(OpKind::Sigmoid, {operand(l, 0)}), 3, type_of(l.input(0)))};
}
Values lower_leaky_relu(Lowering& l) {
  const Value x = l.op(OpKind::LeakyRelu, {operand(l, 0)}, {{"alpha", l.real("alpha", 0.01)}});
  return {result(l, x, 3, type_of(l.input(0)))};
}
// Along one axis; before opset 13 over all from that one on.
Values lower_softmax(Lowering& l) {
  const Value x = operand(l, 0);
  const int64_t axis = l.axis(l.integer("axis", -1), rank_of(x)), opset = l.integer("opset", 13);
  Lowering::require(opset >= 13 || axis + 1 == static_cast<int64_t>(rank_of(x)));
  return {result(l, l.op(OpKind::Softmax, {x}, {{"axis", Index(axis)}}), 3, type_of(l.input(0)))};
}
Values lower_reduce_mean(Lowering& l) {
  const Value x = operand(l, 0);
  std::vector<Index> axes;
  for (const int64_t axis : l.integers("axes", {})) axes.emplace_back(l.axis(axis, rank_of(x)));
  Attributes attributes{{"keepdims", Index(l.integer("keepdims", 1))}};
  if (!axes.empty()) attributes["axes"] = axes;
  return {result(l, l.op(OpKind::ReduceMean, {x}, attributes), 3, type_of(l.input(0)))};
}
Values lower_global_average_pool(Lowering& l) {
  const Value x = operand(l, 0);
  const bool is_last = l.integer("channels_last", 0) != 0;
  Lowering::require(rank_of(x) >= 3);
  std::vector<Index> axes;
  for (int64_t axis = is_last ? 1 : 2; axis + (is_last ? 1 : 0) < static_cast<int64_t>(rank_of(x)); axis++)
    axes.emplace_back(axis);
  return {result(l, l.reduce(OpKind::ReduceMean, x, axes), 3, type_of(l.input(0)))};
}
Values lower_average_pool(Lowering& l) {
  Lowering::require(l.integer("channels_last", 0) == 0);
  Attributes attributes{{"auto_pad", l.text("auto_pad", "NOTSET")},
                        {"ceil_mode", Index(l.integer("ceil_mode", 0))},
                        {"count_include_pad", Index(l.integer("count_include_pad", 0))}};
  for (const char* name : {"kernel_shape", "pads", "strides"}) {
    const std::vector<int64_t> list = l.integers(name, {});
    if (!list.empty()) attributes[name] = std::vector<Index>(list.begin(), list.end());
  }
  return {result(l, l.op(OpKind::AveragePool, {operand(l, 0)}, attributes), 3, type_of(l.input(0)))};
}
Values lower_concat(Lowering& l) {
  Values parts;
  for (size_t i = 2; i < static_cast<size_t>(l.input_count()); i += 3) parts.push_back(operand(l, i));
  Lowering::require(!parts.empty());
  return {result(l, l.concat(parts, l.axis(l.integer("axis", 0), rank_of(parts[0]))), 0, type_of(l.input(1)))};
}

// The bias counts in steps of both scales; without a scale of the result it is of floats.
Values lower_gemm(Lowering& l) {
  const double alpha = l.real("alpha", 1);
  const bool is_transposed = l.integer("transB", 0) != 0;
  const Value b = l.input(3);
  Lowering::require(rank_of(b) == 2);
  const auto along = [&](const Value& v) { return along_axis(l, v, is_transposed ? 0 : 1, 2); };
  Values inputs{operand(l, 0), dequantize(l, b, along(l.input(4)), along(l.input(5)))};
  if (const Value bias = optional_input(l, 6))
    inputs.push_back(dequantize(l, bias, scale_product(l, l.input(1), l.input(4), alpha), {}));
  const Value product =
      l.op(OpKind::Gemm, inputs,
           {{"alpha", alpha}, {"transA", Index(l.integer("transA", 0))}, {"transB", Index(is_transposed ? 1 : 0)}});
  return {l.has(7) ? result(l, product, 7, type_of(l.input(0))) : product};
}

// Sums of products of integers times both scales, and a bias.
Value scaled_product(Lowering& l, const Value& a, const Value& a_zero, const Value& b, const Value& b_zero,
                     const Value& scale, size_t bias) {
  const Value sums = l.cast(integer_product(l, a, a_zero, b, b_zero), ElementType::Float32);
  const Value y = l.mul(sums, scale);
  return l.has(bias) ? l.add(y, l.input(bias)) : y;
}
Values lower_product_to_floats(Lowering& l) {
  const Value scale = l.mul(along_axis(l, l.input(2), 0, 1), along_axis(l, l.input(3), 0, 1));
  return {scaled_product(l, l.input(0), optional_input(l, 4), l.input(1), optional_input(l, 5), scale, 6)};
}
// The left operand in 255 steps between its least and its greatest number, and 0.
Values lower_dynamic_product(Lowering& l) {
  const Value x = l.input(0), zero = l.scalar(ElementType::Float32, 0);
  Lowering::require(type_of(x) == ElementType::Float32 && rank_of(x) >= 2);
  std::vector<Index> axes;
  for (int64_t axis = 0; axis < static_cast<int64_t>(rank_of(x)); axis++) axes.emplace_back(axis);
  const auto bound = [&](OpKind reduced, OpKind with) { return l.op(with, {l.reduce(reduced, x, axes, false), zero}); };
  const Value least = bound(OpKind::ReduceMin, OpKind::Min), greatest = bound(OpKind::ReduceMax, OpKind::Max);
  constexpr double kSteps = 255;
  const Value range = l.div(l.sub(greatest, least), l.scalar(ElementType::Float32, kSteps));
  const Value step = l.where(l.op(OpKind::Equal, {range, zero}), l.scalar(ElementType::Float32, 1), range);
  const Value at_zero = l.op(OpKind::Quantize, {l.sub(zero, least), step, l.scalar(ElementType::UInt8, 0)});
  const Value scale = l.mul(step, along_axis(l, l.input(2), 0, 1));
  return {scaled_product(l, quantize(l, x, step, at_zero), at_zero, l.input(1), optional_input(l, 3), scale, 4)};
}

// Weights of 4 or 8 bits in blocks along the depth, each with a scale and a zero point of its own.
class BlockedWeights {
 public:
  explicit BlockedWeights(const Lowering& l)
      : depth_(l.integer("K", 0)),
        columns_(l.integer("N", 0)),
        bits_(l.integer("bits", 4)),
        block_(l.integer("block_size", 0)) {
    constexpr int64_t kMostElements = int64_t{1} << 28, kLeastBlock = 16, kMostBlock = 1 << 16;
    Lowering::require((bits_ == 4 || bits_ == 8) && depth_ > 0 && columns_ > 0 && block_ >= kLeastBlock &&
                      block_ <= kMostBlock && depth_ <= kMostElements / columns_);
    blocks_ = (depth_ + block_ - 1) / block_;
  }
  Shape shape() const { return {Index(depth_), Index(columns_)}; }

  // Errors: Unlowered where they are not constants of the sizes that the attributes say.
  BlockedWeights& read(const Lowering& l) {
    packed_ = l.numbers(1), scales_ = l.reals(2);
    const auto are_all = [](size_t count, int64_t expected) { return count == static_cast<size_t>(expected); };
    Lowering::require(are_all(packed_.size(), columns_ * blocks_ * block_ * bits_ / kByte) &&
                      are_all(scales_.size(), columns_ * blocks_));
    if (!l.has(3)) return *this;
    const bool is_packed = type_of(l.input(3)) == ElementType::UInt8;
    zeros_ = is_packed ? unpacked_zeros(l.numbers(3)) : l.reals(3);
    Lowering::require(are_all(zeros_.size(), columns_ * blocks_));
    return *this;
  }

  // (number - zero point) scale, of shape(), in `type`. Zero points that are no numbers of the weights' bits: as
  // numbers.
  Value made(Lowering& l, ElementType type) const {
    if (!has_zeros_of_bits()) return l.constant(as(type));
    const Value numbers = bytes(l, depth_, [&](int64_t k, int64_t column) { return number_at(k, column); });
    const auto spread = [&](const Value& of_blocks) { return spread_blocks(l, of_blocks, numbers, 0, block_); };
    std::vector<double> scales;
    for (int64_t block = 0; block < blocks_; block++)
      for (int64_t column = 0; column < columns_; column++) scales.push_back(scales_[place_of(block, column)]);
    const Value scale = l.constant(Tensor::from_values(ElementType::Float32, {blocks_, columns_}, scales));
    const Value zero =
        zeros_.empty()
            ? l.scalar(ElementType::UInt8, middle())
            : spread(bytes(l, blocks_, [&](int64_t block, int64_t column) { return zeros_[place_of(block, column)]; }));
    return l.cast(dequantize(l, numbers, spread(scale), zero), type);
  }

 private:
  static constexpr int64_t kByte = 8;
  size_t place_of(int64_t block, int64_t column) const { return static_cast<size_t>(column * blocks_ + block); }
  double middle() const { return static_cast<double>(int64_t{1} << (bits_ - 1)); }
  int64_t number_at(int64_t k, int64_t column) const { return digit_of(packed_, column * blocks_ * block_ + k); }

  bool has_zeros_of_bits() const {
    const auto greatest = static_cast<double>((int64_t{1} << bits_) - 1);
    return std::ranges::all_of(zeros_,
                               [&](double zero) { return zero >= 0 && zero <= greatest && zero == std::floor(zero); });
  }

  // [rows, columns] of 8 bits.
  template <class NumberAt>
  Value bytes(Lowering& l, int64_t rows, const NumberAt& number) const {
    std::vector<std::byte> all;
    all.reserve(static_cast<size_t>(rows * columns_));
    for (int64_t row = 0; row < rows; row++)
      for (int64_t column = 0; column < columns_; column++)
        all.push_back(static_cast<std::byte>(static_cast<uint8_t>(number(row, column))));
    return l.constant(Tensor::from_bytes(ElementType::UInt8, {rows, columns_}, std::move(all)));
  }

  // Of shape().
  Tensor as(ElementType type) const {
    std::vector<double> values(static_cast<size_t>(depth_ * columns_));
    for (int64_t column = 0; column < columns_; column++)
      for (int64_t k = 0; k < depth_; k++) {
        const size_t block = place_of(k / block_, column);
        values[static_cast<size_t>(k * columns_ + column)] =
            (static_cast<double>(number_at(k, column)) - zeros_[block]) * scales_[block];
      }
    return Tensor::from_values(type, {depth_, columns_}, values);
  }

  int64_t digit_of(const std::vector<int64_t>& bytes, int64_t place) const {
    const int64_t a_byte = kByte / bits_, byte = bytes.at(static_cast<size_t>(place / a_byte));
    return (byte >> (bits_ * (place % a_byte))) & ((int64_t{1} << bits_) - 1);
  }
  // Those of a column begin with a byte.
  std::vector<double> unpacked_zeros(const std::vector<int64_t>& bytes) const {
    const int64_t a_byte = kByte / bits_, of_column = (blocks_ + a_byte - 1) / a_byte * a_byte;
    std::vector<double> zeros;
    for (int64_t column = 0; column < columns_; column++)
      for (int64_t block = 0; block < blocks_; block++)
        zeros.push_back(static_cast<double>(digit_of(bytes, column * of_column + block)));
    return zeros;
  }

  int64_t depth_, columns_, bits_, block_, blocks_ = 0;
  std::vector<int64_t> packed_;
  std::vector<double> scales_, zeros_;  // no zero points: the middle of the range
};
Values lower_mat_mul_of_bits(Lowering& l) {
  const Value x = l.input(0);
  (void)l.integer("accuracy_level", 0);  // how coarsely x may be computed with: not at all, here
  Lowering::require(is_floating(type_of(x)) && !l.has(4));
  BlockedWeights blocked(l);
  const Value weights =
      l.is_for_types() ? l.graph_input("weights", {type_of(x), blocked.shape()}) : blocked.read(l).made(l, type_of(x));
  const Value y = l.op(OpKind::MatMul, {x, weights});
  return {l.has(5) ? l.add(y, l.input(5)) : y};
}

constexpr LoweredOperator kMicrosoft[] = {{"QLinearAdd", lower_add},
                                          {"QLinearMul", lower_mul},
                                          {"QLinearWhere", lower_where},
                                          {"QLinearSigmoid", lower_sigmoid},
                                          {"QLinearLeakyRelu", lower_leaky_relu},
                                          {"QLinearSoftmax", lower_softmax},
                                          {"QLinearReduceMean", lower_reduce_mean},
                                          {"QLinearGlobalAveragePool", lower_global_average_pool},
                                          {"QLinearAveragePool", lower_average_pool},
                                          {"QLinearConcat", lower_concat},
                                          {"QGemm", lower_gemm},
                                          {"MatMulNBits", lower_mat_mul_of_bits},
                                          {"MatMulIntegerToFloat", lower_product_to_floats},
                                          {"DynamicQuantizeMatMul", lower_dynamic_product}};

}  // namespace

std::span<const LoweredOperator> lowered_microsoft() { return kMicrosoft; }

}  // namespace gopt::ir
