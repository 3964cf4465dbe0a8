// What a search did, written down as matches of rules, and the same done again.
#pragma once

#include "matching/rewrite.h"
#include "search/search.h"

namespace gopt::optimizer {

// Adds to what a search found that these bindings of `before` were rewritten together. Precondition: they can be.
void append_rewrite(const PatternSet& patterns, const Graph& before, double before_ms,
                    const std::vector<Binding>& bindings, double after_ms, Found& found);

// In place of a search of the graph; of its cost what the trail says. What is found has no trail where a step does not
// fit.
Found follow_steps(const Graph& graph, const PatternSet& patterns, const TrailWindow& window);

}  // namespace gopt::optimizer
