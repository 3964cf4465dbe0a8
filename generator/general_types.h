// Makes the types of a pair's variables as general as its operators allow: a pair found with x and y of one shape may
// hold for two shapes. Extents that attributes speak of, and constant ones, stay as they are.
#pragma once

#include "candidate.h"

namespace gopt::generator {

// Nothing where the types are general already, or what is needed cannot be told. Whether the pair still holds is for
// the caller to test.
std::optional<TermPair> with_general_types(TermStore& terms, const TermPair& pair);

}  // namespace gopt::generator
