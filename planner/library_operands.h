// The operands of a convolution or a matrix product.
#pragma once

#include "gopt/plan.h"

namespace gopt::planner {

inline const Buffer& image(const Plan& plan, const Kernel& kernel) { return plan.buffer(kernel.input_buffers[0]); }
inline const Buffer& weights(const Plan& plan, const Kernel& kernel) { return plan.buffer(kernel.input_buffers[1]); }
inline const Buffer& result(const Plan& plan, const Kernel& kernel) { return plan.buffer(kernel.output_buffers[0]); }

inline bool is_quantized(const Plan&, const Kernel& kernel) { return kernel.quantized.has_value(); }
inline bool is_not_of_integers(const Plan&, const Kernel& kernel) { return !kernel.integers && !kernel.quantized; }

}  // namespace gopt::planner
