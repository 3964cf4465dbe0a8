// How an operator reads its inputs, by its definition: what planning needs to know of an operator, whichever it is.
#pragma once

#include "gopt/definition.h"

namespace gopt::planner {

Index product_of(const Shape& shape);  // of its extents

// One output of a definition, at subscripts that are symbols, one for each axis.
struct Element {
  std::vector<AtomId> axes;
  Shape shape;
  Expr value;
};
Element element_of(const TensorExpr& output);
std::vector<AtomId> axis_symbols(size_t rank);  // of every element: axis k has the same symbol everywhere

// Whether each element is an element of an input or a constant, picked by where it lies: nothing is computed.
bool only_moves(const Expr& value);

// Scalar operations of one element, reductions apart, and apart from what is the same along an axis: loops compute that
// once for all of it.
double operations_outside_reductions(const Element& element);

// By input: how many of its elements are read for the whole output, each as often as it is: once for each evaluation of
// the expression around it, in the stages in which it is computed. What is guarded counts as read, so that it is a
// bound where there are guards.
std::vector<Index> count_reads(const TensorExpr& output, const std::vector<ElementType>& input_types);

// By input: whether its elements are used as subscripts.
std::vector<bool> index_operands(const Expr& value, size_t input_count);

// Whether the output may lie in memory as the images that it is computed from, the inputs of its rank of three or more:
// - Batch and channel of what is read are those of the output, up to a factor and an offset (a slice or a part of a
//   concatenation), or fixed ones, where an input is broadcast.
// - What is read along any other axis depends on the output's place along that axis alone, and on what is reduced.
//   Nothing is permuted.
// - No reduction combines two images: products of matrices and convolutions want theirs as their kernels read them.
bool follows_layout(const Element& element, const std::vector<TensorExpr>& inputs);

// Whether the output has the elements of input 0, all of them, in the same row-major order.
bool keeps_order(const Element& element, const TensorExpr& input);

}  // namespace gopt::planner
