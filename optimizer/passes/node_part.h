// A part of what a node computes, as the same operator over parts of its inputs: what the definition reads for it, and
// whether the operator, applied to that alone, is the definition on the part.
#pragma once

#include <optional>
#include <vector>

#include "gopt/graph.h"

namespace gopt::optimizer {

// The places begin, begin + step, ... of an axis, so many; the step of one is 1.
struct PartOfAxis {
  int64_t begin = 0, size = 0, step = 1;
  int64_t last() const { return begin + (size - 1) * step; }
  friend bool operator==(const PartOfAxis&, const PartOfAxis&) = default;
};
// Of a tensor, by axis; nothing stands for the whole axis.
using Part = std::vector<std::optional<PartOfAxis>>;

bool is_whole(const Part& part);
// A part that holds both: of the largest steps, and no larger than it must be. Precondition: parts of one tensor.
Part hull(const Part& a, const Part& b);
// The extents of a part of a tensor of that shape.
Shape extents_of(const Shape& shape, const Part& part);

struct NodePart {
  OpKind op = OpKind::Identity;
  Attributes attributes;
  std::vector<std::optional<Part>> reads;  // by input of the node; nothing where one is left out
  std::optional<size_t> copied;            // the part is that of this input, element by element: no operator is needed
};

// How to compute that part of the value, which may be all of it. Nothing where the definition does not show that it is
// what the operator gives of the parts that it reads, or where shapes are not known.
std::optional<NodePart> part_of(const Value& value, const Part& part);

}  // namespace gopt::optimizer
