// How a branch of one maximum may cover a branch of another: for which values of its binders it may take the same
// value. Guesses, that match.cc checks.
#pragma once

#include "binder_change.h"
#include "solver/proof_state.h"

namespace gopt::verifier {

// Values of a branch's binders, some perhaps left open; the branch's guard there; where some open values satisfy it.
struct BinderCover {
  Substitution binders;
  Cond guard, where;
};

// `equations` vanish where the reads of the candidate are those of the branch to cover.
std::vector<BinderCover> possible_covers(const Branch& candidate, const Branch& inner,
                                         const std::vector<Index>& equations, const InnerBinders& inside,
                                         const Cond& context, ProofState& state);

// The branch with binders of its own.
Branch freshen(Branch branch, BinderPool& pool);
// The branches with each binder of a range a*inner in two.
std::vector<Branch> with_ranges_split(std::vector<Branch> branches, const Index& inner, const Cond& context,
                                      ProofState& state);
std::vector<Index> range_factors(const std::vector<Branch>& branches);

}  // namespace gopt::verifier
