// Maxima as normal forms: one maximum of branches, each over a domain of its own. A minimum is the negated maximum of
// the negated, and a minimum with a maximum is the maximum of minima. normalize.h uses these, match.h compares maxima.
#pragma once

#include "solver/proof_state.h"

namespace gopt::verifier {

NormalForm maximum(const NormalForm& a, const NormalForm& b, const Cond& context, ProofState& state);
NormalForm minimum(const NormalForm& a, const NormalForm& b, const Cond& context, ProofState& state);

// Appends the branch, or the branches of the maximum that it consists of.
void add_branch(std::vector<Branch>& branches, Branch branch, const Cond& context, ProofState& state);
// Eliminates binders of the branch; false where it has no values.
bool simplify_branch(Branch& branch, const Cond& context, ProofState& state);
NormalForm maximum_over(std::vector<Branch> branches, ProofState& state);

}  // namespace gopt::verifier
