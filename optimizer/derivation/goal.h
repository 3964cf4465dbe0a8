// A rule as something to be derived: its sides over symbols that are as few as its condition allows, and what is known
// of these.
#pragma once

#include "gopt/rule.h"
#include "matching/facts.h"

namespace gopt::optimizer {

struct Goal {
  RewriteRule rule;           // without leading axes; symbols that must be equal are one
  std::vector<bool> is_open;  // by variable: the goal leaves leading axes open
  Facts facts;
};

// Errors: a partial rule, or sides that are not defined once sizes are equal that must be.
Result<Goal> read_goal(const RewriteRule& rule);

}  // namespace gopt::optimizer
