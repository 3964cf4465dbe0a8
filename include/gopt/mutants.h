// Rules that a model's own operators ask for, found while it is optimized (PET, OSDI'21, section 4): around its dearest
// kernels mutants are enumerated over the operators that are there, those that agree are proved, and what is proved is
// a rule like any other. See docs/generator.md; driver.h for who offers them to a search.
#pragma once

#include <atomic>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "gopt/plan.h"
#include "gopt/verifier.h"

namespace gopt {

struct MutantOptions {
  double seconds = 0;          // for all of it
  int max_ops = 4;             // of a mutant
  size_t nodes = 4;            // of a subgraph
  size_t most_subgraphs = 12;  // of different alphabets
  int threads = 1;
  const std::atomic<bool>* stop = nullptr;  // set: what was found by then is the result
  // What makes a rule of a candidate; what it gives no rule for is not one.
  std::function<Result<FullRule>(const RewriteRule&)> prove = prove_full;
  std::function<void(const std::string&)> progress;
};

struct FoundMutants {
  std::vector<RewriteRule> rules;      // proved, each with its record; none that is known already
  std::vector<std::string> alphabets;  // of the subgraphs, as text that `rulegen --alphabet` takes
  int subgraphs = 0;                   // that were looked at; equal ones are one
  int left_out = 0;                    // that no alphabet could be made of
  long candidates = 0;                 // agreed under random testing, wholly or in part
  long matched = 0;                    // of them those whose left side occurs in the subgraph
  long proved = 0;                     // of those, what is known already too
  double seconds = 0;
};

// Of the plan's graph, the dearest kernels first. `known` are rules that are not to be found again.
FoundMutants find_mutants(const Plan& plan, const std::vector<RewriteRule>& known, const MutantOptions& options);

// As a rules file, with the alphabets as comments.
std::string print_mutants(const FoundMutants& found);

}  // namespace gopt
