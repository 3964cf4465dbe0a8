// Memory for tests of kernels that read and write whole vectors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace gopt_runtime {

// Floats, or bfloat16 numbers by their bits, on lines, of which those that nobody may write stay NaN.
template <class T>
struct OnLines {
  static constexpr T kNan = std::is_same_v<T, float> ? T(NAN) : T(0x7fff);
  explicit OnLines(int64_t count, T fill) : size(count), values(static_cast<size_t>(count) + 128 / sizeof(T), kNan) {
    const auto address = reinterpret_cast<uintptr_t>(values.data());
    data = values.data() + (64 - address % 64) % 64 / sizeof(T);
    std::fill(data, data + count, fill);
  }
  bool is_intact_behind() const {
    return std::all_of(static_cast<const T*>(data + size), values.data() + values.size(), [](T v) {
      if constexpr (std::is_same_v<T, float>) return std::isnan(v);
      return v == kNan;
    });
  }
  int64_t size;
  std::vector<T> values;
  T* data;
};
using Floats = OnLines<float>;

}  // namespace gopt_runtime
