// What functions of rows are told, on every target.
#pragma once

#include <cstdint>

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

}  // namespace gopt_runtime
