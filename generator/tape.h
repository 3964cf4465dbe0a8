// An operator's definition at given static shapes, unrolled once into straight code over scalars: every index is
// computed and every guard decided when the tape is made, so that evaluating a term costs arithmetic alone. Sums of
// products are one instruction.
#pragma once

#include <vector>

#include "alphabet.h"
#include "reals.h"

namespace gopt::generator {

using Values = std::vector<Scalar>;  // a tensor's elements in row-major order

class Tape {
 public:
  // Errors: as define(); also a requirement that the shapes leave undecided, or data-dependent indexes.
  // `follows_exponents`: so that the laws of exp hold of scalars, at some expense.
  static Result<Tape> make(const AlphabetOp& op, const std::vector<TensorType>& inputs, int output,
                           bool follows_exponents = false);
  // Writes size() elements of the output, scalars or reals. False where some value is not defined or not comparable.
  // `registers` is room that calls may share.
  template <class Number>
  bool run(const Number* const* inputs, Number* output, std::vector<Number>& registers) const;
  template <class Number>
  std::optional<std::vector<Number>> run(const std::vector<const std::vector<Number>*>& inputs) const;

  size_t size() const { return outputs_.size(); }
  double operations() const { return operations_; }
  const std::vector<int64_t>& dims() const { return dims_; }

 private:
  friend class TapeCompiler;
  // Element `position` of an input, or of the constants (source kConstants) or registers (kRegisters).
  struct Operand {
    uint32_t source, position;
  };
  static constexpr uint32_t kMaxInputs = 8, kConstants = kMaxInputs, kRegisters = kMaxInputs + 1;
  struct Instruction {
    ExprKind kind;  // Reduce: the sum of products [a.position, b.position)
    Function function;
    Operand a, b, c;
  };

  template <class Number, bool kFollowsExponents>
  bool run_code(const Number* const* inputs, Number* output, std::vector<Number>& registers) const;

  std::vector<Instruction> code_;  // each writes the register of its own number
  std::vector<std::pair<Operand, Operand>> products_;
  std::vector<Operand> outputs_;
  Values constants_;
  std::vector<Reals> real_constants_;  // the same
  std::vector<int64_t> dims_;
  size_t input_count_ = 0;
  bool needs_infinity_ = false;  // the largest of nothing: no scalar
  bool follows_exponents_ = false;
  double operations_ = 0;
};

}  // namespace gopt::generator
