// Memory for tests of kernels that read and write whole vectors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace gopt_runtime {

// Floats on lines, of which those that nobody may write stay NaN.
struct Floats {
  explicit Floats(int64_t count, float fill) : size(count), values(static_cast<size_t>(count) + 32, NAN) {
    const auto address = reinterpret_cast<uintptr_t>(values.data());
    data = values.data() + (64 - address % 64) % 64 / 4;
    std::fill(data, data + count, fill);
  }
  int64_t size;
  std::vector<float> values;
  float* data;
};

}  // namespace gopt_runtime
