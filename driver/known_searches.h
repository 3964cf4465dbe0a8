// What searches did, kept in the file of kernel times: the next run of the same graph, rules and options does it again
// without searching. Else it would search by other costs than the first, since that has timed kernels as it went, end
// elsewhere and have more to time.
#pragma once

#include "gopt/driver.h"
#include "gopt/kernel_costs.h"
#include "gopt/optimizer.h"

namespace gopt::driver {

// All that a search's end depends on but the times: the graph with all of its weights' numbers, the target, what costs
// are compared, the rules that are offered, the options, the program.
std::string search_signature(const Graph& graph, const Target& target, CostModel costs,
                             const std::vector<RewriteRule>& rules, const SearchOptions& options);

struct KnownSearch {
  SearchTrail trail;
  std::vector<std::string> rules;  // names of those that it applied
  std::string result;              // graph_signature() of its end
};
// As one line of text, and back; nothing of a text that is none.
std::string to_text(const KnownSearch& search);
std::optional<KnownSearch> parse_known_search(const std::string& text);

}  // namespace gopt::driver
