// Random applications of the operators of the table: inputs, attributes and shapes that fit now and then, and often do
// not.
#pragma once

#include <random>
#include <vector>

#include "gopt/op.h"

namespace gopt {

struct RandomNode {
  OpKind kind;
  std::vector<Tensor> inputs;  // an input that is left out is a tensor of undefined type
  Attributes attributes;
  int output_count = 1;

  std::vector<TensorType> input_types() const;
};
std::string to_string(const RandomNode& node);

class RandomNodes {
 public:
  explicit RandomNodes(uint64_t seed) : random_(seed) {}

  // An application of `kind` whose inputs suit it (weights of a convolution, vectors of a normalization) as a rule, and
  // whose attributes are drawn by their kind and length.
  RandomNode node(OpKind kind);
  Tensor tensor(ElementType type, const std::vector<int64_t>& dims);
  std::vector<int64_t> dims(int min_rank, int max_rank);
  ElementType element_type();
  int64_t uniform(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  bool one_in(int64_t n) { return uniform(1, n) == 1; }

 private:
  std::vector<std::vector<int64_t>> input_dims(OpKind kind, int count);
  std::vector<int64_t> broadcast_of(const std::vector<int64_t>& dims);
  std::vector<ElementType> input_elements(OpKind kind, int count);
  AttributeValue attribute(const AttributeSchema& schema, size_t rank);
  std::vector<Index> integers(const std::string& name, size_t rank);
  std::string string_value(const std::string& name);
  void fit_shape_attributes(RandomNode& node);

  std::mt19937_64 random_;
};

}  // namespace gopt
