// Exact evaluation over the field of 2^61 - 1 elements, where there are only sums, products and quotients; in double
// elsewhere. Inputs are endless tensors of random elements, so that a read that a guard should have kept out shows.
#pragma once

#include "assignments.h"
#include "terms.h"

namespace gopt::checker {

inline constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;

// A value of the field, or a double: which of them depends on what is compared.
struct CheckedValue {
  bool is_exact = false;
  uint64_t residue = 0;
  double real = 0;
};
bool agree(const CheckedValue& a, const CheckedValue& b);  // residues alike; reals within 1e-6 of the larger

struct EvaluationInputs {
  uint64_t seed = 0;
  bool exact = false;
  bool positive = false;                    // reals: all inputs are
  bool zero_has_inverse = true;             // in forms: that of 0 is 0; else there is no value
  const std::set<int>* booleans = nullptr;  // inputs whose elements are 1 or 0
};

// One form or another, by a difference's sign.
struct SignedForm {
  Form difference, where_positive, where_zero, where_negative;
};

// Nothing where the expression has no value there (a divisor that is 0, a root of a negative number). Throws Fault.
std::optional<CheckedValue> evaluate(const Expression& e, Values& values, const EvaluationInputs& inputs);
std::optional<CheckedValue> evaluate(const Form& form, Values& values, const EvaluationInputs& inputs);
std::optional<CheckedValue> evaluate(const SignedForm& form, Values& values, const EvaluationInputs& inputs);
std::optional<CheckedValue> evaluate(const LogFactor& factor, Values& values, const EvaluationInputs& inputs);

}  // namespace gopt::checker
