// How the subscripts of an output are written in a proof: plain symbols, or an axis of extent a*b as q*b + r, which is
// what grouped convolutions need.
#pragma once

#include <vector>

#include "gopt/type.h"

namespace gopt::verifier {

struct OutputPosition {
  std::vector<Index> subscripts;
  Cond range;  // they lie in the output
  // Where these are not negative the subscripts are any position: two negative factors have a positive product.
  std::vector<Index> factors;
};

// `choice` says which factor of a product axis is the inner one; -1: no axis is split.
OutputPosition position_of(const Shape& shape, size_t output, int choice);
int factor_choices(const Shape& shape);

}  // namespace gopt::verifier
