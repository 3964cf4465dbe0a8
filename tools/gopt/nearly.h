// `gopt rules --nearly MODEL`: which rules nearly match a model, and what stands in their way.
#pragma once

#include <string>
#include <vector>

#include "gopt/rule.h"

namespace gopt::cli {

struct NearlyOptions {
  std::string model, json;
  std::vector<std::string> shapes;
  int least_nodes = 2;
  bool lists_all = false, force = false;
};

// Prints how many rules match and nearly match, by obstacle and by family; each of them where all are wanted, and into
// the JSON file. Errors: a model that cannot be read, a file that cannot be written.
Status print_near_misses(const std::vector<RewriteRule>& rules, const NearlyOptions& options);

}  // namespace gopt::cli
