// Ranges of axes whose extents are open: ONNX cuts them off where the axis ends, and counts negative places from there;
// the definition takes them as they are.
#pragma once

#include <optional>

#include "gopt/graph.h"

namespace gopt::ir {

// Writes what a Slice says of its places so that the definition takes it as ONNX means it: a range that is empty at any
// extent of an open axis begins and ends at 0, and no step is longer than what indices are computed with.
void simplify_ranges(const Value& input, Attributes& attributes);

// Where a symbolic extent may be smaller than a range or not a multiple of parts, ONNX clamps; the definition does not.
bool may_clamp(const Node& node);

// The same range of an axis whose extent is open, cut off where that ends, as ONNX does: x[:, :512] of a sequence of
// any length. Nothing where there is none of more places than `longest` from the beginning on. Shorter ones, and parts
// of an image's lines or columns, are taken to be there whole, which code demands: numbers as extents are worth more
// than sizes at which they are not.
std::optional<Attributes> cut_off(const Node& slice, int64_t longest);

// Whether what a Slice begins and ends with, by such attributes, may lie outside its axis, or be counted from the end,
// which ONNX has by the sign: what is known of lessers and greaters does not say that they are not.
bool may_be_outside(const Value& input, const Attributes& attributes);

}  // namespace gopt::ir
