// Indexes, conditions and expressions of a log, read as values of the operators' definitions, so that they can be
// compared with these.
#pragma once

#include "gopt/expr.h"
#include "sexpr.h"

namespace gopt::checker {

// All throw Fault.
Index index_of(const Sexpr& text);
Cond condition_of(const Sexpr& text);
Expr expression_of(const Sexpr& text);

// What must hold together.
std::vector<Cond> parts_of(const Cond& condition);

}  // namespace gopt::checker
