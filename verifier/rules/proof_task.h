// One rule to be proved, without an open prefix of axes, and what all steps of its verification use.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gopt/verifier.h"
#include "rule_meaning.h"
#include "solver/proof_log.h"
#include "solver/solver.h"

namespace gopt::verifier {

Verification unknown_verdict(const std::string& reason);
Verification refuted_verdict(const std::string& reason, const std::optional<Counterexample>& counterexample);

struct ProofTask {
  const RewriteRule& rule;
  const VerifyOptions& options;
  Solver& solver;
  ProofLog& log;  // written to where the options say so
  SideMeaning left{}, right{};
  bool is_integral = true;   // no variable is of real numbers
  std::set<int> booleans{};  // inputs of truth values

  // What the left side and the condition let us assume.
  Cond context(const Cond& condition) const;
  // No variable is empty but by its own numbers: a condition that leaves only empty tensors is none.
  Cond interior() const;
  Cond some_output_has_elements() const;
  // What the right side requires, and that the outputs' extents are equal, with what each is.
  std::vector<std::pair<std::string, Cond>> requirements() const;
};

// Why the rule is not looked at any further, if it is not: it is malformed, too large to be sampled, ...
std::optional<Verification> objection_to(const RewriteRule& rule);

// Whether a node other than one that moves elements or reads shapes has an integer input.
bool computes_with_integers(const Graph& graph);

}  // namespace gopt::verifier
