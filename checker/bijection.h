// Whether a change of binders is a bijection of Z^n: it is if it is affine, by a matrix of integers and sizes whose
// determinant is 1 or -1. Sums over all of Z^n may be compared after such a change (check.cc).
#pragma once

#include "polynomial.h"

namespace gopt::checker {

bool is_bijection(const std::vector<std::string>& from, const std::vector<std::string>& to,
                  const PolySubstitution& change);

}  // namespace gopt::checker
