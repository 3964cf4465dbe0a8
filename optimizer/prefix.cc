#include "prefix.h"

namespace gopt::optimizer {
namespace {

using Ints = std::vector<Index>;

// Axes count from the front once the rank is known; symbols stay as they are.
Index shifted_axis(const Index& axis, int rank, int64_t prefix_rank) {
  const auto number = axis.as_constant();
  if (!number) return axis;
  return *number + (*number < 0 ? rank : 0) + prefix_rank;
}

Ints shifted_axes(const Ints& axes, int rank, int64_t prefix_rank) {
  Ints shifted;
  for (const Index& axis : axes) shifted.push_back(shifted_axis(axis, rank, prefix_rank));
  return shifted;
}

Ints prepended(const Ints& front, const Ints& list) {
  Ints joined = front;
  joined.insert(joined.end(), list.begin(), list.end());
  return joined;
}

Ints counting(size_t count) {
  Ints numbers;
  for (size_t i = 0; i < count; i++) numbers.push_back(static_cast<int64_t>(i));
  return numbers;
}

// Begins and ends of a Pad over all axes: no border on the prefix.
Ints shifted_pads(const Ints& pads, size_t prefix_rank) {
  const Ints zeros(prefix_rank, Index(0));
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(pads.size() / 2);
  return prepended(prepended(zeros, Ints(pads.begin(), middle)), prepended(zeros, Ints(middle, pads.end())));
}

}  // namespace

Attributes with_prefix(const PatternNode& node, const Attributes& attributes, const Shape& prefix) {
  if (!node.has_prefix || prefix.empty()) return attributes;
  Attributes shifted = attributes;
  const auto rank = static_cast<int64_t>(prefix.size());
  for (auto& [name, value] : shifted) {
    if (auto* axis = std::get_if<Index>(&value)) {
      if (name == "axis") *axis = shifted_axis(*axis, node.attribute_rank, rank);
    } else if (auto* list = std::get_if<Ints>(&value)) {
      if (name == "axes") *list = shifted_axes(*list, node.attribute_rank, rank);
      if (name == "perm") *list = prepended(counting(prefix.size()), shifted_axes(*list, node.attribute_rank, rank));
      if (name == "shape") *list = prepended(prefix, *list);
      if (name == "repeats") *list = prepended(Ints(prefix.size(), Index(1)), *list);
      if (name == "pads" && node.op == OpKind::Pad && !attributes.contains("axes"))
        *list = shifted_pads(*list, prefix.size());
    }
  }
  return shifted;
}

}  // namespace gopt::optimizer
