// Integers of 64 bits where doubles, or a sign, would make other numbers of them.
#pragma once

#include <vector>

#include "gopt/expr.h"

namespace gopt {

// Whether what the expression computes in 64 bits has no sign: its comparisons, quotients and numbers differ. `types`:
// of the inputs that it reads.
bool is_unsigned(const Expr& e, const std::vector<ElementType>& types);

// Whether some of these are integers of 64 bits that no double holds for certain: beyond 2^53.
bool has_wide_integers(const Tensor& tensor);

}  // namespace gopt
