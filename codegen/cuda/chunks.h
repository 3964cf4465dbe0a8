// Kernels whose threads make neighbouring elements at once: what lies as the result does is read, and the result
// written, in pieces of up to sixteen bytes.
#pragma once

#include <map>
#include <optional>

#include "../lower.h"

namespace gopt::codegen {

struct Chunks {
  int64_t count = 1;             // elements of one
  std::map<int, Index> offsets;  // of inputs that are read so: the offset of every read
};

// None where the innermost loop does not run along memory in whole chunks, or is longer than one and nothing is read
// along with it. The kernel has no reductions.
std::optional<Chunks> chunks_of(const KernelBody& body);

}  // namespace gopt::codegen
