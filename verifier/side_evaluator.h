// A side of a rule run as a program would run it: operator by operator, every element of a result rounded to its type.
// Inside an operator arithmetic is in doubles, as kernels keep more digits than they store. Slower than an expression
// of the whole side (compiled_expr.h), and right about where numbers are rounded, overflow and vanish.
#pragma once

#include <optional>
#include <vector>

#include "compiled_expr.h"
#include "gopt/graph.h"

namespace gopt {

class SideEvaluator {
 public:
  // Errors: an operator without a definition.
  static Result<SideEvaluator> compile(const Graph& side);

  struct Values {
    std::vector<SampleTensor> outputs;
    // Of all floating-point results and inputs, zeros aside: whether each is finite, the largest and the smallest.
    bool is_finite = true;
    double largest = 0, smallest = 0;
  };
  struct Rounding {
    ElementType real = ElementType::Float32;  // f32 stands for it
    bool is_unlimited = false;                // its digits, but no largest and smallest number
  };
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
    SampleTensor constant;
  };
  static Step step_of(const TensorExpr& output, int slot);
  std::vector<Step> steps_;
  std::vector<std::pair<int, ElementType>> inputs_;
  std::vector<int> outputs_;
};

}  // namespace gopt
