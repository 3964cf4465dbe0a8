// A piecewise polynomial by cells: each maximum and comparison is settled one way, and what is left is a polynomial,
// which is 0 or whose cell is empty: linear arithmetic tells for most (linear_system.h), the solver for the others.
// Cells are given up as soon as the signs so far leave nothing of them. Many small questions instead of one that
// non-linear solvers take minutes for.
#pragma once

#include <functional>

#include "solver/solver.h"

namespace gopt::verifier {

// `value` is positive, or at least 0.
struct RealSign {
  RealExprPtr value;
  bool is_strict;
};

// Whether nothing satisfies the signs where the value is not 0.
using CellQuestion = std::function<bool(const std::vector<RealSign>& cell, const RealExprPtr& value)>;

// Whether the value is 0 in every cell where the given signs hold, which have no cases. False also where there are too
// many cells. The context is what `is_empty` knows beside the cell: where it is possible, a point at which the value is
// not 0 is an answer. `work` is told the units of what is done (solver.h).
bool is_zero_in_cells(const RealExprPtr& value, const std::vector<RealSign>& given, const CellQuestion& is_empty,
                      const std::function<bool()>& is_context_possible, const std::function<void(uint64_t)>& work,
                      const CellLimits& limits);

}  // namespace gopt::verifier
