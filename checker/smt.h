// The checker's own SMT-LIB text of what the log claims to be settled.
#pragma once

#include <utility>

#include "terms.h"

namespace gopt::checker {

using Counts = std::vector<std::pair<int64_t, Condition>>;

// Each is unsatisfiable where the claim holds: that the context implies the goal; that the counts sum to 0 wherever the
// context holds; that a sum of terms without binders is 0 there, whatever real numbers its reads and functions are.
std::string smt_of_implication(const Condition& context, const Condition& goal);
std::string smt_of_cancellation(const Condition& context, const Counts& counts);
std::string smt_of_zero(const Condition& context, const Form& form);

}  // namespace gopt::checker
