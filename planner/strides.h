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

// The same where an axis may be several in memory that a reshape made one: their extents and steps, the slowest first;
// none of an axis of one place.
struct AxisPart {
  int64_t extent, step;
};
struct FactoredSteps {
  int64_t offset = 0;
  std::vector<std::vector<AxisPart>> axes;
};
FactoredSteps factored_steps(const std::vector<int64_t>& dims);  // row-major

// A node's output, in the memory in which its input 0 lies by `input`. Nothing where the node computes, picks by a
// condition or by data, or where its elements are not at equal steps along parts of its axes.
std::optional<FactoredSteps> steps_through(const Value& output, const FactoredSteps& input);
// Nothing where an axis goes by several steps.
std::optional<MemorySteps> single_steps(const FactoredSteps& steps);

}  // namespace gopt::planner
