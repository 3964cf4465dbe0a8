// What is taken out of a maximum whose branches are products: a power that all of them are, and a sum that multiplies
// all of them and is not negative. maximum.h takes out what is simpler.
#pragma once

#include <optional>

#include "solver/proof_state.h"

namespace gopt::verifier {

// max v^n = (max v)^n, for n odd, or no v negative.
struct RootedMaximum {
  std::vector<Branch> branches;  // over the roots
  int exponent;
};
std::optional<RootedMaximum> rooted(const std::vector<Branch>& branches, ProofState& state);

// max_j (SUM_k a_k) y_j = (SUM_k a_k) max_j y_j, where no a_k is negative and k ranges over the same whatever j is.
struct CommonSum {
  NormalForm sum;
  std::vector<Branch> branches;  // without it
};
std::optional<CommonSum> shared_sum_of(const std::vector<Branch>& branches, ProofState& state);

// Without branches that are never above another whose value does not depend on the place: a padded maximum over what is
// not negative is that over what is padded.
void drop_exceeded(std::vector<Branch>& branches, ProofState& state);

}  // namespace gopt::verifier
