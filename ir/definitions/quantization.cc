// Integers of few bits that stand for floats: (integer - zero point) scale. Elementwise; scale and zero point
// broadcast. What ONNX says has floats; by a scale of 64 bits it is what sums of integers are exact in.
#include "context.h"

namespace gopt::ir {
namespace {

struct IntegerRange {
  double low, high;
};
IntegerRange range_of(const DefineContext& c, ElementType type) {
  switch (type) {
    case ElementType::UInt8: return {0, 255};
    case ElementType::Int8: return {-128, 127};
    case ElementType::UInt16: return {0, 65535};
    case ElementType::Int16: return {-32768, 32767};
    default: c.fail("the zero point is " + to_string(type) + ", not an integer of 8 or 16 bits");
  }
}

Shape shape_of_all(DefineContext& c) {
  return broadcast_shapes(c, {&c.input(0).shape, &c.input(1).shape, &c.input(2).shape});
}

}  // namespace

void define_Dequantize(DefineContext& c) {
  const TensorExpr x = c.input(0), scale = c.input(1), zero = c.input(2);
  if (is_floating(x.element) || x.element == ElementType::Bool) c.fail("x is " + to_string(x.element));
  const ElementType type = scale.element;
  if (type != ElementType::Float32 && type != ElementType::Float64)
    c.fail("the scale is " + to_string(type) + ", not f32 or f64");
  if (zero.element != x.element) c.fail("the zero point is " + to_string(zero.element) + ", x " + to_string(x.element));
  c.output(type, shape_of_all(c), [=](const std::vector<Index>& i) {
    const auto real = [&](const TensorExpr& t) { return convert(type, broadcast_at(t, i)); };
    return (real(x) - real(zero)) * broadcast_at(scale, i);
  });
}

void define_Quantize(DefineContext& c) {
  const TensorExpr x = c.input(0), scale = c.input(1), zero = c.input(2);
  const IntegerRange range = range_of(c, zero.element);
  for (const TensorExpr& t : {x, scale})
    if (t.element != ElementType::Float32) c.fail("x and the scale are f32, not " + to_string(t.element));
  c.output(zero.element, shape_of_all(c), [=](const std::vector<Index>& i) {
    // The quotient is a float, as ONNX has it: which way what lies between two integers goes depends on that.
    const Expr quotient = convert(ElementType::Float32, broadcast_at(x, i) / broadcast_at(scale, i));
    const Expr nearest = call(Function::Round, {quotient});
    const Expr shifted = nearest + convert(ElementType::Float32, broadcast_at(zero, i));
    return convert(zero.element, minimum(maximum(shifted, constant(range.low)), constant(range.high)));
  });
}

}  // namespace gopt::ir
