// Index expressions and conditions compiled for the evaluator: symbols are slots of a vector, and what runs along a
// block of elements ("lanes") is told apart from what does not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "evaluator.h"

namespace gopt::ir {

class EvaluationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using Slots = std::vector<int64_t>;  // values of symbols, by position

class CompiledIndex;
struct CompiledAtom {
  AtomKind kind;
  int slot = 0;
  std::shared_ptr<const CompiledIndex> numerator, denominator;
  int input = 0;
  std::vector<CompiledIndex> subscripts;
  bool uses_lane = false;
};
struct CompiledTerm {
  int64_t coefficient;
  std::vector<CompiledAtom> atoms;
  int lane_power = 0;        // plain occurrences of the lane symbol
  bool lane_inside = false;  // the lane symbol below a division or load
};

// Terms over slots, divisions and loads.
class CompiledIndex {
 public:
  int64_t constant = 0;
  std::vector<std::pair<int, int64_t>> linear;  // slot and coefficient: terms that are one symbol, nearly all there are
  std::vector<CompiledTerm> terms;              // the rest
  int64_t lane_coefficient = 0;                 // of the lane symbol among `linear`

  bool affine_in_lane() const {
    return std::all_of(terms.begin(), terms.end(),
                       [](const CompiledTerm& t) { return !t.lane_inside && t.lane_power <= 1; });
  }
  bool uses_lane() const {
    return lane_coefficient != 0 || std::any_of(terms.begin(), terms.end(), [](const CompiledTerm& t) {
             return t.lane_inside || t.lane_power > 0;
           });
  }
  int64_t value(const Slots& slots, std::span<const TensorView> inputs) const {
    int64_t sum = constant;
    for (const auto& [slot, coefficient] : linear) sum += coefficient * slots[static_cast<size_t>(slot)];
    return terms.empty() ? sum : sum + nonlinear(slots, inputs);
  }
  // Coefficient of the lane symbol. Precondition: affine_in_lane().
  int64_t lane_step(const Slots& slots, std::span<const TensorView> inputs, int lane) const {
    if (terms.empty()) return lane_coefficient;
    Slots at = slots;
    at[static_cast<size_t>(lane)] = 1;
    const int64_t one = nonlinear(at, inputs);
    at[static_cast<size_t>(lane)] = 0;
    return lane_coefficient + one - nonlinear(at, inputs);
  }

 private:
  int64_t nonlinear(const Slots& slots, std::span<const TensorView> inputs) const;
};

// Where an element lies in a tensor. Throws EvaluationError where a subscript is out of bounds.
int64_t flat_offset(const TensorView& t, std::span<const int64_t> subscripts);

struct CompiledCond {
  CondKind kind = CondKind::True;
  CompiledIndex index;
  std::vector<CompiledCond> parts;
  bool uses_lane = false;

  bool value(const Slots& slots, std::span<const TensorView> inputs) const;
};

}  // namespace gopt::ir
