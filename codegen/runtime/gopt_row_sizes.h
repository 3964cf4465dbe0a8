// What functions of rows are told, on every target.
#pragma once

#include <cstdint>
#include <type_traits>

namespace gopt_runtime {

// A tensor of [outer, row, inner] elements.
struct RowSizes {
  int64_t outer, row, inner;
};

enum class Running { Sum, Product };

// Floats are accumulated in 64 bits, integers wrap around.
template <class T>
struct RunningSum {
  using Type = double;
};
template <>
struct RunningSum<int32_t> {
  using Type = uint32_t;
};
template <>
struct RunningSum<int64_t> {
  using Type = uint64_t;
};

// Whether the total of a part of a row is within the range that it is made in, wherever the row's own totals are in
// theirs: a row may be summed by parts then. Of doubles, and of products of floats, it may overflow.
template <Running how, class T>
constexpr bool kHasSafeParts = std::is_integral_v<T> || (how == Running::Sum && sizeof(T) < sizeof(double));

}  // namespace gopt_runtime
