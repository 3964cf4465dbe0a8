// Random testing of a rule at small sizes, 0 included: both sides are evaluated by their definitions at random
// positions, and a difference is replayed through the interpreter before it is believed. Most false candidates end
// here.
#pragma once

#include <optional>

#include "gopt/verifier.h"
#include "rule_meaning.h"

namespace gopt {

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

// Marks of a proved rule, by running: results that change when every operation is rounded to float, and results that
// change when activations hold infinities and NaN.
RuleMarks observed_marks(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right,
                         const Cond& condition, uint64_t seed);

}  // namespace gopt
