// Numbers as C++ text: what printers of library calls need on every target, beside attributes as numbers.
#pragma once

#include <string>
#include <vector>

#include "gopt/node_attributes.h"

namespace gopt::codegen {

std::string list(const std::vector<int64_t>& numbers);  // "{1, 2}"
// Numbers along the last of three axes, `otherwise` along those before.
std::vector<int64_t> of_three_axes(std::vector<int64_t> numbers, int64_t otherwise);
std::string number(double value);  // "0.5f"; infinite: the largest float

}  // namespace gopt::codegen
