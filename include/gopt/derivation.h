// Whether a rule follows from others: equality saturation over symbolic sizes, within limits that are counts, never
// seconds, so that the answer is the same everywhere. What follows comes with its derivation: a chain of graphs from
// the left side to the right, each made from the one before by one rule, in one of its directions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gopt/rule.h"

namespace gopt {

struct DerivationLimits {
  int iterations = 12;
  size_t nodes = 3000;        // applications in the e-graph
  size_t matches = 200;       // of a rule in one iteration; one that has more rests, and may then have twice as many
  int joined_iterations = 2;  // in which rules with several roots are applied
  size_t steps = 200;         // a longer derivation is not written out
  // Weight variables match activations too: over the reals, a kind says where a rule pays, not where it holds.
  bool any_kind = false;
};

// Steps that need no rule: a node that copies its input (Identity) is dropped or put in, and an application to numbers
// is replaced by its value or the other way round.
inline constexpr const char *kCopyStep = "(copy)", *kArithmeticStep = "(arithmetic)";

struct DerivationStep {
  std::string rule;  // its name, or one of those
  bool is_reversed = false;
  Graph graph;  // after the step
};

struct Derivation {
  enum class Verdict {
    Follows,
    Saturated,     // nothing new follows in the directions that are used, and the sides are not joined
    LimitReached,  // `reason` says which
    NotRead,       // the goal's sides cannot be written over symbolic sizes; `reason` says why
  };
  Verdict verdict = Verdict::NotRead;
  std::string reason;
  // The goal as it was derived: without leading axes (every step holds under any where the goal leaves them open), and
  // with sizes equal that its condition makes equal.
  RewriteRule goal;
  std::vector<DerivationStep> steps;  // where it follows: from goal.left to goal.right; empty if longer than the limit
  size_t step_count = 0;
  std::vector<size_t> used;  // positions of the rules of the derivation, in order
  int iterations = 0;
  size_t nodes = 0, classes = 0;
};
std::string to_string(Derivation::Verdict verdict);

// Rules made ready: both directions, and any number of leading axes up to `max_prefix`.
class DerivationRules {
 public:
  explicit DerivationRules(std::vector<RewriteRule> rules, int max_prefix = 4);
  const std::vector<RewriteRule>& rules() const;
  // Whether the right side may be replaced by the left: it binds all that the left side needs, and the left side is
  // defined wherever the right is.
  bool is_reversible(size_t rule) const;

  struct Compiled;
  const Compiled& compiled() const { return *compiled_; }

 private:
  std::shared_ptr<const Compiled> compiled_;
};

// Derives the goal by the rules whose position `allowed` holds true for (all, where it is empty). May run in parallel.
// "Follows" says: wherever both sides of the goal are defined and its condition holds, they are equal if the rules are.
Derivation derive_rule(const RewriteRule& goal, const DerivationRules& rules, const std::vector<bool>& allowed,
                       const DerivationLimits& limits = {});

}  // namespace gopt
