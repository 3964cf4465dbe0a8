// What library calls and kernels of our own say alike of tensors, windows, and what is applied to sums.
#pragma once

#include <cstdint>

namespace gopt_runtime {

enum class ActivationKind { None, Relu, LeakyRelu, Clip, Sigmoid, Tanh, Elu, GeluErf, GeluTanh, Swish, HardSwish };
struct Activation {
  ActivationKind kind = ActivationKind::None;
  float alpha = 0, beta = 0;  // Clip: lowest and highest; LeakyRelu, Elu: alpha
};

// What tensors lie in memory as.
enum class Element { Float32, Float16, BFloat16 };
constexpr int64_t size_of(Element element) { return element == Element::Float32 ? 4 : 2; }

// Weights of 4 or 8 bits, whose parts of a column have a scale and a zero point each. Of these, how many lie from one
// column's to the next one's, and from one block's: 0 where all have the same.
struct OfBlocks {
  int column = 0, block = 0;
};
struct QuantizedNumbers {
  int words_of_block = 0;  // of 32 bits, as the power of two
  OfBlocks scale, zero;
  int zero_of_all = 0;  // where there are no others; counted likewise
  // Numbers that had signs are counted from the least on, zero points with these bits flipped.
  unsigned signs = 0;
};

// Windows over channels side by side (gopt_channels.h).
enum class Window { Depthwise, Largest, Mean };

}  // namespace gopt_runtime
