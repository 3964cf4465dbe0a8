// From the levels of a family's space to its rules: what follows from rules kept so far is dropped, the rest is made as
// general as it holds, tested afresh and offered, the most general pairs first, in rounds: what may follow from a pair
// of the same round waits for its verdict.
#pragma once

#include <set>

#include "candidate.h"
#include "equations.h"
#include "general_pair.h"
#include "gopt/generator.h"

namespace gopt::generator {

class RuleFinder {
 public:
  // `kept` are the rules of earlier families, and grow.
  RuleFinder(Space& space, const GeneratorLimits& limits, const CandidateFunction& accept, std::deque<KeptRule>& kept,
             GeneratedCandidates& result);

  void take(const Level& level, bool is_final);
  // Drops rules that are instances of rules found after them.
  void drop_instances();

 private:
  struct Candidate {
    std::vector<NodeId> nodes;  // that it was found at
    TermPair pair;              // as an equation
    bool starts_at_node = true;
    std::vector<RewriteRule> rules;
  };
  // A rule of this family with one output, and which of its directions were kept.
  struct Found {
    NodeId node;
    bool starts_at_node;                // else at its representative
    std::map<bool, std::string> names;  // by whether it is the pair reversed
  };
  struct Pending {
    NodeId node;
    int generality;
    friend auto operator<=>(const Pending&, const Pending&) = default;
  };

  std::vector<Pending> pending_nodes(NodeId first, NodeId end);
  void derive_all(std::vector<Pending>& pending, size_t first_rule);
  bool leads_on(NodeId node, size_t first_rule) const;
  bool may_be_left(const Application& application, const Named& equal) const;
  void find_joint_rules(NodeId first, NodeId end);
  std::optional<Candidate> joint_candidate(NodeId node);
  void decide(std::vector<Pending> pending);
  std::optional<Candidate> candidate_at(NodeId node);
  std::optional<RewriteRule> rule_of(const TermPair& pair);
  std::optional<RewriteRule> tested_rule(const TermPair& pair, bool with_prefix);
  void offer(std::vector<Candidate>& candidates);

  Space& space_;
  TermStore& terms_;
  const GeneratorLimits& limits_;
  const CandidateFunction& accept_;
  std::deque<KeptRule>& kept_;
  GeneratedCandidates& result_;
  GeneratorStats& stats_;
  Equations equations_;
  PairGeneralizer generalizer_;
  std::vector<Found> found_;
  std::map<TermPair, bool> offered_;  // whether kept
};

}  // namespace gopt::generator
