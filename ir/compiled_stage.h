// A stage's expression compiled for the evaluator: nodes in an order in which arguments come first.
#pragma once

#include <span>
#include <vector>

#include "compiled_index.h"

namespace gopt::ir {

struct StageExpr {
  ExprKind kind;
  Domain domain;  // Integer or Real; constants follow who asks
  double value = 0;
  CompiledIndex index;
  int input = 0;
  std::vector<CompiledIndex> subscripts;
  std::vector<int> args;
  Function function = Function::Exp;
  CompiledCond cond;
  ElementType type = ElementType::Undefined;
  bool is_unsigned = false;  // where it is an integer
  ReduceKind reduce = ReduceKind::Sum;
  std::vector<std::pair<int, CompiledIndex>> binders;  // slot, extent
};

struct CompiledStage {
  std::vector<StageExpr> nodes;
  int root = 0;
  int lane = -1;     // slot of the axis that runs along the lanes; -1: the stage is one element
  size_t slots = 0;  // the first ones are the stage's axes
};

CompiledStage compile_stage(const Stage& stage, std::span<const TensorView> inputs, size_t lane_axis);

}  // namespace gopt::ir
