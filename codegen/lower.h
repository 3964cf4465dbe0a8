// A generated kernel as one element expression over memory offsets: the definitions of the nodes that it covers,
// composed, with every read at an offset into its buffer in that buffer's layout. Target-independent; see writer.h for
// how it is printed.
#pragma once

#include <string>
#include <vector>

#include "gopt/plan.h"

namespace gopt::codegen {

// A loop variable over [low, high).
struct Loop {
  AtomId symbol;
  int64_t low = 0, high = 0;
  int64_t extent() const { return high - low; }
};

struct KernelBody {
  std::vector<Loop> loops;  // in the order of the output's memory; extents of 1 are left out
  Index offset;             // of the output element, in elements
  ElementType output = ElementType::Undefined;
  bool narrows = false;  // the output is stored in fewer bits than its type in the graph has
  std::vector<ElementType> inputs;
  // Reads are read(i, {offset}). Loads within indexes are load(i, {offset}) or load(i, {offset, bound}): clamped to [0,
  // bound).
  Expr value;
};

// Of a Generated or Reorder kernel. Errors: a definition that cannot be made, with the node.
Result<KernelBody> lower_kernel(const Plan& plan, const Kernel& kernel);

}  // namespace gopt::codegen
