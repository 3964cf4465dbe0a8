// The verification of one rule that has no open prefix of axes: samples, obligations, the condition that is missing,
// and equality output by output. verify.cc is what calls it.
#pragma once

#include <optional>

#include "conditions/condition_search.h"
#include "output_proof.h"
#include "proof_task.h"
#include "samples/sampling.h"

namespace gopt::verifier {

class RuleVerifier {
 public:
  RuleVerifier(const RewriteRule& rule, const VerifyOptions& options, const ProofLimits& limits = {});
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
  std::optional<Counterexample> differs_in_region(size_t output) const;
  Verification judge_integers();
  Judgement judge_samples(int count);
  Judgement judge_where_right_is_defined();
  std::optional<Verification> require_what_is_missing();
  Verification prove_outputs(const std::optional<Verification>& unless_excluded);
  Verification without_a_proof(size_t output);
  // By value: the samples that it may be one of are drawn anew.
  // The rule differs at the counterexample: a condition that excludes it, and the proof under that, or else refuted.
  Verification prove_conditionally(Counterexample counterexample);
  bool holds_under(DerivedCondition& derived);
  bool holds_in(const Cond& part);

  const RewriteRule& rule_;
  VerifyOptions options_;
  ProofLog log_;
  Solver solver_;
  ProofTask task_;
  OutputProver outputs_;
  Cond condition_;
  SamplingResult samples_;
};

}  // namespace gopt::verifier
