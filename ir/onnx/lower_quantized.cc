// Quantization: integers and scales as arithmetic in wider types.
#include <algorithm>

#include "lowering.h"

namespace gopt::ir {
namespace {

struct IntegerRange {
  double low, high;
};
IntegerRange range_of_type(ElementType type) {
  switch (type) {
    case ElementType::UInt8: return {0, 255};
    case ElementType::Int8: return {-128, 127};
    case ElementType::UInt16: return {0, 65535};
    case ElementType::Int16: return {-32768, 32767};
    default: Lowering::leave();
  }
}

// A scale or zero point: of the whole tensor, or one for each place along the axis.
Value along_axis(Lowering& l, const Value& v, int64_t axis, size_t rank) {
  if (rank_of(v) == 0) return v;
  Lowering::require(rank_of(v) == 1);
  if (shape_of(v)[0] == Index(1)) return l.op(OpKind::Squeeze, {v}, {{"axes", std::vector<Index>{Index(0)}}});
  Shape shape(rank, Index(1));
  shape.at(static_cast<size_t>(axis)) = shape_of(v)[0];
  return l.reshape(v, shape);
}

// The nearest integer, halves to even. Opset 10 has no Round: there the integer above, one less where it is further off
// or odd and as far.
Value rounded(Lowering& l, const Value& x) {
  if (l.opset() >= 11) return l.op(OpKind::Round, {x});
  const auto number = [&](double value) { return l.scalar(type_of(x), value); };
  const Value half_up = l.op(OpKind::Floor, {l.add(x, number(0.5))}), over = l.sub(half_up, x);
  const Value half = l.mul(half_up, number(0.5)), odd = l.sub(half, l.op(OpKind::Floor, {half}));
  const Value step_back = l.op(OpKind::And, {l.op(OpKind::Not, {l.op(OpKind::Less, {over, number(0.5)})}),
                                             l.op(OpKind::Less, {number(0), odd})});
  return l.where(step_back, l.sub(half_up, number(1)), half_up);
}

// round(x) + zero point, cut off where the type ends.
Value saturated(Lowering& l, const Value& x, const Value& zero_point, ElementType type) {
  const IntegerRange range = range_of_type(type);
  Value shifted = rounded(l, x);
  if (zero_point) shifted = l.add(shifted, l.cast(zero_point, type_of(x)));
  return l.cast(l.op(OpKind::Clip, {shifted}, {{"min", range.low}, {"max", range.high}}), type);
}

bool has_blocks(const Lowering& l) { return l.integer("block_size", 0) != 0; }
int64_t quantized_axis(const Lowering& l, size_t rank, const Value& scale) {
  const int64_t given = l.integer("axis", 1);
  return rank_of(scale) == 0 ? 0 : l.axis(std::min<int64_t>(given, static_cast<int64_t>(rank) - 1), rank);
}

Values lower_quantize(Lowering& l) {
  const Value x = l.input(0), scale = l.input(1);
  Lowering::require(!has_blocks(l) && type_of(scale) == ElementType::Float32);
  const int64_t given = l.integer("output_dtype", 0);
  const ElementType type = l.has(2)     ? type_of(l.input(2))
                           : given != 0 ? static_cast<ElementType>(given)
                                        : ElementType::UInt8;
  const int64_t axis = quantized_axis(l, rank_of(x), scale);
  const Value scaled = l.div(l.cast(x, ElementType::Float32), along_axis(l, scale, axis, rank_of(x)));
  return {saturated(l, scaled, l.has(2) ? along_axis(l, l.input(2), axis, rank_of(x)) : Value{}, type)};
}

Values lower_dequantize(Lowering& l) {
  const Value x = l.input(0), scale = l.input(1);
  Lowering::require(!has_blocks(l) && is_integer(type_of(x)) && type_of(scale) == ElementType::Float32);
  const int64_t axis = quantized_axis(l, rank_of(x), scale);
  Value wide = l.cast(x, ElementType::Float32);
  if (l.has(2)) wide = l.sub(wide, l.cast(along_axis(l, l.input(2), axis, rank_of(x)), ElementType::Float32));
  return {l.mul(wide, along_axis(l, scale, axis, rank_of(x)))};
}

// An operand of a product without its zero point, in `type`.
Value centered(Lowering& l, const Value& x, const Value& zero_point, int64_t axis, ElementType type) {
  const Value wide = l.cast(x, type);
  if (!zero_point) return wide;
  return l.sub(wide, l.cast(along_axis(l, zero_point, axis, rank_of(x)), type));
}
Value optional_input(const Lowering& l, size_t i) { return l.has(i) ? l.input(i) : Value{}; }

Value integer_product(Lowering& l, const Value& a, const Value& a_zero, const Value& b, const Value& b_zero) {
  Lowering::require(rank_of(a) >= 2 && rank_of(b) >= 2);
  const auto rows = static_cast<int64_t>(rank_of(a)) - 2, columns = static_cast<int64_t>(rank_of(b)) - 1;
  return l.op(OpKind::MatMul,
              {centered(l, a, a_zero, rows, ElementType::Int32), centered(l, b, b_zero, columns, ElementType::Int32)});
}
Values lower_mat_mul_integer(Lowering& l) {
  return {integer_product(l, l.input(0), optional_input(l, 2), l.input(1), optional_input(l, 3))};
}

// Sums of products of integers, which a double holds exactly: ONNX has no Conv of integers.
Value integer_convolution(Lowering& l, const Value& x, const Value& x_zero, const Value& w, const Value& w_zero,
                          const Value& bias) {
  Attributes attributes{{"auto_pad", l.text("auto_pad", "NOTSET")}, {"group", Index(l.integer("group", 1))}};
  for (const char* name : {"dilations", "kernel_shape", "pads", "strides"}) {
    const std::vector<int64_t> list = l.integers(name, {});
    if (!list.empty()) attributes[name] = std::vector<Index>(list.begin(), list.end());
  }
  Values inputs{centered(l, x, x_zero, 1, ElementType::Float64), centered(l, w, w_zero, 0, ElementType::Float64)};
  if (bias) inputs.push_back(l.cast(bias, ElementType::Float64));
  return l.cast(l.op(OpKind::Conv, inputs, attributes), ElementType::Int32);
}
Values lower_conv_integer(Lowering& l) {
  return {integer_convolution(l, l.input(0), optional_input(l, 2), l.input(1), optional_input(l, 3), {})};
}

// The sum in integers times scale a x scale b / scale y.
Value requantized(Lowering& l, const Value& sum, const Value& a, const Value& b, const Value& y, const Value& zero) {
  const auto real = [&](const Value& v) { return l.cast(v, ElementType::Float32); };
  const Value scaled = l.mul(real(sum), l.div(l.mul(real(a), real(b)), real(y)));
  return saturated(l, scaled, zero, type_of(zero));
}
Values lower_qlinear_mat_mul(Lowering& l) {
  const Value a = l.input(0), b = l.input(3), sum = integer_product(l, a, l.input(2), b, l.input(5));
  const auto rank = static_cast<int64_t>(rank_of(sum));
  const auto rows = [&](const Value& v) { return along_axis(l, v, rank - 2, rank_of(sum)); };
  const auto columns = [&](const Value& v) { return along_axis(l, v, rank - 1, rank_of(sum)); };
  return {requantized(l, sum, rows(l.input(1)), columns(l.input(4)), rows(l.input(6)), rows(l.input(7)))};
}
Values lower_qlinear_conv(Lowering& l) {
  const Value x = l.input(0), w = l.input(3);
  const Value sum = integer_convolution(l, x, l.input(2), w, l.input(5), optional_input(l, 8));
  const auto channels = [&](const Value& v) { return along_axis(l, v, 1, rank_of(sum)); };
  return {requantized(l, sum, channels(l.input(1)), channels(l.input(4)), channels(l.input(6)), channels(l.input(7)))};
}

constexpr LoweredOperator kQuantized[] = {
    {"QuantizeLinear", lower_quantize},       {"DequantizeLinear", lower_dequantize},
    {"MatMulInteger", lower_mat_mul_integer}, {"ConvInteger", lower_conv_integer},
    {"QLinearMatMul", lower_qlinear_mat_mul}, {"QLinearConv", lower_qlinear_conv}};

}  // namespace

std::span<const LoweredOperator> lowered_quantized() { return kQuantized; }

}  // namespace gopt::ir
