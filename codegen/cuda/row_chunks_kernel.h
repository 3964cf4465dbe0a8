// The kernel whose threads keep, or read again, the chunks of a row (row_chunks.h).
#pragma once

#include "row_chunks.h"
#include "thread_loops.h"

namespace gopt::codegen {

// `writer` is the body's; `rows` and `lanes` are the kernel's loops, as row_chunks_of() had them. `constants`: inputs
// that no kernel writes.
CudaKernel print_row_chunks(Writer& writer, const KernelBody& body, const RowChunks& row, const std::vector<Loop>& rows,
                            const std::vector<Loop>& lanes, const std::set<int>& constants);

}  // namespace gopt::codegen
