// What only moves elements, as steps through the memory of what it moves.
#pragma once

#include <optional>
#include <vector>

#include "gopt/graph.h"

namespace gopt::planner {

// An element of a tensor is that of another one in memory: `offset` elements from its start, and one step for each
// axis. Of open extents, expressions.
struct MemorySteps {
  Index offset;
  std::vector<Index> axes;
};
MemorySteps row_major_steps(const Shape& shape);

// The same where an axis may be several in memory that a reshape made one: their extents and steps, the slowest first;
// none of an axis of one place.
struct AxisPart {
  Index extent, step;
};
struct FactoredSteps {
  Index offset;
  std::vector<std::vector<AxisPart>> axes;
};
FactoredSteps factored_steps(const MemorySteps& steps, const Shape& shape);  // an axis one part, or of one place none
FactoredSteps factored_steps(const Shape& shape);                            // row-major

// A node's output, in the memory in which its input 0 lies by `input`. Nothing where the node computes, picks by a
// condition or by data, or where its elements are not at equal steps along parts of its axes.
std::optional<FactoredSteps> steps_through(const Value& output, const FactoredSteps& input);

// a / b where that is a polynomial again, at any size; b is not 0.
std::optional<Index> exact_quotient(const Index& a, const Index& b);

// Axes of a batch as all of several tensors go along them: where heads share keys, the axis of heads is one of the
// keys' heads and one of those that share one.
struct CommonBatch {
  Shape extents;                          // of the parts
  std::vector<std::vector<Index>> steps;  // by tensor; 0: the same again
};
// `tensors` have parts for each axis of `batch`, none where they are the same all along it. Nothing where two are cut
// at different places.
std::optional<CommonBatch> common_batch(const Shape& batch, std::vector<std::vector<std::vector<AxisPart>>> tensors);

}  // namespace gopt::planner
