// Enumerates small operator graphs bottom-up by observational equivalence and pairs the equal ones (docs/generator.md).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gopt/rule.h"

namespace gopt {

struct GeneratorLimits {
  int max_ops = 2;  // applications that depend on an activation
  int max_variables = 4;
  std::vector<std::string> families;  // empty: all
  uint64_t seed = 1;
  std::string alphabet;       // text of the families (docs/generator.md); empty: the built-in one
  std::string alphabet_name;  // named in errors
};

struct GeneratorStats {
  long candidates = 0, classes = 0, equal_pairs = 0, after_renaming = 0, after_subgraph = 0, after_derivable = 0;
};

struct GeneratedCandidates {
  std::vector<RewriteRule> rules;  // as `accept` left them
  GeneratorStats stats;
};

// Decides a candidate as soon as it is found (main passes the verifier), so that what is kept can prune what follows.
// May complete it: condition, marks, proof.
using CandidateFunction = std::function<bool(RewriteRule&)>;

// Only accepted candidates are returned; the same ones for the same limits and answers. Errors: an unknown family, a
// malformed alphabet ("FILE:12: ...").
Result<GeneratedCandidates> generate_rules(const GeneratorLimits& limits, const CandidateFunction& accept,
                                           const std::function<void(const std::string&)>& progress = {});

}  // namespace gopt
