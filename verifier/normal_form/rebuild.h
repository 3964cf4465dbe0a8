// A form written anew from the inside out, with something else in place of some of its factors.
#pragma once

#include "solver/proof_state.h"

namespace gopt::verifier {

// The product of as many forms; of inverses where the exponent is negative.
NormalForm powered(const NormalForm& base, int exponent, const Cond& context, ProofState& state);

// The form with `value` in place of the element of an input whose key is this.
NormalForm with_element(const NormalForm& form, const std::string& element, const NormalForm& value,
                        const Cond& context, ProofState& state);

}  // namespace gopt::verifier
