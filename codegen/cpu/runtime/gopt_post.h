// What library kernels do to their results before they store them.
#pragma once

#include <cstdint>
#include <vector>

namespace gopt_runtime {

enum class Element { Float, BFloat16 };

enum class PostKind { Sum, Add, Relu, Clip, Logistic, Tanh, Elu, GeluErf, GeluTanh, Swish, HardSwish, Linear };
// Sum: the destination already holds what is added. Add: a tensor of the destination's shape (operand), or of `dims`.
struct Post {
  PostKind kind;
  float alpha = 0, beta = 0;
  const void* operand = nullptr;
  std::vector<int64_t> dims = {};
  Element element = Element::Float;  // of an operand with dims; others are as the destination
};

}  // namespace gopt_runtime
