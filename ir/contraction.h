// Finds matrix products in the definitions of operators: a stage whose elements are made of a sum of products of two
// reads, each subscript of which is a sum of parts that one axis or binder decides. That is every MatMul, Gemm and
// Conv, whatever its layout, groups, strides and padding; what is not of the form is left to the evaluator.
#pragma once

#include <optional>
#include <span>

#include "blocked_product.h"
#include "evaluator.h"

namespace gopt::ir {

struct FoundProduct {
  BlockedProduct product;
  // What is made of the sum: an expression over the stage's axes that reads it as input `input`, at the axes.
  Expr rest;
  bool is_all = false;  // `rest` is the sum as it is
};

// Over inputs of floats. `input`: the number by which the sum is to be read.
std::optional<FoundProduct> find_product(const Stage& stage, std::span<const TensorView> inputs, int input);

}  // namespace gopt::ir
