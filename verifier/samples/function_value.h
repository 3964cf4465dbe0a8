// Named functions at numbers of a floating-point type, by the function table.
#pragma once

#include <cmath>

#include "gopt/expr.h"

namespace gopt::verifier {

// `y` is not looked at where the function has one argument.
template <class T>
T function_value(Function function, T x, T y) {
  (void)y;
  switch (function) {
#define GOPT_FUNCTION(name, arity, text, numeric) \
  case Function::name:                            \
    return numeric;
#include "gopt/function_table.def"
#undef GOPT_FUNCTION
  }
  return std::nan("");
}

}  // namespace gopt::verifier
