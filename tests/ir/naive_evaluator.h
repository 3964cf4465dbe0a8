// A second evaluator of scalar expressions: recursive, one element at a time, no stages. It is what the interpreter's
// stages and blocks are compared with.
#pragma once

#include <vector>

#include "gopt/definition.h"

namespace gopt {

// The value of `expr` over `inputs`, with values of its free symbols. Throws std::out_of_range where a read leaves its
// tensor.
double evaluate_naively(const Expr& expr, Environment environment, const std::vector<Tensor>& inputs);

// Every element of `output`, stored as its element type would. Precondition: static shape.
Tensor evaluate_naively(const TensorExpr& output, const std::vector<Tensor>& inputs);

// A tensor's element by subscripts. Throws std::out_of_range.
int64_t flat_position(const Tensor& tensor, std::span<const int64_t> subscripts);

}  // namespace gopt
