// A generated kernel as one element expression over memory offsets: the definitions of the nodes that it covers,
// composed, with every read at an offset into its buffer in that buffer's layout. Target-independent; see writer.h for
// how it is printed.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "gopt/plan.h"

namespace gopt::codegen {

// A loop variable over [low, high).
struct Loop {
  AtomId symbol;
  Index low, high;
  Index extent() const { return high - low; }
};

struct KernelBody {
  std::vector<Loop> loops;  // in the order of the output's memory; extents of 1 are left out
  Index offset;             // of the output element, in elements
  ElementType output = ElementType::Undefined;
  bool narrows = false;  // the output is stored in fewer bits than its type in the graph has
  std::vector<ElementType> inputs;
  std::vector<OpenExtent> open;  // which are symbols in loops, offsets and guards
  // Those among them that are at least 1 where the output has elements; elsewhere nothing is run.
  std::set<AtomId> filled;
  // Reads are read(i, {offset}). Loads within indexes are load(i, {offset}) or load(i, {offset, bound}): clamped to [0,
  // bound).
  Expr value;
};

// At the usual sizes of open extents; nothing where it depends on more than these.
std::optional<int64_t> usual(const Index& index, const std::vector<OpenExtent>& open);

// Of a Generated or Reorder kernel. Errors: a definition that cannot be made, with the node.
Result<KernelBody> lower_kernel(const Plan& plan, const Kernel& kernel);

}  // namespace gopt::codegen
