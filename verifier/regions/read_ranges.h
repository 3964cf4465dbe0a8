// Which places of its inputs a box of an operator's output reads: what the subscripts of its definition reach while the
// position runs over the box and binders over their ranges (the halo of a window, say).
#pragma once

#include <optional>
#include <vector>

#include "gopt/graph.h"
#include "gopt/rule.h"
#include "size_signs.h"

namespace gopt::verifier {

// What is read along one axis of an input, before the input's ends cut it off: windows reach into their padding.
struct ReadRange {
  Index low, high;
  std::vector<bool> follows;  // by axis of the output: whether the place that is read depends on the position there
};
// By axis; nothing where the input is not read, or only at places that elements of other inputs say (`is_known` false).
struct InputReads {
  bool is_read = false, is_known = true;
  std::vector<ReadRange> axes;
};

// Of output number `output` of a node of the table, by input. Errors: which of two bounds is the larger one depends on
// the sizes. An axis of a box that is the whole axis may be read in any order.
Result<std::vector<InputReads>> reads_of(const Node& node, int output, const Box& box, const SizeSigns& signs);

// Whether each element of the output is the element of input 0 at these distances along each axis (a part of a Split, a
// Slice of step 1): then they are returned.
std::optional<std::vector<Index>> offsets_of(const Node& node, int output);

// The entries of the attribute `pads` that move what is read along an axis of input 0, or add to the output's extent
// behind it; -1 where there are none.
struct PadEntries {
  int begin = -1, end = -1;
};
std::vector<PadEntries> pad_entries(const Node& node);

}  // namespace gopt::verifier
