// Activations of library kernels over an array.
#pragma once

#include <algorithm>

#include "gopt_math.h"
#include "gopt_post.h"

namespace gopt_runtime {

template <class F>
inline void gopt_for_each(float* x, int64_t count, const F& f) {
#pragma omp simd
  for (int64_t i = 0; i < count; i++) x[i] = f(x[i]);
}

// Nothing for Sum and Add, which are no functions of one number.
inline void apply_activation(const Post& post, float* x, int64_t count) {
  const float a = post.alpha, b = post.beta;
  switch (post.kind) {
    case PostKind::Relu:
      // Nothing times minus infinity is no number.
      if (a == 0.0f) return gopt_for_each(x, count, [](float v) { return v < 0.0f ? 0.0f : v; });
      return gopt_for_each(x, count, [a](float v) { return v > 0.0f ? v : a * v; });
    case PostKind::Clip: return gopt_for_each(x, count, [a, b](float v) { return v < a ? a : v > b ? b : v; });
    case PostKind::Logistic: return gopt_for_each(x, count, [](float v) { return 1.0f / (1.0f + gopt_exp(-v)); });
    case PostKind::Tanh: return gopt_for_each(x, count, [](float v) { return gopt_tanh(v); });
    case PostKind::Elu:
      return gopt_for_each(x, count, [a](float v) { return v > 0.0f ? v : a * (gopt_exp(v) - 1.0f); });
    case PostKind::GeluErf:
      return gopt_for_each(x, count, [](float v) { return 0.5f * v * (1.0f + gopt_erf(v * 0.707106781f)); });
    case PostKind::GeluTanh:
      return gopt_for_each(
          x, count, [](float v) { return 0.5f * v * (1.0f + gopt_tanh(0.797884561f * (v + 0.044715f * v * v * v))); });
    case PostKind::Swish: return gopt_for_each(x, count, [a](float v) { return v / (1.0f + gopt_exp(-a * v)); });
    case PostKind::HardSwish:
      return gopt_for_each(x, count, [a, b](float v) {
        const float share = a * v + b;
        return v * (share < 0.0f ? 0.0f : share > 1.0f ? 1.0f : share);
      });
    case PostKind::Linear: return gopt_for_each(x, count, [a, b](float v) { return a * v + b; });
    case PostKind::Sum:
    case PostKind::Add: return;
  }
}

// A part of a row of channel number `channel`, from `at` of the result on: with bias (null: none) and posts, stored
// there, where it may be already unless it is added to what is there.
inline void finish_row(const std::vector<Post>& posts, const float* bias, int64_t channel, int64_t at, int64_t count,
                       float* row, float* dst) {
  const auto add = [&](const auto& other) {
    for (int64_t i = 0; i < count; i++) row[i] += other(i);
  };
  if (bias) add([&](int64_t) { return bias[channel]; });
  for (const Post& post : posts) {
    const auto* operand = static_cast<const float*>(post.operand);
    if (post.kind != PostKind::Sum && post.kind != PostKind::Add)
      apply_activation(post, row, count);
    else if (!post.dims.empty())
      add([&](int64_t) { return operand[channel]; });
    else
      add([&](int64_t i) { return (post.kind == PostKind::Sum ? dst : operand)[at + i]; });
  }
  if (row != dst + at) std::copy(row, row + count, dst + at);
}

}  // namespace gopt_runtime
