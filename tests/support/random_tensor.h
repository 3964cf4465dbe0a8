// Tensors of random numbers.
#pragma once

#include <random>
#include <vector>

#include "gopt/type.h"

namespace gopt {

// Real numbers from `low` to `high`, drawn one after another. Precondition: a floating element type.
template <class Random>
Tensor random_tensor(Random& random, ElementType element, const std::vector<int64_t>& dims, double low, double high) {
  std::uniform_real_distribution<double> uniform(low, high);
  std::vector<double> values(static_cast<size_t>(element_count(dims)));
  for (double& value : values) value = uniform(random);
  return Tensor::from_values(element, dims, values);
}

// Truth values; other integers are 0, which is a place of every axis.
template <class Random>
Tensor random_truths(Random& random, ElementType element, const std::vector<int64_t>& dims) {
  std::vector<int64_t> values(static_cast<size_t>(element_count(dims)), 0);
  if (element == ElementType::Bool)
    for (int64_t& value : values) value = static_cast<int64_t>(random() % 2);
  return Tensor::from_values(element, dims, values);
}

// Of either kind, by its element type.
template <class Random>
Tensor random_tensor(Random& random, const TensorType& type, double low, double high) {
  return is_floating(type.element) ? random_tensor(random, type.element, type.static_shape(), low, high)
                                   : random_truths(random, type.element, type.static_shape());
}

}  // namespace gopt
