// What the rows of convolutions ask of one, in numbers for their expectations.
#pragma once

#include "gopt/plan.h"

namespace gopt::planner {

struct Convolved {
  double groups, in, out;       // channels of a group
  double taps, positions;       // of the kernel, of the output
  double operations, elements;  // elements: of source and destination
  bool transposed, plain, blocked;
  double lanes;  // channels of a block of the result, or what they are elsewhere
};
Convolved convolved(const Plan& plan, const Kernel& kernel);

}  // namespace gopt::planner
