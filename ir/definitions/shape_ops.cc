// Operators whose result follows from shapes and scalars.
#include <algorithm>
#include <cmath>

#include "context.h"
#include "gopt/wide_integers.h"

namespace gopt::ir {

void define_Shape(DefineContext& c) {
  const Shape& shape = c.input(0).shape;
  const auto rank = static_cast<int64_t>(shape.size());
  auto clamp = [rank](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  const int64_t start = clamp(c.number("start")), end = c.has("end") ? clamp(c.number("end")) : rank;
  const Shape part(shape.begin() + start, shape.begin() + std::max(start, end));
  c.output(ElementType::Int64, {Index(static_cast<int64_t>(part.size()))}, [part](const std::vector<Index>& i) {
    Expr value = constant(0);
    for (size_t k = part.size(); k-- > 0;)
      value = select(equal(i[0], Index(static_cast<int64_t>(k))), size_of(part[k]), value);
    return value;
  });
}

void define_Size(DefineContext& c) {
  const Index count = product(c.input(0).shape, 0, c.input(0).shape.size());
  c.output(ElementType::Int64, {}, [count](const std::vector<Index>&) { return size_of(count); });
}

void define_ConstantOfShape(DefineContext& c) {
  const Shape shape = c.integers("shape");
  for (const Index& e : shape) c.require(at_least(e, Index(0)), "extents are not negative");
  ElementType element = ElementType::Float32;
  double value = 0;
  if (c.has("value")) {
    const Tensor& t = c.tensor("value");
    if (t.count() != 1 || !is_computable(t.type())) c.fail("value is one number");
    element = t.type();
    value = load_double(t.bytes().data(), element, 0);
    if (has_wide_integers(t)) c.fail("value exceeds 53 bits");
  }
  c.output(element, shape, [value](const std::vector<Index>&) { return constant(value); });
}

void define_Range(DefineContext& c) {
  for (size_t k = 0; k < 3; k++) {
    if (!c.input(k).data || c.input(k).data->count() != 1) c.fail("start, limit and delta must be constants");
    if (has_wide_integers(*c.input(k).data)) c.fail("start, limit or delta exceeds 53 bits");
  }
  const ElementType element = c.input(0).element;
  auto scalar = [&c, element](size_t k) { return load_double(c.input(k).data->bytes().data(), element, 0); };
  const double start = scalar(0), limit = scalar(1), delta = scalar(2);
  if (delta == 0) c.fail("delta is 0");
  const double count = std::max(0.0, std::ceil((limit - start) / delta));
  if (!(count < 9e15)) c.fail("the range has no finite number of elements");
  c.output(element, {Index(static_cast<int64_t>(count))},
           [=](const std::vector<Index>& i) { return constant(start) + size_of(i[0]) * constant(delta); });
}

void define_FillLike(DefineContext& c) {
  const Expr value = c.real("value");
  c.output(c.input(0).element, c.input(0).shape, [value](const std::vector<Index>&) { return value; });
}

}  // namespace gopt::ir
