// Questions about sizes and positions that linear arithmetic settles at once, a product of symbols as a variable of its
// own: most of a proof's. What is left open goes to Z3 (solver.h).
#pragma once

#include <optional>
#include <vector>

#include "normal_form/index_hash.h"

namespace gopt::verifier {

struct LinearAnswer {
  bool is_infeasible = false;
  std::vector<Assignment> points;  // otherwise: where all may hold, which remains to be seen
};

// Whether no values satisfy the hypothesis and one of the alternatives.
LinearAnswer ask_linear(const Cond& hypothesis, const std::vector<Cond>& alternatives);

// coefficient where cond holds, else 0.
struct GuardedCount {
  int64_t coefficient;
  Cond cond;
};
// Which conditions hold where the counts do not sum to 0, one alternative for each way; without what the hypothesis
// states. Nothing where there are too many ways.
std::optional<std::vector<Cond>> where_not_zero(const Cond& hypothesis, const std::vector<GuardedCount>& counts);

}  // namespace gopt::verifier
