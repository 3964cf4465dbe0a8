// Kernels that reduce rows (normalizations, softmax, sums): the threads of a row, a warp where that is enough, keep
// what they read of it in registers, in chunks of up to sixteen bytes, so that memory is read once, in few
// instructions, and sums of a warp need no barrier. Few long rows are shared by the blocks of a cluster, very few and
// longer ones by all blocks of the device; what even these cannot keep is read again by each loop, in chunks.
#pragma once

#include <map>
#include <optional>

#include "../lower.h"

namespace gopt::codegen {

struct RowChunks {
  // A row's elements are counted along these axes, one or two, of which chunks lie along the last: the channels of a
  // group, at each position.
  struct Axis {
    AtomId symbol;
    int64_t extent;
  };
  std::vector<Axis> axes;
  bool turns = false;    // reductions count them the other way around
  int64_t elements = 0;  // of a row
  int64_t count = 1;     // of a chunk; a row has whole chunks
  int64_t threads = 32;  // of a row in a block: whole warps, or a part of one. Their chunks lie side by side
  int64_t blocks = 1;    // which share a row: of a cluster, or more, which meet in memory
  int64_t beside =
      1;             // rows that a block has at once, which lie side by side in what is less than memory gives at once
  int64_t each = 1;  // chunks of a thread, at most
  int64_t rows = 1;  // of a block, where a row is a warp's or a part's; then a warp's rows are whole
  bool is_kept = true;  // else read anew
  // Of inputs that lie along the row and are read in one place alone for each element: where.
  std::map<int, Index> offsets;
  bool is_whole() const { return elements == count * threads * blocks * each; }
  bool is_along(AtomId symbol) const;  // an axis
};

constexpr int64_t kBlocksOfCluster = 8, kBlocksOfDevice = 128;  // at most, on any that has such

// None where reductions are not all over rows of one known length, with whole chunks of at least two elements but where
// a row is long. `rows` and `lanes` are the kernel's loops: what reductions depend on, and those along the row, if any.
// `most_blocks`: that may share a row, one or one of the numbers above.
std::optional<RowChunks> row_chunks_of(const KernelBody& body, const std::vector<Loop>& rows,
                                       const std::vector<Loop>& lanes, int64_t most_blocks);

}  // namespace gopt::codegen
