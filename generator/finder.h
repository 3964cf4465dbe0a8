// From the levels of a family's space to its rules: what follows from rules kept so far is dropped, the rest is made as
// general as it holds, tested afresh and offered, the most general pairs first, in rounds: what may follow from a pair
// of the same round waits for its verdict. Matching and testing are shared by threads and ranks, every rank decides.
#pragma once

#include <set>
#include <span>

#include "candidate.h"
#include "equations.h"
#include "general_pair.h"
#include "gopt/generator.h"

namespace gopt::generator {

class RuleFinder {
 public:
  // `kept` are the rules of earlier families, and grow.
  RuleFinder(Space& space, const GeneratorLimits& limits, const Team& team, const CandidateFunction& accept,
             std::deque<KeptRule>& kept, GeneratedCandidates& result);

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
  struct Pending {
    NodeId node;
    int generality;
    friend auto operator<=>(const Pending&, const Pending&) = default;
  };
  enum class Form : char { None, Plain, UnderLeadingAxes };
  // A pair as it would be offered, and what trials say.
  struct Proposal {
    std::vector<NodeId> nodes;
    TermPair pair;  // as an equation, with one output
    std::vector<TermPair> wanted;
    TermPair key;
    bool is_tested = false;
    Form form = Form::None, back_form = Form::None;  // of the first wanted direction and of the second
  };
  struct Round {
    size_t mark;  // rules from there on are candidates of this round
    std::vector<Candidate> candidates;
    std::vector<Pending> deferred;
    std::set<NodeId> open;  // roots of what is offered
  };
  // A rule of this family with one output, and which of its directions were kept.
  struct Found {
    NodeId node;
    bool starts_at_node;                // else at its representative
    std::map<bool, std::string> names;  // by whether it is the pair reversed
  };

  std::vector<Pending> pending_nodes(NodeId first, NodeId end);
  void derive_all(std::vector<Pending>& pending, size_t first_rule);
  bool leads_on(NodeId node, size_t first_rule) const;
  bool may_be_left(const Application& application, const Named& equal) const;
  void find_joint_rules(NodeId first, NodeId end);
  std::vector<Candidate> joint_candidates(NodeId first, NodeId end);
  std::optional<Proposal> joint_proposal(NodeId node);
  void decide(std::vector<Pending> pending);
  void decide_some(std::span<const Pending> pending, Round& round);
  std::optional<Proposal> proposal_at(NodeId node);
  std::optional<Candidate> candidate_from(NodeId node, Proposal& proposal);
  void test(std::vector<Proposal*> proposals) const;
  void test(Proposal& proposal) const;
  Form tested_form(const TermPair& pair) const;
  std::optional<RewriteRule> tested_rule(const TermPair& pair, Form form) const;
  std::optional<RewriteRule> written_rule(const TermPair& pair, Form form) const;
  void offer(std::vector<Candidate>& candidates);

  Space& space_;
  TermStore& terms_;
  const GeneratorLimits& limits_;
  const Team team_;
  const CandidateFunction& accept_;
  std::deque<KeptRule>& kept_;
  GeneratedCandidates& result_;
  GeneratorStats& stats_;
  Equations equations_;
  PairGeneralizer generalizer_;
  mutable TapeCache tapes_;  // of trials
  std::vector<Found> found_;
  std::map<TermPair, bool> offered_;  // whether kept
};

}  // namespace gopt::generator
