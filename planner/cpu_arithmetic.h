// What convolutions and matrix products of the CPU are computed in: floats, halves, integers, tiles.
#pragma once

#include <string_view>

#include "implementations.h"
#include "library_operands.h"

namespace gopt::planner {

inline bool is_of_halves(const Plan& plan, const Kernel& kernel) { return is_half(image(plan, kernel).element); }
inline bool is_of_floats(const Plan& plan, const Kernel& kernel) {
  return !kernel.quantized && image(plan, kernel).element == ElementType::Float32 &&
         result(plan, kernel).element == ElementType::Float32;
}
// As a product of three times the depth (codegen/cpu/runtime/gopt_split.h).
inline bool splits_floats(const Plan& plan, const Kernel& kernel) {
  return may_lose_digits(plan, kernel) && is_of_floats(plan, kernel);
}
inline bool is_of_integers(const Plan&, const Kernel& kernel) { return kernel.integers.has_value(); }

// Four products an instruction where one of floats does one (codegen/cpu/runtime/gopt_integer.h).
inline constexpr double kIntegerSpeed = 3.2;

// ---- tiles (codegen/cpu/runtime/gopt_tiles.h) ----

// Floats as three terms have all their digits: whatever the precision.
inline bool takes_six(const Plan& plan, const Kernel& kernel) {
  return plan.target.has_tiles && is_of_floats(plan, kernel);
}
inline bool takes_three(const Plan& plan, const Kernel& kernel) {
  return plan.target.has_tiles && splits_floats(plan, kernel);
}
inline bool takes_one(const Plan& plan, const Kernel& kernel) {
  return plan.target.has_tiles && is_of_halves(plan, kernel);
}

// Of what others reach in the same precision, as measured over many shapes (docs/costs.md): which is faster for one
// kernel on one machine is for its times to say, and a plan by estimates has none on tiles.
inline constexpr double kSixSpeed = 0.8, kThreeSpeed = 0.9, kOneSpeed = 0.8;

// Whose floats are sums of two terms.
inline constexpr std::string_view kSplit = "bf16x3", kTilesOfTwo = "tiles-x3";

}  // namespace gopt::planner
