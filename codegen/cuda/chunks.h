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

// Where lines of the innermost loop are shorter than sixteen bytes, follow one another in the result and hold the same
// along it (each element repeated), several of them are one line: their elements are known by numbers when a thread
// makes them all. Else the body as it is.
KernelBody with_whole_lines(const KernelBody& body);

}  // namespace gopt::codegen
