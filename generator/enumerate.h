// Builds terms bottom-up: every operator on every combination of representatives, up to the names of variables. Whoever
// takes a term says whether it represents a new class; only those are built upon.
#pragma once

#include <functional>

#include "term.h"

namespace gopt::generator {

struct EnumerationLimits {
  int max_ops, max_weight_ops, max_variables;
};

// Terms in order of size. `take` returns whether the term represents its class; `level_done` is told the sizes.
void enumerate_terms(TermStore& terms, const EnumerationLimits& limits, const std::function<bool(TermId)>& take,
                     const std::function<void(int activation_ops, int weight_ops, size_t representatives)>& level_done);

}  // namespace gopt::generator
