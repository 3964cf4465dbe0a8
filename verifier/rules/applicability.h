// Whether there are sizes at which a rule may be applied: one that never applies says nothing.
#pragma once

#include "proof_task.h"
#include "samples/sampling.h"

namespace gopt::verifier {

// Each returns the verdict where it is that, or that it is not known; nothing where the rule may be applied.

// Of a rule whose left side no sample was found for: that it never applies is said where it is shown.
std::optional<Verification> judge_left_side(ProofTask& task, const Cond& condition, const SamplingResult& samples);

// A rule that says nothing but of empty tensors is refuted, where that is shown. One whose own condition makes a
// variable empty may have outputs that are not: a product over nothing is 0.
std::optional<Verification> judge_condition(ProofTask& task, const Cond& condition, const SamplingResult& samples);

}  // namespace gopt::verifier
