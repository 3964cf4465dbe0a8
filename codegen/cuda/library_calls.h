// Convolutions and matrix products of a CUDA plan as descriptions for the runtime's Library.
#pragma once

#include <string>

#include "gopt/plan.h"
#include "tile_functions.h"

namespace gopt::codegen {

// False: a kernel is generated.
bool has_library_call(const Kernel& kernel);

// What makes the library kernel number `primitive` of the model, as a statement of its creation, and what runs it; the
// tile kernels that it names are added to `tiles`.
struct CudaLibraryCall {
  std::string create, run;
};
CudaLibraryCall print_cuda_library_call(const Plan& plan, const Kernel& kernel, size_t primitive, TileFunctions& tiles);

}  // namespace gopt::codegen
