// The part of model.cc that is the same for every CUDA model: what a model holds, and the functions of runtime/model.h
// around the launches that emit_cuda prints.
#pragma once

#include <string>

namespace gopt::codegen {

struct CudaInterface {
  std::string model;      // the type, before create_kernels and the launches; ends within an unnamed namespace
  std::string functions;  // after them
};
// Of a model, or of a timing plan, whose kernels are timed one by one.
CudaInterface cuda_interface(bool times_kernels);

}  // namespace gopt::codegen
