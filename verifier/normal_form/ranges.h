// Bounds of what a form can be, by interval arithmetic: a sine is at most 1, a quotient by 1 + e^x between 0 and 1. So
// a comparison is decided, and a maximum loses the branches that never count, whatever the inputs are.
#pragma once

#include <optional>

#include "solver/proof_state.h"

namespace gopt::verifier {

struct Bound {
  Rational value;
  bool is_strict = false;  // no value is equal to it
};

// Without a bound where none was seen.
struct ValueRange {
  std::optional<Bound> low, high;

  bool is_nonnegative() const { return low && low->value.numerator() >= 0; }
  bool is_positive() const { return is_nonnegative() && (low->is_strict || !low->value.is_zero()); }
  bool is_negative() const {
    return high && (high->value.numerator() < 0 || (high->value.is_zero() && high->is_strict));
  }
};

ValueRange range_of(const NormalForm& form, const Cond& context, ProofState& state);
// With its exponent.
ValueRange range_of(const Factor& factor, const Cond& context, ProofState& state);

}  // namespace gopt::verifier
