// Whether the cases of a log leave out no sizes at which the rule applies: by what they say, where each output has a
// step for all sizes; else by looking at sizes that are drawn.
#pragma once

#include <optional>

#include "case_binding.h"

namespace gopt::checker {

struct Coverage {
  int sizes_tried = 0;                 // 0: nothing had to be drawn
  std::optional<std::string> missing;  // what is left out, and at which sizes
};
// Cases of one rule: below no leading axes and one, or of ranks that stand for all, each of which has to be shown; or
// the rule as it stands and with extents that are 1.
Coverage coverage_of(const RewriteRule& rule, const std::vector<BoundCase>& cases);

}  // namespace gopt::checker
