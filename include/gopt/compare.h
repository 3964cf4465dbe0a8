// How far two results are apart. A NaN on one side only, or a type or shape that differs, never passes.
#pragma once

#include <string>

#include "gopt/type.h"

namespace gopt {

struct Tolerance {
  double relative = 1e-4;  // of the largest magnitude of the reference
  double absolute = 1e-5;
  bool reference_may_fail = false;  // where it is infinite or NaN, anything will do
  double step = 0;                  // that rounding to a grid may make, of integers, too
};

struct Difference {
  std::string output;
  double max_absolute = 0;
  double max_relative = 0;  // max |a - b| / max |a|, a the reference; 0 where both are all zero
  bool comparable = true;   // same type and shape, NaN and infinity in the same places
  bool passed = false;
  std::string note;  // why it is not comparable
};

// What several roundings to 16 bits may add up to, of the largest magnitude: one engine rounds between operators, the
// other computes in float. 0 of other types.
double rounding_tolerance(ElementType type);

Difference difference(const std::string& output, const Tensor& reference, const Tensor& other,
                      const Tolerance& tolerance);

}  // namespace gopt
