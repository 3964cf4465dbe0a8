// One case of a log against the rule: which of its steps are about this rule, and under which sizes.
#pragma once

#include "log_steps.h"
#include "rule_sides.h"

namespace gopt::checker {

// A step that says of an output of the rule what the definitions say. It covers the sizes at which `sizes` hold, which
// are what it supposes beyond what the rule does.
struct BoundOutput {
  size_t output = 0, box = 0;
  std::vector<Cond> sizes;
  Substitution values;
  bool holds_everywhere() const { return sizes.empty() && values.empty(); }
};
// What the right side requires, or that extents agree; covered where one of the alternatives holds.
struct BoundRequirement {
  std::string what;
  std::vector<std::vector<Cond>> under;
  bool holds_everywhere() const;
};

struct BoundCase {
  RewriteRule rule;  // below its leading axes
  Substitution ones;
  bool has_broadcast = false;  // of extents that the rule does not say to be equal: another case may be where one is 1
  std::vector<BoundOutput> outputs;
  std::vector<BoundRequirement> requirements;
};

// Throws Fault: a step that is not about the rule, or supposes more of a position than that it lies in the output.
BoundCase bind_case(const LogCase& logged, const RewriteRule& rule);

}  // namespace gopt::checker
