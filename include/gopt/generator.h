// Enumerates small operator graphs bottom-up by observational equivalence and pairs the equal ones (docs/generator.md).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gopt/rule.h"

namespace gopt {

struct GeneratorLimits {
  int max_ops = 2;                    // applications that depend on an activation
  int max_variables = 4;
  std::vector<std::string> families;  // empty: all
  uint64_t seed = 1;
};

struct GeneratorStats {
  long candidates = 0, classes = 0, equal_pairs = 0, after_renaming = 0, after_subgraph = 0, after_derivable = 0;
};

struct GeneratedCandidates {
  std::vector<RewriteRule> rules;  // unproved
  GeneratorStats stats;
};

// `accept` decides a candidate as soon as it is found (main passes the verifier), so that what is kept can prune what
// follows; only accepted candidates are returned.
GeneratedCandidates generate_rules(const GeneratorLimits& limits, const std::function<bool(RewriteRule&)>& accept,
                                   const std::function<void(const std::string&)>& progress = {});

}  // namespace gopt
