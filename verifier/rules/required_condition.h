// The condition of a rule as its sides ask for it.
#pragma once

#include "proof_task.h"
#include "samples/sampling.h"

namespace gopt::verifier {

struct RequiredCondition {
  Cond condition;
  std::optional<Verification> verdict;  // where there is none under which the rule could hold
};

// The condition, and what the right side needs and the left does not give.
RequiredCondition require_what_is_missing(ProofTask& task, Cond condition, const SamplingResult& samples);

// Requirements that round say what an atom of the language may say more plainly: (a+b)//2 == a is a == b or
// a == b + 1. The condition, or the plainer one where the solver agrees that it is the same.
Cond in_plainer_words(ProofTask& task, const Cond& condition);

// Whether `cond` holds wherever `given` does, also where divisions within divisions must be one first.
bool follows(ProofTask& task, const Cond& given, const Cond& cond);

}  // namespace gopt::verifier
