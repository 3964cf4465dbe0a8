// What scalar operations take: the one place, for estimates of work (definition.h) and for what planning computes
// again.
#pragma once

#include "gopt/expr.h"

namespace gopt {

// What the root of an expression takes, its arguments apart, in additions; of a reduction: each element that it takes
// in. Names and reads take nothing.
double operation_weight(const Expr& expr);

}  // namespace gopt
