// Guards inside an expression: which may be decided outside of it, and what remains once one is decided.
#pragma once

#include "gopt/expr.h"

namespace gopt::verifier {

// Guards under functions, maxima and reciprocals moved outward, as far as they do not depend on binders inside.
Expr hoist_selects(const Expr& expr);

// The guarded parts of a reduction's body that hold no select any more, except over binders of inner reductions.
struct GuardedPart {
  Cond guard;
  Expr value;
};
std::vector<GuardedPart> guarded_parts(const Expr& body, const Cond& guard);

}  // namespace gopt::verifier
