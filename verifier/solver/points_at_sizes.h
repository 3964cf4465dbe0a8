// Integers that satisfy conditions with products of symbols: some symbols get small values, so that what is left is
// linear. Most questions that are not entailed are seen not to be by such a point, at a fraction of what Z3 takes.
#pragma once

#include <optional>
#include <vector>

#include "linear_question.h"

namespace gopt::verifier {

// Values of all symbols at which the hypothesis and one of the alternatives hold; nothing where no few tries find any.
std::optional<Assignment> point_at_sizes(const Cond& hypothesis, const std::vector<Cond>& alternatives);

}  // namespace gopt::verifier
