#include "attributes.h"

#include <algorithm>
#include <cmath>

namespace gopt::codegen {

std::string list(const std::vector<int64_t>& numbers) {
  std::string s = "{";
  for (size_t i = 0; i < numbers.size(); i++) s += (i ? ", " : "") + std::to_string(numbers[i]);
  return s + "}";
}

Shape of_three_axes(Shape sizes, int64_t otherwise) {
  sizes.insert(sizes.begin(), 3 - sizes.size(), otherwise);
  return sizes;
}

std::string number(double value) {
  if (std::isnan(value)) return "__builtin_nanf(\"\")";
  char text[40];
  snprintf(text, sizeof text, "%.9g", std::clamp(value, -3.4028234e38, 3.4028234e38));
  std::string s = text;
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return s + "f";
}

std::string number_or_infinity(double value) {
  return !std::isinf(value) ? number(value) : value > 0 ? "__builtin_inff()" : "-__builtin_inff()";
}

}  // namespace gopt::codegen
