// A rule's left side as a graph of its own, for numbers in place of its symbols.
#pragma once

#include <optional>
#include <random>

#include "gopt/rule.h"

namespace gopt {

// Random numbers for which the rule's left side is valid and its condition holds; weights become constants, variables
// with a prefix get one. Nothing where no such numbers were drawn.
std::optional<Graph> random_instance(std::mt19937_64& random, const RewriteRule& rule);

}  // namespace gopt
