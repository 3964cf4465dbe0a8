// Products of a few lines by kernels of our own on CUDA that read each weight once.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gopt/plan.h"

namespace gopt {

// As Kernel::implementation names it, by the warps that share a column: "gemv:4"; and the inverse, none where it is
// another's name.
std::string vector_product_name(int warps);
std::optional<int> parse_vector_product(std::string_view implementation);

// Likewise of products by quantized weights: "quantized:4".
std::string quantized_product_name(int warps);
std::optional<int> parse_quantized_product(std::string_view implementation);
// The most lines that these are for.
inline constexpr int64_t kMostQuantizedLines = 8;

// Lines of the result of a matrix product, or positions of a convolution's. Precondition: extents are numbers.
int64_t lines_of_product(const Plan& plan, const Kernel& kernel);

}  // namespace gopt
