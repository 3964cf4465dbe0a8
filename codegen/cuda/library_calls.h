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
  size_t primitives = 1;
};
CudaLibraryCall print_cuda_library_call(const Plan& plan, const Kernel& kernel, size_t primitive, TileFunctions& tiles);

// Attention's part of it (attention_call.cc).
CudaLibraryCall print_attention_call(const Plan& plan, const Kernel& kernel, size_t primitive, TileFunctions& tiles);

// Extents of a matrix product, and its factor.
struct ProductExtents {
  int64_t rows = 0, columns = 0, depth = 0;
  double scale = 1;
  bool left_transposed = false;
  bool is_flat = true;  // by one matrix: the left operand's leading axes are rows
};
ProductExtents product_extents(const Plan& plan, const Kernel& kernel);
// Statements about the description `d` of a kernel: these, the factor, and what is applied to its sums.
std::string extents_text(const ProductExtents& extents);
std::string scale_text(const ProductExtents& extents);
std::string epilogue_text(const Kernel& kernel);

// What kernels on the tensor cores are told, by name.
std::string element_name(ElementType element);                     // "Element::Float16"
std::string operand_text(const Plan& plan, const Kernel& kernel);  // what is multiplied: "Tf32"
// Whether chunks of 16 bytes of a buffer's lines begin where such chunks do, at these steps in elements.
bool has_chunks(const Plan& plan, BufferId id, const std::vector<int64_t>& steps);

}  // namespace gopt::codegen
