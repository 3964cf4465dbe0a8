// What library kernels and tiles apply to their results before they store them.
#pragma once

#include "gopt_library.h"
#include "gopt_math.cuh"

namespace gopt_runtime {

__device__ inline float activate(float x, Activation a) {
  switch (a.kind) {
    case ActivationKind::None: return x;
    case ActivationKind::Relu: return gopt_max(x, 0.0f);
    case ActivationKind::LeakyRelu: return x < 0.0f ? a.alpha * x : x;
    case ActivationKind::Clip: return gopt_min(gopt_max(x, a.alpha), a.beta);
    case ActivationKind::Sigmoid: return 1.0f / (1.0f + expf(-x));
    case ActivationKind::Tanh: return tanhf(x);
    case ActivationKind::Elu: return x < 0.0f ? a.alpha * expm1f(x) : x;
    case ActivationKind::GeluErf: return 0.5f * x * (1.0f + erff(x * 0.707106781f));
    case ActivationKind::GeluTanh: return 0.5f * x * (1.0f + tanhf(0.797884561f * (x + 0.044715f * x * x * x)));
    case ActivationKind::Swish: return x / (1.0f + expf(-a.alpha * x));
    case ActivationKind::HardSwish: return x * gopt_min(gopt_max(x * (1.0f / 6) + 0.5f, 0.0f), 1.0f);
  }
  return x;
}

}  // namespace gopt_runtime
