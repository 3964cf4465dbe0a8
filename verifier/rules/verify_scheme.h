// Rules at any rank: the instances that stand for all others are proved, one by one (docs/verifier.md, "Lists of
// axes").
#pragma once

#include <optional>
#include <vector>

#include "gopt/verifier.h"

namespace gopt::verifier {

class Solver;

// What solvers settled becomes the record of a proved rule.
void attach_proof(Verification& v, const std::vector<const Solver*>& solvers);
// What stands behind another proof becomes part of this one.
void add_proof(Verification& v, const Verification& other);

// The type that stands for f32 while a rule is proved: f32, unless it is stated for others alone.
ElementType first_real_type(const RewriteRule& rule);
// Which other types may stand there, of a plain rule that is proved for the first: written into the verification.
void find_real_types(const RewriteRule& rule, const VerifyOptions& options, Verification& v);

Verification verify_scheme(const RewriteRule& rule, const VerifyOptions& options);

// Where sides of an instance of random ranks, permutations and subsets differ, or the left side alone is defined.
struct RefutedInstance {
  std::string ranks;
  Counterexample counterexample;
};
std::optional<RefutedInstance> sample_scheme(const RewriteRule& rule, int samples, uint64_t seed);

}  // namespace gopt::verifier
