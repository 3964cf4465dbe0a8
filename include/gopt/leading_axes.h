// What attributes that name axes become below leading axes: those of an operator that is applied, axis by axis, to each
// part of a larger tensor. See rule.h for rules that hold under any leading axes.
#pragma once

#include "gopt/op.h"
#include "gopt/type.h"

namespace gopt {

// Attributes of `op` on tensors that have the axes `prefix` before their own. Axes that count from the end stay; Pad's
// pads cover every axis.
Attributes below_leading_axes(OpKind op, const Attributes& attributes, const Shape& prefix);

}  // namespace gopt
