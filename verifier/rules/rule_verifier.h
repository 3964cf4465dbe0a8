// The verification of one rule that has no open prefix of axes: samples, obligations, the condition that is missing,
// and equality output by output. verify.cc is what calls it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conditions/condition_search.h"
#include "gopt/verifier.h"
#include "samples/sampling.h"
#include "solver/proof_log.h"
#include "solver/solver.h"

namespace gopt::verifier {

Verification unknown_verdict(const std::string& reason);
Verification refuted_verdict(const std::string& reason, const std::optional<Counterexample>& counterexample);

class RuleVerifier {
 public:
  RuleVerifier(const RewriteRule& rule, const VerifyOptions& options);
  Verification run();
  const Solver& solver() const { return solver_; }
  const ProofLog& log() const { return log_; }  // empty unless it is to be kept

 private:
  struct Judgement {
    std::optional<Verification> verdict;           // decided without a proof
    std::optional<Counterexample> counterexample;  // the sides differ there
  };
  Verification decide();
  Verification decide_partial();  // of a rule with regions
  Judgement judge_samples(int count);
  Verification judge_integers();
  Judgement judge_where_right_is_defined();
  std::optional<Verification> require_what_is_missing();
  void prefer_plain_condition();
  std::optional<Verification> judge_left_side();
  std::string why_never_defined();
  std::optional<Verification> judge_condition();
  Verification never_applies(const std::string& why, const std::optional<Counterexample>& example);
  Verification prove_outputs(const std::optional<Verification>& unless_excluded);
  // By value: the samples that it may be one of are drawn anew.
  // The rule differs at the counterexample: a condition that excludes it, and the proof under that, or else refuted.
  Verification prove_conditionally(Counterexample counterexample);
  bool holds_under(DerivedCondition& derived);
  bool holds_in(const Cond& part);
  Verification proved();
  Cond without_implied_parts(const Cond& condition);
  std::vector<std::pair<std::string, Cond>> requirements() const;
  void log_requirements();
  void state_requirements();

  Cond context(const Cond& condition) const;  // what the left side and the condition let us assume
  Cond interior() const;
  Cond some_output_has_elements() const;
  std::optional<Verification> require(const Cond& cond, const std::string& what);
  bool follows(const Cond& given, const Cond& cond);
  // Whether the output is equal wherever the left side is defined and `part` holds; if no proof is found, once more
  // with empty tensors as cases of their own.
  bool prove_output(size_t output, const Cond& part);
  bool prove_output_in(size_t output, const Cond& part);
  size_t divisions_left(size_t output, const Substitution& solved) const;
  bool prove_box(size_t output, const Cond& part, const Box& box, const Substitution& solved);
  bool are_sizes(const std::vector<Index>& factors, const Cond& assumed);  // none is negative
  struct Attempt;
  bool conclude(Attempt& attempt, const Cond& part);
  bool meets_demands(struct ProofState& state, const Cond& part);

  const RewriteRule& rule_;
  VerifyOptions options_;
  ProofLog log_;
  Solver solver_;
  SideMeaning left_, right_;
  bool is_integral_ = true;
  std::set<int> booleans_;  // inputs of truth values
  Cond condition_;
  bool left_demands_more_ = false;
  SamplingResult samples_;
  std::optional<Cond> missing_;  // would let both sides apply partial functions to the same values
  std::string reason_;
  bool left_alone_is_partial_ = false;  // why no proof was found
};

}  // namespace gopt::verifier
