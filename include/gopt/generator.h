// Enumerates small operator graphs bottom-up by observational equivalence and pairs the equal ones (docs/generator.md).
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "gopt/ranks.h"
#include "gopt/rule.h"

namespace gopt {

// What is dropped of the equal pairs; each level drops what those before it do.
enum class Pruning {
  None,
  Renaming,   // pairs that differ by the names of variables and the order of commutative inputs
  Subgraph,   // instances of pairs in which what both sides share is a variable
  Derivable,  // pairs that follow from rules kept so far
};

struct GeneratorLimits {
  int max_ops = 2;  // applications that depend on an activation
  int max_variables = 4;
  int threads = 1;         // of each rank; changes nothing but the time
  Ranks* ranks = nullptr;  // processes that share the work, which change nothing else either; null: this one alone
  Pruning pruning = Pruning::Derivable;
  std::vector<std::string> families;  // empty: all
  uint64_t seed = 1;
  std::string alphabet;       // text of the families (docs/generator.md); empty: the built-in one
  std::string alphabet_name;  // named in errors
  // Of one process alone: each family ends after so many seconds, with what it has found by then; 0: with all of it.
  // Where pairs that agree in part are looked for, too, they have a third of that.
  double seconds_a_family = 0;
  const std::atomic<bool>* stop = nullptr;  // set: ends in the same way
};

struct GeneratorStats {
  long candidates = 0, classes = 0;
  long equal_pairs = 0;  // under every naming of the variables
  long after_renaming = 0;
  long after_derivable = 0;  // left when rules of smaller terms have been tried
  long after_subgraph = 0;   // and instances of more general pairs are gone
  long false_pairs = 0;      // of these, told apart by fresh sizes and values
  long offered = 0;          // rules; a pair may give one in each direction
};

struct GeneratedCandidates {
  std::vector<RewriteRule> rules;  // as `accept` left them
  // Pairs that agree on a part of their elements, of the families that look for such: candidates, each without the
  // region that prove_partial() finds (verifier.h).
  std::vector<RewriteRule> partial;
  GeneratorStats stats;
};

// Decides candidates as soon as they are found (main passes the verifier), so that what is kept can prune what follows:
// which of them are rules. Candidates of one call do not depend on each other. May complete them: condition, marks,
// proof.
using CandidateFunction = std::function<std::vector<bool>(std::vector<RewriteRule>&)>;

// What is under way, for whoever waits.
struct GeneratorProgress {
  std::string line;
  bool is_stage_done = false;  // else a step of one, with the seconds that it still takes
};

// Only accepted candidates are returned; the same ones for the same limits and answers. Errors: an unknown family, a
// malformed alphabet ("FILE:12: ...").
Result<GeneratedCandidates> generate_rules(const GeneratorLimits& limits, const CandidateFunction& accept,
                                           const std::function<void(const GeneratorProgress&)>& progress = {});

}  // namespace gopt
