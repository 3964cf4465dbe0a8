// Kernels of bf16x3 that compute in floats after all, where sums of two bfloat16 lose more over a whole network than
// that precision is said to.
#pragma once

#include <functional>

#include "gopt/plan.h"
#include "gopt/result.h"

namespace gopt::driver {

constexpr double kMostLost = 2e-5;  // of the largest result

// The plan whose kernels with these results, as Target::in_fp32 has them, compute in floats. It need not outlive the
// next call.
using PlanWith = std::function<Result<const Plan*>(const std::set<ValueKey>& in_fp32)>;
// Plans until at most `most` kernels are of two terms, those that take longest. Returns how many were named to compute
// in floats. Errors: those of planning.
Result<size_t> leave_two_terms(const PlanWith& plan_with, size_t most);
// Of the plan.
size_t kernels_of_two_terms(const Plan& plan);

}  // namespace gopt::driver
