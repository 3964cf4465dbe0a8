#include "gopt/row_function.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "gopt/interpreter.h"

namespace gopt {
namespace {

struct Extents {
  int64_t outer, row, inner;
  int64_t at(int64_t block, int64_t k, int64_t column) const { return (block * row + k) * inner + column; }
};

Extents extents_of(const RowFunction& function, const std::vector<int64_t>& dims) {
  const RowExtents extents = gopt::extents_of(function, Shape(dims.begin(), dims.end()));
  return {extents.outer.constant(), extents.row.constant(), extents.inner.constant()};
}

template <class T>
std::vector<T> elements_of(const Tensor& tensor) {
  const auto* first = reinterpret_cast<const T*>(tensor.bytes().data());
  return {first, first + element_count(tensor.dims())};
}

template <class T>
T combined(RowFunction::Kind kind, T a, T b) {
  return kind == RowFunction::Kind::Sum ? a + b : a * b;
}

template <class T>
Tensor running(const RowFunction& f, const Tensor& input) {
  using Sum =
      typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<double>>::type;
  const Extents e = extents_of(f, input.dims());
  const std::vector<T> x = elements_of<T>(input);
  std::vector<T> y(x.size());
  for (int64_t block = 0; block < e.outer; block++)
    for (int64_t column = 0; column < e.inner; column++) {
      Sum sum = f.kind == RowFunction::Kind::Sum ? 0 : 1;
      for (int64_t k = 0; k < e.row; k++) {
        const auto at = static_cast<size_t>(e.at(block, f.is_reversed ? e.row - 1 - k : k, column));
        const Sum with = combined(f.kind, sum, static_cast<Sum>(x[at]));
        y[at] = static_cast<T>(f.is_exclusive ? sum : with);
        sum = with;
      }
    }
  return Tensor::from_values<T>(input.type(), input.dims(), y);
}

// NaN above all numbers; else as they are.
template <class T>
bool is_above(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
  return a > b;
}

template <class T>
std::vector<Tensor> top(const RowFunction& f, const Tensor& input, int64_t count) {
  const Extents e = extents_of(f, input.dims());
  const std::vector<T> x = elements_of<T>(input);
  std::vector<T> values;
  std::vector<int64_t> places;
  for (int64_t block = 0; block < e.outer; block++) {
    std::vector<int64_t> order(static_cast<size_t>(e.row));
    std::iota(order.begin(), order.end(), 0);
    const auto value = [&](int64_t k) { return x[static_cast<size_t>(e.at(block, k, 0))]; };
    std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
      return f.is_largest ? is_above(value(a), value(b)) : is_above(value(b), value(a));
    });
    for (int64_t k = 0; k < count; k++) {
      places.push_back(order[static_cast<size_t>(k)]);
      values.push_back(value(places.back()));
    }
  }
  std::vector<int64_t> dims = input.dims();
  dims.back() = count;
  return {Tensor::from_values<T>(input.type(), dims, values),
          Tensor::from_values<int64_t>(ElementType::Int64, dims, places)};
}

template <class T>
std::vector<Tensor> computed(const RowFunction& f, const Tensor& input, int64_t count) {
  if (f.kind == RowFunction::Kind::Top) return top<T>(f, input, count);
  return {running<T>(f, input)};
}

}  // namespace

const char* to_string(RowFunction::Kind kind) {
  switch (kind) {
    case RowFunction::Kind::Sum: return "Sum";
    case RowFunction::Kind::Product: return "Product";
    case RowFunction::Kind::Top: return "Top";
  }
  throw InternalError("a row's function without a kind");
}

std::string to_string(const RowFunction& f) {
  std::string text = std::string(to_string(f.kind)) + " " + std::to_string(f.axis);
  if (f.kind == RowFunction::Kind::Top) return text + (f.is_largest ? "" : " smallest");
  return text + (f.is_reversed ? " reversed" : "") + (f.is_exclusive ? " exclusive" : "");
}

RowExtents extents_of(const RowFunction& function, const Shape& shape) {
  RowExtents extents{Index(1), Index(1), Index(1)};
  for (size_t k = 0; k < shape.size(); k++) {
    const auto axis = static_cast<size_t>(function.axis);
    Index& extent = k < axis ? extents.outer : k > axis ? extents.inner : extents.row;
    extent = extent * shape[k];
  }
  return extents;
}

const Index& taken_by(const Node& node) { return node.outputs[0].shape->back(); }

Result<std::vector<Tensor>> interpret_row_function(const Node& node, const Tensor& input) {
  const RowFunction& function = *node.opaque->row_function;
  int64_t count = 0;
  if (function.kind == RowFunction::Kind::Top) {
    const Index& taken = taken_by(node);
    if (!taken.is_constant()) return Error{"how many elements are taken, " + to_string(taken) + ", is no number"};
    count = taken.constant();
    if (input.dims().back() < count)
      return Error{std::to_string(count) + " elements are taken of a row of " + std::to_string(input.dims().back())};
  }
  switch (input.type()) {
    case ElementType::Float32: return computed<float>(function, input, count);
    case ElementType::Float64: return computed<double>(function, input, count);
    case ElementType::Int32: return computed<int32_t>(function, input, count);
    case ElementType::Int64: return computed<int64_t>(function, input, count);
    default: return Error{"a row's function of " + std::string(to_string(input.type()))};
  }
}

}  // namespace gopt
