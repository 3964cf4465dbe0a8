// An index that is not read may lie outside: a side that gathers at it is undefined where the other is not. Which
// elements of its integer inputs a side gathers at, as far as that decides whether the right side adds any.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gopt/rule.h"

namespace gopt::verifier {

// The variable some of whose elements the right side may gather at and the left side does not; empty where there is
// none. Where indices are variables as they are, or moved without loss, all elements are gathered at.
std::string gathered_on_right_alone(const RewriteRule& rule);

// Extents of the axes that are gathered at elements of each variable: within all of them, counted from either end, its
// elements are in bounds.
std::map<std::string, std::vector<Index>> index_extents(const RewriteRule& rule);

// The largest number of places that all of the extents have at these sizes; 0 where none is known.
int64_t places_within(const std::vector<Index>& extents, const Environment& sizes);

}  // namespace gopt::verifier
