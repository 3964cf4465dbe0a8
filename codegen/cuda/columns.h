// Kernels that reduce across the lines of memory, as a mean over an image's channels does: neighbouring threads take
// neighbouring rows, what they read together lies together, and the threads below each other divide the reductions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "../cpu/loops.h"

namespace gopt::codegen {

struct Columns {
  int64_t count = 0;    // rows of a block beside each other, a power of two
  int64_t threads = 0;  // that divide the reductions of one, a power of two
};

// None where reductions read along a line, or some are of no row's. `rows`: loops that reductions depend on, of which
// the last runs fastest; `longest`: elements of the longest reduction.
std::optional<Columns> columns_of(const KernelBody& body, const std::vector<Loop>& rows, int64_t longest);

}  // namespace gopt::codegen
