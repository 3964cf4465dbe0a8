// Lines of an alphabet for one operator of a model: as it is, and with what its attributes may become.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gopt/graph.h"
#include "mutation/extent_names.h"

namespace gopt::driver {

// Operators that look at windows of the axes beyond the second: those with strides and pads.
bool is_window(const Node& node);
bool has_pads(const Node& node);

// Along one axis.
struct WindowAxis {
  int64_t extent, dilation, stride;
};
std::vector<WindowAxis> windows_of(const Node& node);  // precondition: is_window(node)

// The operator with its attributes, and, as far as it has such attributes: a window without padding, and padding for
// itself; without dilation, and the parts of an image that a dilated window sees moved into the batch and back; padding
// counted or not; a permutation and its inverse; a shape and the one it was made from. `weights_from`: its inputs from
// there on are weights. Nothing where an attribute is neither numbers nor a word.
std::optional<std::vector<std::string>> operator_lines(const Node& node, size_t weights_from, ExtentNames& names);

// For each two windows of one operator, the second over the first, the one window that sees as much.
std::vector<std::string> composed_windows(const std::vector<std::pair<const Node*, const Node*>>& chains,
                                          ExtentNames& names);

}  // namespace gopt::driver
