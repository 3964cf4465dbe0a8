// Pairs of terms that agree on a part of their elements, such as a convolution with and without what padding spoils at
// the border: candidates for partial equivalence (PET, OSDI'21, section 4). Their region is for the verifier to find.
#pragma once

#include "gopt/generator.h"
#include "space.h"

namespace gopt::generator {

// Pairs of representatives of one type that agree on a quarter of the elements or more, and not on all, in both
// assignments of sizes; each from its dearer side. Of many that agree with each other, each is paired with the
// cheapest. Once `is_over` says so, where there is one, what was found by then is all.
std::vector<RewriteRule> find_partial_pairs(Space& space, const GeneratorLimits& limits,
                                            const std::function<bool()>& is_over);

}  // namespace gopt::generator
