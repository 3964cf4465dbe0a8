#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gopt/compare.h"

namespace gopt {
namespace {

void compare_values(Difference& d, const Tensor& reference, const Tensor& other, bool reference_may_fail) {
  const std::vector<double> a = reference.to_doubles(), b = other.to_doubles();
  double largest = 0;
  for (size_t i = 0; i < a.size(); i++) {
    const bool same_special = (std::isnan(a[i]) && std::isnan(b[i])) || (std::isinf(a[i]) && a[i] == b[i]);
    if (same_special || (reference_may_fail && !std::isfinite(a[i]))) continue;
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) {
      d.comparable = false;
      d.note = fmt::format("element {}: {} against {}", i, a[i], b[i]);
      return;
    }
    largest = std::max(largest, std::fabs(a[i]));
    d.max_absolute = std::max(d.max_absolute, std::fabs(a[i] - b[i]));
  }
  // Integers of 64 bits may differ by less than doubles tell.
  if (!is_floating(reference.type()) && d.max_absolute == 0 && reference.to_ints() != other.to_ints())
    d.max_absolute = 1;
  d.max_relative = d.max_absolute == 0 ? 0 : largest == 0 ? INFINITY : d.max_absolute / largest;
}

}  // namespace

double rounding_tolerance(ElementType type) {
  return type == ElementType::Float16 ? 1e-2 : type == ElementType::BFloat16 ? 5e-2 : 0;
}

Difference difference(const std::string& output, const Tensor& reference, const Tensor& other,
                      const Tolerance& tolerance) {
  Difference d{.output = output};
  if (reference.type() != other.type() || reference.dims() != other.dims()) {
    d.comparable = false;
    d.note = to_string(reference.tensor_type()) + " against " + to_string(other.tensor_type());
    return d;
  }
  if (!is_computable(reference.type())) {
    // Strings and types that nothing computes with can only have been copied: they are the same or they are wrong.
    d.passed = reference.strings() ? other.strings() && *reference.strings() == *other.strings()
                                   : std::ranges::equal(reference.bytes(), other.bytes());
    d.comparable = d.passed;
    if (!d.passed) d.note = "elements of type " + to_string(reference.type()) + " differ";
    return d;
  }
  compare_values(d, reference, other, tolerance.reference_may_fail);
  const bool exact = !is_floating(reference.type());
  const double relative = std::max(tolerance.relative, rounding_tolerance(reference.type()));
  const bool is_a_step = d.max_absolute <= tolerance.step * (1 + 1e-5);
  d.passed =
      d.comparable &&
      (is_a_step || (exact ? d.max_absolute == 0 : d.max_absolute <= tolerance.absolute || d.max_relative <= relative));
  return d;
}

}  // namespace gopt
