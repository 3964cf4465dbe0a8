// Which integers of an expression are of 64 bits without a sign: their comparisons, quotients and numbers differ.
#pragma once

#include <vector>

#include "gopt/expr.h"

namespace gopt::ir {

// Whether what the expression computes in 64 bits has no sign. `types`: of the inputs that it reads.
bool is_unsigned(const Expr& e, const std::vector<ElementType>& types);

}  // namespace gopt::ir
