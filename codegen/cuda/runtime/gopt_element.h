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

// Windows over channels side by side (gopt_channels.h).
enum class Window { Depthwise, Largest, Mean };

}  // namespace gopt_runtime
