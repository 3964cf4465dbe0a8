#pragma once

#include "gopt/type.h"

namespace gopt {

// The largest finite number of a floating-point type.
double largest_number(ElementType type);

}  // namespace gopt
