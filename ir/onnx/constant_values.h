// Values that a model computes of constants alone.
#pragma once

#include "gopt/graph.h"

namespace gopt::ir {

// Whether a value is computed by known operators from constants, and soon.
bool is_of_constants(const Value& value);

}  // namespace gopt::ir
