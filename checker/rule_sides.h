// A side of a rule by the operators' definitions, put together here and not by the prover.
#pragma once

#include <set>

#include "gopt/definition.h"
#include "gopt/rule.h"

namespace gopt::checker {

struct Side {
  std::vector<TensorExpr> outputs;
  std::vector<Requirement> requirements;
};
// With these in place of symbols: the side is another one where an extent is 1. Errors: it is not defined for these.
Result<Side> side_by_definitions(const Graph& side, const Substitution& sizes);

// Of the variables' types and the left side's attributes.
std::set<AtomId> symbols_of(const RewriteRule& rule);
// Extents, and the symbols in them, are not negative.
Cond domain_of(const RewriteRule& rule);

}  // namespace gopt::checker
