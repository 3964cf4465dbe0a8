// A side of a rule run as a program would run it: operator by operator, every element of a result rounded to its type.
// Inside an operator arithmetic is in doubles, as kernels keep more digits than they store. Slower than an expression
// of the whole side (compiled_expr.h), and right about where numbers are rounded, overflow and vanish.
#pragma once

#include <optional>
#include <vector>

#include "compiled_expr.h"
#include "float_inputs.h"
#include "gopt/graph.h"

namespace gopt::verifier {

class SideEvaluator {
 public:
  // Errors: an operator without a definition.
  static Result<SideEvaluator> compile(const Graph& side);

  struct Values {
    std::vector<SampleTensor> outputs;
    // Every floating-point result and input is finite and, unless it is 0, far from both ends of its type's range:
    // what another order of operations loses there is not a matter of a factor.
    bool is_comfortable = true;
    int narrow_roundings = 0;  // operators, conversions aside, that rounded to no more digits than `real` has
  };
  struct Rounding {
    ElementType real = ElementType::Float32;  // the type that the rule is stated in
    bool is_unlimited = false;                // digits of the types, but no largest and smallest number
  };
  // Operators, conversions aside, with results of more digits than `real` has.
  int wide_operators(ElementType real) const;
  // `inputs` by variable number, and float variables by slot. Nothing where an extent is negative or open at these
  // sizes, or a result has more than `most_elements`.
  std::optional<Values> run(const Environment& sizes, const SampleInputs& inputs, const Rounding& rounding,
                            int64_t most_elements) const;

 private:
  struct Step {
    int slot = 0;  // of the result, among the inputs of later steps
    ElementType element = ElementType::Undefined;
    Shape shape;
    std::vector<AtomId> position;
    std::optional<CompiledExpr> value;  // nothing: a constant
    bool is_conversion = false;
    SampleTensor constant;
  };
  static Step step_of(const TensorExpr& output, int slot);
  std::vector<Step> steps_;
  std::vector<std::pair<int, ElementType>> inputs_;
  std::vector<int> outputs_;
};

}  // namespace gopt::verifier
