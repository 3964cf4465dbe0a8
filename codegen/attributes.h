// Numbers as C++ text: what printers of library calls need on every target, beside attributes as numbers.
#pragma once

#include <string>
#include <vector>

#include "gopt/node_attributes.h"

namespace gopt::codegen {

std::string list(const std::vector<int64_t>& numbers);  // "{1, 2}"
// Sizes along the last of three axes, `otherwise` along those before.
Shape of_three_axes(Shape sizes, int64_t otherwise);
std::string number(double value);  // "0.5f"; infinite: the largest float
std::string number_or_infinity(double value);

}  // namespace gopt::codegen
