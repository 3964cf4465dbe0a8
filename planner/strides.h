// What only moves elements, as steps through the memory of what it moves.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gopt/graph.h"

namespace gopt::planner {

// An element of a tensor is that of another one in memory: `offset` elements from its start, and one step for each
// axis.
struct MemorySteps {
  int64_t offset = 0;
  std::vector<int64_t> axes;
};
MemorySteps row_major_steps(const std::vector<int64_t>& dims);

// A node's output, in the memory in which its input 0 lies by `input`. Nothing where the node computes, picks by a
// condition or by data, or where its elements are not at equal steps (numpy's rule for a reshape without a copy).
std::optional<MemorySteps> steps_through(const Value& output, const MemorySteps& input);

}  // namespace gopt::planner
