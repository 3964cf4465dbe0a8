// Integers where doubles, a sign, or fewer bits than are computed in would make other numbers of them.
#pragma once

#include <vector>

#include "gopt/expr.h"

namespace gopt {

// Whether what the expression computes in 64 bits has no sign: its comparisons, quotients and numbers differ. `types`:
// of the inputs that it reads.
bool is_unsigned(const Expr& e, const std::vector<ElementType>& types);

// Integers without a sign, of any number of bits.
bool has_no_sign(ElementType type);

// Whether the expression, computed in 64 bits, may be a number that this integer type of fewer bits does not hold.
bool may_leave(const Expr& e, ElementType type);

// Whether some of these are integers of 64 bits that no double holds for certain: beyond 2^53.
bool has_wide_integers(const Tensor& tensor);

}  // namespace gopt
