// A sum of terms by the sign of a difference that a maximum or a comparison in it rests on, inside functions too: three
// sums, in which what that sign decides is decided. match.h tries it where nothing else helps.
#pragma once

#include <optional>

#include "solver/proof_state.h"

namespace gopt::verifier {

struct SignCases {
  NormalForm difference;
  NormalForm where_positive, where_zero, where_negative;  // what the sum is where the difference is that
};

// The cases of the first difference that is the same for all values of the sum's binders; of those alone that are
// inside functions and divisors, where that is asked for.
std::optional<SignCases> sign_cases(const NormalForm& form, const Cond& context, ProofState& state,
                                    bool inside_alone = false);

}  // namespace gopt::verifier
