// Quantization: integers with scales and zero points. What ONNX and com.microsoft's operators say on integers is what
// they say of the numbers that these stand for, rounded once at the end: Quantize(operator(Dequantize(x), ...)).
#include <algorithm>

#include "quantized_values.h"

namespace gopt::ir {

bool is_quantized_type(ElementType type) {
  return type == ElementType::UInt8 || type == ElementType::Int8 || type == ElementType::UInt16 ||
         type == ElementType::Int16;
}

Value along_axis(Lowering& l, const Value& v, int64_t axis, size_t rank) {
  if (rank_of(v) == 0) return v;
  Lowering::require(rank_of(v) == 1);
  Shape shape(rank, Index(1));
  if (shape_of(v)[0] == Index(1))
    shape = {};
  else
    shape.at(static_cast<size_t>(axis)) = shape_of(v)[0];
  if (!v.node->is(OpKind::Constant)) return l.reshape(v, shape);
  std::vector<int64_t> dims;
  for (const Index& extent : shape) dims.push_back(extent.constant());
  return l.constant(v.node->tensor.reshaped(std::move(dims)));
}

Value quantize(Lowering& l, const Value& x, const Value& scale, const Value& zero) {
  Lowering::require(type_of(scale) == ElementType::Float32 && is_quantized_type(type_of(zero)));
  return l.op(OpKind::Quantize, {l.cast(x, ElementType::Float32), scale, zero});
}

// What sums of products of integers are to be multiplied by: a scale, or one for each channel.
Value scale_product(Lowering& l, const Value& a, const Value& b, double factor) {
  const auto flat = [&](const Value& v) { return rank_of(v) == 1 ? along_axis(l, v, 0, 1) : v; };
  const auto is_known = [](const Value& v) { return v.node->is(OpKind::Constant); };
  if (!is_known(a) || !is_known(b)) {
    const Value product = l.mul(flat(a), flat(b));
    return factor == 1 ? product : l.mul(product, l.scalar(ElementType::Float32, factor));
  }
  Lowering::require(a.node->tensor.count() == 1 || b.node->tensor.count() == 1);
  std::vector<double> scales;
  for (const double x : a.node->tensor.to_doubles())
    for (const double y : b.node->tensor.to_doubles())
      scales.push_back(static_cast<float>(x) * static_cast<float>(y) * static_cast<float>(factor));
  std::vector<int64_t> dims;
  if (scales.size() > 1) dims.push_back(static_cast<int64_t>(scales.size()));
  return l.constant(Tensor::from_values(ElementType::Float32, dims, scales));
}

Value dequantize(Lowering& l, const Value& x, const Value& scale, const Value& zero) {
  Lowering::require(type_of(scale) == ElementType::Float32 && is_integer(type_of(x)));
  return l.op(OpKind::Dequantize, {x, scale, zero ? zero : l.scalar(type_of(x), 0)});
}

Value spread_blocks(Lowering& l, const Value& of_blocks, const Value& x, int64_t axis, int64_t block) {
  const int64_t extent = extent_of(x, axis);
  Lowering::require(rank_of(of_blocks) == rank_of(x) && block > 0 &&
                    extent_of(of_blocks, axis) == (extent + block - 1) / block);
  std::vector<int64_t> places;
  for (int64_t k = 0; k < extent; k++) places.push_back(k / block);
  return l.op(OpKind::Gather, {of_blocks, l.integers_constant(places)}, {{"axis", Index(axis)}});
}

namespace {

// An operand of a product without its zero point, in `type`.
Value centered(Lowering& l, const Value& x, const Value& zero_point, int64_t axis, ElementType type) {
  const Value wide = l.cast(x, type);
  if (!zero_point) return wide;
  return l.sub(wide, l.cast(along_axis(l, zero_point, axis, rank_of(x)), type));
}

bool is_zero(const Value& value) {
  if (!value) return true;
  if (!value.node->is(OpKind::Constant)) return false;
  return std::ranges::all_of(value.node->tensor.to_ints(), [](int64_t number) { return number == 0; });
}

// The product of both as they are, less zero point times sums: sum (a - p) (b - q) = sum a b - p sum b - q sum (a - p).
Value corrected_product(Lowering& l, const Value& a, const Value& a_zero, const Value& b, const Value& b_zero) {
  constexpr ElementType kSum = ElementType::Int32;
  const auto rows = static_cast<int64_t>(rank_of(a)) - 2, columns = static_cast<int64_t>(rank_of(b)) - 1;
  const auto along = [&](const Value& zero, int64_t axis, size_t rank) {
    return l.cast(along_axis(l, zero, axis, rank), kSum);
  };
  const Value wide_b = l.cast(b, kSum);
  Value product = l.op(OpKind::MatMul, {l.cast(a, kSum), wide_b});
  if (!is_zero(a_zero)) {
    const Value sums = l.reduce(OpKind::ReduceSum, wide_b, {Index(columns - 1)});
    product = l.sub(product, l.mul(sums, along(a_zero, rows, rank_of(a))));
  }
  if (!is_zero(b_zero)) {
    const Value centered_a = centered(l, a, a_zero, rows, kSum);
    const Value sums = l.reduce(OpKind::ReduceSum, centered_a, {Index(rows + 1)});
    product = l.sub(product, l.mul(sums, along(b_zero, columns, rank_of(b))));
  }
  return product;
}

}  // namespace

Value integer_product(Lowering& l, const Value& a, const Value& a_zero, const Value& b, const Value& b_zero) {
  Lowering::require(rank_of(a) >= 2 && rank_of(b) >= 2);
  const auto rows = static_cast<int64_t>(rank_of(a)) - 2, columns = static_cast<int64_t>(rank_of(b)) - 1;
  // All that is summed up on the way has 32 bits.
  constexpr int64_t kMostDepth = 8192;
  const Index& depth = open_extent_of(a, rows + 1);
  if (depth.is_constant() && depth.constant() <= kMostDepth) return corrected_product(l, a, a_zero, b, b_zero);
  return l.op(OpKind::MatMul,
              {centered(l, a, a_zero, rows, ElementType::Int32), centered(l, b, b_zero, columns, ElementType::Int32)});
}

namespace {

// A type that may be said, and is this one then.
bool is_or_unsaid(const Lowering& l, const std::string& attribute, ElementType type) {
  const int64_t given = l.integer(attribute, 0);
  return given == 0 || static_cast<ElementType>(given) == type;
}
bool is_of_scales(ElementType type) { return type == ElementType::Float32 || is_half(type); }

// A constant of 4 bits, two elements a byte, the lower ones first, is one of 8 here.
Value input_of_bits(Lowering& l, size_t i) {
  const Value given = l.any_input(i);
  const ElementType type = given ? type_of(given) : ElementType::Undefined;
  if ((type != ElementType::UInt4 && type != ElementType::Int4) || !given.node->is(OpKind::Constant)) return l.input(i);
  const Tensor& packed = given.node->tensor;
  std::vector<int64_t> values(static_cast<size_t>(packed.count()));
  for (size_t k = 0; k < values.size(); k++) {
    values[k] = static_cast<int64_t>(packed.bytes()[k / 2]) >> (4 * (k % 2)) & 15;
    if (type == ElementType::Int4 && values[k] > 7) values[k] -= 16;
  }
  return l.constant(
      Tensor::from_values(type == ElementType::Int4 ? ElementType::Int8 : ElementType::UInt8, packed.dims(), values));
}

int64_t quantized_axis(const Lowering& l, size_t rank, const Value& scale) {
  const int64_t given = l.integer("axis", 1);
  return rank_of(scale) == 0 ? 0 : l.axis(std::min<int64_t>(given, static_cast<int64_t>(rank) - 1), rank);
}

// A scale or zero point as it broadcasts to x: of the whole tensor, of places along the axis, or of blocks along it.
Value along_blocks(Lowering& l, const Value& v, const Value& x, int64_t axis) {
  const int64_t block = l.integer("block_size", 0);
  return block != 0 ? spread_blocks(l, v, x, axis, block) : along_axis(l, v, axis, rank_of(x));
}

Values lower_quantize(Lowering& l) {
  const Value x = l.input(0), scale = l.input(1);
  Lowering::require(is_of_scales(type_of(scale)) && is_or_unsaid(l, "precision", ElementType::Float32));
  const int64_t given = l.integer("output_dtype", 0), axis = quantized_axis(l, rank_of(x), scale);
  const auto along = [&](const Value& v) { return along_blocks(l, v, x, axis); };
  const ElementType type = given != 0 ? static_cast<ElementType>(given) : ElementType::UInt8;
  if (!l.has(2)) Lowering::require(is_quantized_type(type));
  return {quantize(l, x, l.cast(along(scale), ElementType::Float32), l.has(2) ? along(l.input(2)) : l.scalar(type, 0))};
}

// Constant scales stay constants.
Value in_floats(Lowering& l, const Value& scale) {
  if (type_of(scale) == ElementType::Float32 || !scale.node->is(OpKind::Constant))
    return l.cast(scale, ElementType::Float32);
  const Tensor& tensor = scale.node->tensor;
  return l.constant(Tensor::from_values(ElementType::Float32, tensor.dims(), tensor.to_doubles()));
}

Values lower_dequantize(Lowering& l) {
  const Value x = input_of_bits(l, 0), scale = l.input(1), zero = l.has(2) ? input_of_bits(l, 2) : Value{};
  const ElementType type = type_of(scale);
  Lowering::require(is_of_scales(type) && is_or_unsaid(l, "output_dtype", type));
  const int64_t axis = quantized_axis(l, rank_of(x), scale);
  const auto along = [&](const Value& v) { return along_blocks(l, v, x, axis); };
  const Value numbers = dequantize(l, x, along(in_floats(l, scale)), zero ? along(zero) : Value{});
  return {l.cast(numbers, type)};
}

Values lower_mat_mul_integer(Lowering& l) {
  return {integer_product(l, l.input(0), optional_input(l, 2), l.input(1), optional_input(l, 3))};
}

// Sums of products of integers, which a double holds exactly: ONNX has no Conv of integers. The planner knows them.
Values lower_conv_integer(Lowering& l) {
  const Value one = l.scalar(ElementType::Float64, 1);
  const auto operand = [&](size_t i, int64_t axis) {
    const Value x = l.input(i), zero = optional_input(l, i + 2);
    Lowering::require(is_integer(type_of(x)));
    const Value place = zero ? along_axis(l, zero, axis, rank_of(x)) : l.scalar(type_of(x), 0);
    return l.op(OpKind::Dequantize, {x, one, place});
  };
  const Attributes attributes = window_attributes(l, {"dilations", "kernel_shape", "pads", "strides"});
  return {l.cast(l.op(OpKind::Conv, {operand(0, 1), operand(1, 0)}, attributes), ElementType::Int32)};
}

Values lower_qlinear_mat_mul(Lowering& l) {
  const auto operand = [&](size_t first, bool is_left) {
    const Value x = l.input(first);
    Lowering::require(rank_of(x) >= 2);
    const auto axis = static_cast<int64_t>(rank_of(x)) - (is_left ? 2 : 1);
    const auto along = [&](const Value& v) { return along_axis(l, v, axis, rank_of(x)); };
    return dequantize(l, x, along(l.input(first + 1)), along(l.input(first + 2)));
  };
  const Value product = l.op(OpKind::MatMul, {operand(0, true), operand(3, false)});
  const auto rank = static_cast<int64_t>(rank_of(product));
  const auto rows = [&](const Value& v) { return along_axis(l, v, rank - 2, rank_of(product)); };
  return {quantize(l, product, rows(l.input(6)), rows(l.input(7)))};
}

Values lower_qlinear_conv(Lowering& l) {
  const Value x = l.input(0), w = l.input(3);
  const auto of_image = [&](const Value& v) { return along_axis(l, v, 1, rank_of(x)); };
  const auto of_weights = [&](const Value& v) { return along_axis(l, v, 0, rank_of(w)); };
  Values inputs{dequantize(l, x, of_image(l.input(1)), of_image(l.input(2))),
                dequantize(l, w, of_weights(l.input(4)), of_weights(l.input(5)))};
  if (const Value bias = optional_input(l, 8))
    inputs.push_back(dequantize(l, bias, scale_product(l, l.input(1), l.input(4)), {}));
  const Value sum = l.op(OpKind::Conv, inputs, window_attributes(l, {"dilations", "kernel_shape", "pads", "strides"}));
  return {quantize(l, sum, of_image(l.input(6)), of_image(l.input(7)))};
}

constexpr LoweredOperator kQuantized[] = {
    {"QuantizeLinear", lower_quantize},       {"DequantizeLinear", lower_dequantize},
    {"MatMulInteger", lower_mat_mul_integer}, {"ConvInteger", lower_conv_integer},
    {"QLinearMatMul", lower_qlinear_mat_mul}, {"QLinearConv", lower_qlinear_conv}};

}  // namespace

std::span<const LoweredOperator> lowered_quantized() { return kQuantized; }

}  // namespace gopt::ir
