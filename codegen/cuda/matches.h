// Kernels that write at places which a tensor names (ScatterAlong): by their definition each element of the result
// looks at all updates. Here a block has the elements of one place: its threads look at so many updates at once, and
// each takes those that match, in their order, for an element of its own.
#pragma once

#include <optional>
#include <vector>

#include "thread_loops.h"

namespace gopt::codegen {

struct Matches {
  Expr
      search;  // a reduction over updates: of what an update is where its place is this one, and of another number else
  Expr pick;   // none, or one that is the update whose number `search` is
  std::vector<Loop> rows, lanes;  // on which places depend, and the others
};

// Nothing where the kernel is no such reduction, where each element has places of its own, or where it has too few
// updates.
std::optional<Matches> matches_of(const KernelBody& body);

CudaKernel print_matches(const KernelBody& body, const Matches& matches);

}  // namespace gopt::codegen
