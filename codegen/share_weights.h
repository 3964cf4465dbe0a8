// Weights as their kernels read them, and where equal ones of several plans lie: in one place.
#pragma once

#include <functional>
#include <span>

#include "gopt/codegen.h"

namespace gopt::codegen {

// The bytes of a weight buffer in its layout, which `use` is given. Errors: what cannot be folded, by the weight's
// name.
Status with_weight(const Buffer& buffer, const std::function<void(std::span<const char>)>& use);

// Moves each weight to its place in one file for all plans, which holds equal ones once. Each is folded for it, one at
// a time. Errors: those of with_weight.
Status share_weights(SizedPlans& plans);

}  // namespace gopt::codegen
