#include "ranges.h"

#include <algorithm>
#include <climits>

#include "gopt/definition.h"
#include "integer_values.h"

namespace gopt::ir {
namespace {

// What the attribute lists; null where it is left out.
template <class Own>
auto* entries_of(Own& attributes, const char* name) {
  const auto found = attributes.find(name);
  return found == attributes.end() ? nullptr : std::get_if<std::vector<Index>>(&found->second);
}

// The axis that entry number k of a range is of; nothing where the input has no such.
std::optional<size_t> axis_of(const Attributes& attributes, size_t k, size_t rank) {
  const auto* axes = entries_of(attributes, "axes");
  if (axes && k >= axes->size()) return std::nullopt;
  const int64_t given = axes ? (*axes)[k].constant() : static_cast<int64_t>(k),
                axis = given + (given < 0 ? static_cast<int64_t>(rank) : 0);
  return axis >= 0 && axis < static_cast<int64_t>(rank) ? std::optional(static_cast<size_t>(axis)) : std::nullopt;
}

// Of places that are both counted from the beginning, or both from the end; backwards these are not: where both lie
// before the axis, it begins with the first element, which a range that ends before it has.
bool is_empty_anywhere(const Index& start, const Index& end, int64_t step) {
  if (!start.is_constant() || !end.is_constant() || (start.constant() < 0) != (end.constant() < 0)) return false;
  return step > 0 ? start.constant() >= end.constant() : start.constant() >= 0 && start.constant() <= end.constant();
}

}  // namespace

void simplify_ranges(const Value& input, Attributes& attributes) {
  auto *starts = entries_of(attributes, "starts"), *ends = entries_of(attributes, "ends"),
       *steps = entries_of(attributes, "steps");
  if (!input || !input.type().shape || !starts || !ends || starts->size() != ends->size()) return;
  const Shape& shape = *input.type().shape;
  for (size_t k = 0; k < starts->size(); k++) {
    Index* const step = steps && k < steps->size() ? &(*steps)[k] : nullptr;
    if (step && !step->is_constant()) continue;
    if (step) *step = std::clamp<int64_t>(step->constant(), -INT_MAX, INT_MAX);  // which is beyond any extent
    const auto axis = axis_of(attributes, k, shape.size());
    const int64_t by = step ? step->constant() : 1;
    if (!axis || shape[*axis].is_constant() || by == 0 || !is_empty_anywhere((*starts)[k], (*ends)[k], by)) continue;
    (*starts)[k] = (*ends)[k] = 0;
    if (step) *step = 1;
  }
}

bool may_clamp(const Node& node) {
  if (!node.is(OpKind::Slice) && !node.is(OpKind::Split)) return false;
  const auto types =
      infer_types(node.op, {node.inputs[0].type()}, node.attributes, static_cast<int>(node.outputs.size()));
  return !types.ok() || !types->requirements.empty();
}

std::optional<Attributes> cut_off(const Node& slice, int64_t longest) {
  constexpr size_t kImage = 4, kLines = 2;
  Attributes attributes = slice.attributes;
  const Shape& shape = *slice.inputs[0].type().shape;
  bool is_cut = false;
  const auto* steps = entries_of(attributes, "steps");
  auto &starts = *entries_of(attributes, "starts"), &ends = *entries_of(attributes, "ends");
  const auto is_negative = [](const Index& place) { return place.is_constant() && place.constant() < 0; };
  for (size_t k = 0; k < starts.size(); k++) {
    const auto axis = axis_of(attributes, k, shape.size());
    if (!axis) continue;
    const Index& extent = shape[*axis];
    const bool is_of_image = shape.size() >= kImage && *axis >= kLines;
    const bool is_forward = !steps || (*steps)[k].constant() > 0;
    if (extent.is_constant() || is_of_image || !is_forward || is_negative(starts[k]) || is_negative(ends[k])) continue;
    for (Index* place : {&starts[k], &ends[k]}) {
      if (!place->is_constant() || place->constant() <= longest || place->constant() >= INT_MAX) continue;
      *place = lesser(extent, *place);
      is_cut = true;
    }
  }
  return is_cut ? std::optional(attributes) : std::nullopt;
}

bool may_be_outside(const Value& input, const Attributes& attributes) {
  if (!input || !input.type().shape) return false;
  const Shape& shape = *input.type().shape;
  for (const char* name : {"starts", "ends"}) {
    const auto* places = entries_of(attributes, name);
    for (size_t k = 0; places && k < places->size(); k++) {
      if (!has_lesser((*places)[k])) continue;
      const auto axis = axis_of(attributes, k, shape.size());
      if (!axis || !is_lesser_of((*places)[k], shape[*axis])) return true;
    }
  }
  return false;
}

}  // namespace gopt::ir
