// The rules of a search, by what their left sides need of a graph. Of thousands of rules few have all of their
// operators in a graph, at their ranks: only those are compiled, when they first are met, and walked.
#pragma once

#include <functional>
#include <memory>

#include "gopt/optimizer.h"
#include "matching/match.h"

namespace gopt::optimizer {

class RulePatterns;

// Operators, by the number of axes of their first output; -1: unknown.
struct RankedOperators {
  OperatorSet operators;
  std::function<bool(OpKind, int rank)> has;
};

class PatternSet {
 public:
  // Rules that the options leave on. Left out are rules that cannot be matched (see compile_rule). `max_rank`: the most
  // axes that a value has. Errors: a name in the options that no rule has.
  static Result<PatternSet> make(const std::vector<RewriteRule>& rules, const SearchOptions& options, int max_rank);
  PatternSet(PatternSet&&) noexcept;
  PatternSet& operator=(PatternSet&&) noexcept;
  ~PatternSet();

  bool empty() const { return rules_.empty(); }
  // Longest path of a left side, in nodes.
  int depth() const { return depth_; }
  // Patterns whose operators the graph all has, at their ranks, in the order of the rules. May be called by several
  // threads; the patterns live as long as the set.
  std::vector<const Pattern*> patterns_for(const MatchIndex& index) const;
  std::vector<const Pattern*> patterns_for(const RankedOperators& there) const;
  // Of rules that could not be compiled, so far.
  std::vector<std::string> notes() const;

 private:
  PatternSet();
  struct Rule {
    OperatorSet operators;  // of its left side
    std::unique_ptr<RulePatterns> patterns;
  };
  std::vector<Rule> rules_;
  int depth_ = 1;
};

// The most axes that a value of the graph has.
int max_rank(const Graph& graph);

}  // namespace gopt::optimizer
