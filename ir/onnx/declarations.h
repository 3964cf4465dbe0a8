// Types in ONNX's words.
#pragma once

#include "gopt/type.h"
#include "proto.h"

namespace gopt {

// Writes what is known of the type over what `info` says already; extents that it leaves open stay so.
void write_type(const TensorType& type, onnx::ValueInfoProto& info);

}  // namespace gopt
