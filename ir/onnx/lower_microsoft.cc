// Operators of com.microsoft that ONNX Runtime's quantization tool writes: those of ONNX on integers with scales and
// zero points.
#include <algorithm>

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
                                          {"QGemm", lower_gemm}};

}  // namespace

std::span<const LoweredOperator> lowered_microsoft() { return kMicrosoft; }

}  // namespace gopt::ir
