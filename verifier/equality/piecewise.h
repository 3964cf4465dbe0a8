// Maxima and comparisons by cases: where no binder stands in the way, the sum of terms is a piecewise polynomial of
// real variables (reads and other factors, by their keys), and the solver is asked whether it is 0.
#pragma once

#include "solver/proof_state.h"

namespace gopt::verifier {

// False also where there is nothing to decide by cases.
bool is_zero_piecewise(const NormalForm& terms, const Cond& context, ProofState& state);

}  // namespace gopt::verifier
