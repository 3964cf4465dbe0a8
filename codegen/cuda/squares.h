// Kernels that read across the order in which they write (a transpose, an image that comes to lie with channels last):
// a block reads a square along what is read, turns it over in shared memory, and writes along what is written.
#pragma once

#include <optional>
#include <vector>

#include "thread_loops.h"

namespace gopt::codegen {

struct Squares {
  size_t across;            // the loop along which what is read lies together
  std::vector<Expr> reads;  // those that are read so
};

// Nothing where no read lies together along one of the outer loops, where it may not be there (a condition guards it),
// and where there is too little of it. The kernel has no reductions.
std::optional<Squares> squares_of(const KernelBody& body);

CudaKernel print_squares(const KernelBody& body, const Squares& squares);

}  // namespace gopt::codegen
