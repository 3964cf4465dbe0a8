// What model.cc says of a model: its tensors, and the code that there is for each size of its open extents.
// gopt_model.cc makes the C interface of it.
#pragma once

#include <string>

#include "gopt_dnnl.h"
#include "gopt_memory.h"
#include "model.h"

namespace gopt_runtime {

// The kernels of one size, made for a model.
struct Prepared {
  const char* weights;
  int threads;
  Block arena;
  Library library;

  Prepared(const char* mapped, int count, size_t arena_bytes)
      : weights(mapped), threads(count), arena(arena_bytes), library(count) {}
};

// The code for one size.
struct Variant {
  const int64_t* extents;
  const gopt_tensor_info *inputs, *outputs;
  int kernel_count;
  const char* const* kernel_names;
  size_t arena_bytes;
  void (*create)(Prepared& prepared);
  void (*run)(Prepared& prepared, const void* const* inputs, void* const* outputs);
  // Adds the milliseconds of each kernel.
  void (*profile)(Prepared& prepared, const void* const* inputs, void* const* outputs, double* milliseconds);
};

struct Description {
  int input_count, output_count, extent_count, variant_count;
  const gopt_tensor_info *inputs, *outputs;  // with open extents
  const char* const* extents;
  size_t weight_bytes;
  // An extent along which the model may be run in parts, and which inputs and outputs have it, as their first; -1:
  // none.
  int rows;
  const bool *input_rows, *output_rows;
  const Variant* const* variants;
};
extern const Description description;  // in model.cc

}  // namespace gopt_runtime
