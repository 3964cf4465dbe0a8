// Kernels that reduce rows (normalizations, softmax, sums): the threads of a row, a warp where that is enough, keep
// what they read of it in registers, in chunks of up to sixteen bytes, so that memory is read once, in few
// instructions, and sums of a warp need no barrier.
#pragma once

#include <map>
#include <optional>

#include "../lower.h"

namespace gopt::codegen {

struct RowChunks {
  int64_t elements = 0;  // of a row
  int64_t count = 1;     // of a chunk; a row has whole chunks
  int64_t threads = 32;  // of a row: whole warps, or a part of one. Their chunks lie side by side
  int64_t each = 1;      // chunks of a thread, at most
  int64_t rows = 1;      // of a block, where a row is a warp's or a part's; then a warp's rows are whole
  AtomId place{};        // within the row, in the offsets
  // Of inputs that lie along the row and are read in one place alone for each element: where.
  std::map<int, Index> offsets;
  bool is_whole() const { return elements == count * threads * each; }
};

// None where reductions are not all over rows of one known length, with whole chunks of at least two elements, or where
// a thread would have to keep too many. `rows` and `lanes` are the kernel's loops: what reductions depend on, and the
// one along the row, if any.
std::optional<RowChunks> row_chunks_of(const KernelBody& body, const std::vector<Loop>& rows,
                                       const std::vector<Loop>& lanes);

}  // namespace gopt::codegen
