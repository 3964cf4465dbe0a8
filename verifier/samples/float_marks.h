// What floating-point arithmetic makes of a proved rule, seen by running both sides in float32 and float16: whether the
// right side overflows, vanishes or loses all digits where the left side does not, and whether the left side is there
// for its rounding (docs/floats.md).
#pragma once

#include "sampling.h"

namespace gopt::verifier {

// Adds to what was observed. Each type is tried with `samples` inputs; with a quarter of them where both sides round
// alike.
void observe_range(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right, const Cond& condition,
                   int samples, uint64_t seed, ObservedMarks& observed);

}  // namespace gopt::verifier
