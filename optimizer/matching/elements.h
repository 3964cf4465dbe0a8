// Numbers and elements of a rule against those of a model.
#pragma once

#include "gopt/type.h"

namespace gopt::optimizer {

// Of attributes, which are single precision.
inline bool equal_numbers(double a, double b) { return a == b || static_cast<float>(a) == static_cast<float>(b); }

// The constants of a rule are exact: 0.1 in double precision is another number than in single.
inline bool equal_tensors(const Tensor& pattern, const Tensor& actual) {
  if (pattern.dims() != actual.dims()) return false;
  if (pattern.type() == actual.type() && pattern.content_id() == actual.content_id()) return true;
  if (!is_floating(pattern.type()) || !is_computable(actual.type()) || pattern.count() > 4096) return false;
  return pattern.to_doubles() == actual.to_doubles();
}

// A constant of a rule where f32 stands for `floating`.
inline Tensor with_element(const Tensor& tensor, ElementType floating) {
  if (tensor.type() != ElementType::Float32 || floating == ElementType::Float32) return tensor;
  return Tensor::from_values(floating, tensor.dims(), tensor.to_doubles());
}

}  // namespace gopt::optimizer
