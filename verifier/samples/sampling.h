// Random testing of a rule at small sizes, 0 included: both sides are evaluated by their definitions at random
// positions, and a difference is replayed through the interpreter before it is believed. Most false candidates end
// here.
#pragma once

#include <optional>

#include "gopt/verifier.h"
#include "rules/rule_meaning.h"

namespace gopt::verifier {

struct SamplingResult {
  int left_valid = 0;  // samples on which the left side is defined
  int both_valid = 0;  // of them, those on which the right side is too and has the same shapes
  bool left_is_finite_somewhere = false;
  bool has_elements = false;                      // some sample had output elements
  std::optional<Counterexample> difference;       // of values, confirmed
  std::optional<Counterexample> right_undefined;  // the right side is not defined, or has another shape
  std::optional<Counterexample> never_finite;     // the left side there, if it never is finite
};

// Samples sizes that satisfy `condition` and the left side's requirements.
SamplingResult sample_rule(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right,
                           const Cond& condition, int samples, uint64_t seed);

// The same where nothing was found and nothing was proved: larger sizes, values near the constants that occur in the
// rule and powers of ten, and the given assignments, as far as they speak of its symbols. What is only rounding is no
// difference. Where `left_may_fail`, so is a place where the left side alone has no value, unless it may have
// overflowed.
std::optional<Counterexample> sample_far(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right,
                                         const Cond& condition, const std::vector<Environment>& sizes, int samples,
                                         uint64_t seed, bool left_may_fail);

// What running a proved rule shows: results that change when every operation is rounded to float, and results that
// change when activations hold infinities and NaN. float_marks.h looks at range and digits.
struct ObservedMarks {
  RuleMarks marks;
  std::vector<MarkExample> examples;
};
ObservedMarks observed_marks(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right,
                             const Cond& condition, uint64_t seed);

}  // namespace gopt::verifier
