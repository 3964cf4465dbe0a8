// Types and shapes in ONNX's words.
#pragma once

#include "gopt/type.h"
#include "proto.h"

namespace gopt::ir {

// Writes what is known of the type over what `info` says already; extents that it leaves open stay so.
void write_type(const TensorType& type, onnx::ValueInfoProto& info);

// Symbolic entries of Reshape's shape, where ONNX's own 0 (the input's extent there) and -1 (what is left) can say them
// all; else the shape as it is.
std::vector<Index> short_reshape(const TensorType& input, const std::vector<Index>& shape);

}  // namespace gopt::ir
