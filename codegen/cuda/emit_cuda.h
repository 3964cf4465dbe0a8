// The folder of a CUDA model: model.cc with the launches in order, kernels_N.cu with generated kernels, and the
// runtime's files.
#pragma once

#include "gopt/codegen.h"

namespace gopt::codegen {

Result<EmittedCode> emit_cuda(const Plan& plan);

}  // namespace gopt::codegen
