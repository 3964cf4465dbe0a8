// What small random numbers say of a step: they refute what is false there, and what has no proof of its own is
// evaluated.
#pragma once

#include <variant>

#include "evaluate.h"
#include "proof_steps.h"

namespace gopt::checker {

// What has a value at numbers: sides of a rule, sums of terms, factors.
using Evaluable = std::variant<const Expression*, const Form*, const SignedForm*, const LogFactor*>;

// Where both sides divide by what a sum was multiplied by to be without denominators, nothing is claimed where that
// is 0.
enum class WhereZeroDivides { Claimed, NotClaimed };

class SmallNumbers {
 public:
  // Inputs of truth values hold 1 or 0. The same numbers in every process.
  explicit SmallNumbers(std::set<int> booleans) : booleans_(std::move(booleans)) {}

  // Whether both are the same at small sizes, wherever the context holds and the first has a value; false also where
  // they were never to be evaluated.
  bool show_equal(const Condition& context, const Evaluable& a, const Evaluable& b,
                  WhereZeroDivides zero = WhereZeroDivides::Claimed);

  // Throw Fault where the claim is false at small numbers.
  void try_to_refute(const Implication& claim);
  void try_to_refute(const Cancellation& claim);

 private:
  void try_to_refute(const Condition& context, const std::set<std::string>& symbols,
                     const std::function<bool(const Values&, uint64_t)>& claim);
  std::set<int> booleans_;
  std::mt19937_64 random_{20260101};
};

}  // namespace gopt::checker
