// Models with fields changed at random: attributes and extents of extreme values, other types, ranks and names, inputs
// that are missing, parts that come twice. The same seed gives the same mutant.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>

namespace gopt {

// One to four changes.
void mutate(onnx::ModelProto& model, uint64_t seed);

}  // namespace gopt
