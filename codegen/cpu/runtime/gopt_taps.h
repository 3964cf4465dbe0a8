// The second half of a convolution to very few channels: the products of each source element by each tap of the kernel
// are there, as planes of their own, and what an output element is the sum of is added up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gopt_runtime {

struct PlanarShape;

class TapSums {
 public:
  // Precondition: strides are 1, or the convolution is transposed.
  explicit TapSums(const PlanarShape& shape);

  // Floats that add_row needs beside the row, in whole vectors.
  size_t scratch_floats() const;
  // The sums of output row (z, y) of a channel, of which `products` has a plane a tap. `scratch` and `row` are aligned
  // to 64 bytes.
  void add_row(const float* products, int64_t z, int64_t y, float* scratch, float* row) const;

 private:
  // Output element residue + i * step reads source element i + shift of the tap.
  struct Tap {
    int64_t number, shift;
  };
  struct Axis {
    int64_t step, src, dst;
    std::vector<std::vector<Tap>> taps;  // by residue
  };
  void add_taps(const Axis& x, int64_t residue, const float* products, float* sums, int64_t count) const;

  Axis axes_[3];
  int64_t kernel_[3], plane_;
};

}  // namespace gopt_runtime
