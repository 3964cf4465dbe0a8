// An operator's definition at given static shapes, unrolled once into straight code over scalars: every index is
// computed and every guard decided when the tape is made, so that evaluating a term costs arithmetic alone.
#pragma once

#include <vector>

#include "gopt/definition.h"
#include "scalar.h"

namespace gopt::generator {

using Values = std::vector<Scalar>;  // a tensor's elements in row-major order

class Tape {
 public:
  // Errors: as define(); also a requirement that the shapes leave undecided, or data-dependent indexes.
  static Result<Tape> make(OpKind kind, const std::vector<TensorType>& inputs, const Attributes& attributes, int output,
                           int output_count);
  // Elements of the output. Nothing where some value is not defined or not comparable.
  std::optional<Values> run(const std::vector<const Values*>& inputs) const;
  double operations() const { return static_cast<double>(code_.size()); }
  const std::vector<int64_t>& dims() const { return dims_; }

 private:
  friend class TapeCompiler;
  enum class Place : uint8_t { Input, Constant, Register };
  struct Operand {
    Place place;
    uint8_t input;
    uint32_t position;
  };
  struct Instruction {
    ExprKind kind;
    Function function;
    Operand a, b, c;
  };
  const Scalar& value(const Operand& operand, const std::vector<const Values*>& inputs, const Values& registers) const;

  std::vector<Instruction> code_;  // each writes the register of its own number
  std::vector<Operand> outputs_;
  Values constants_;
  std::vector<int64_t> dims_;
};

}  // namespace gopt::generator
