#include "rebatch.h"

#include <algorithm>

namespace gopt::ir {
namespace {

using Dims = std::vector<int64_t>;

std::optional<Dims> original_dims(const ImportState& state, const std::string& name) {
  const auto it = state.original_types->find(name);
  if (it == state.original_types->end() || !it->second.has_static_shape()) return std::nullopt;
  return it->second.static_shape();
}

// The one axis on which the shapes differ; nothing where there are several.
std::optional<size_t> changed_axis(const Dims& before, const Dims& after) {
  std::optional<size_t> changed;
  if (before.size() != after.size()) return std::nullopt;
  for (size_t axis = 0; axis < before.size(); axis++) {
    if (before[axis] == after[axis]) continue;
    if (changed) return std::nullopt;
    changed = axis;
  }
  return changed;
}

int64_t product(const Dims& dims, size_t end) {
  int64_t total = 1;
  for (size_t axis = 0; axis < end; axis++) total *= dims[axis];
  return total;
}

// The axis of a reshape's result `to` that holds the batch `batch`, which has `outer` elements before it. In row-major
// order the batch keeps its place: it is an axis of its own there, or was merged into one that starts, spans or ends
// there. The last axis holds features: where another one ends at its start, the batch went into that. Where the batch
// was merged with other extents before, it may lie anywhere up to `farthest`.
std::optional<size_t> find_batch_axis(const Dims& to, int64_t outer, int64_t farthest, int64_t batch) {
  std::optional<size_t> starts, spans, ends;
  for (size_t axis = 0; axis < to.size(); axis++) {
    const int64_t before = product(to, axis), after = before * to[axis];
    if (before >= outer && before <= farthest && to[axis] == batch) return axis;
    if (to[axis] % batch != 0 || to[axis] == 1) continue;
    if (before == outer && !starts) starts = axis;
    if (before < outer && outer < after && !spans) spans = axis;
    if (after == outer) ends = axis;
  }
  if (ends && starts == to.size() - 1) return ends;
  return starts ? starts : spans;
}

// The shape to which a reshape from `after` leads, when from `before` it led to `to`.
std::optional<Dims> follow_reshape(const ImportState& state, const Dims& before, const Dims& after, Dims to) {
  const auto axis = changed_axis(before, after);
  if (!axis) return std::nullopt;
  for (const auto& [old_extent, new_extent] : state.changed_extents) {
    if (old_extent == 0 || after[*axis] * old_extent != before[*axis] * new_extent) continue;
    const int64_t outer = product(before, *axis);
    const auto target = find_batch_axis(to, outer, outer * (before[*axis] / old_extent), old_extent);
    if (!target) continue;
    to[*target] = to[*target] / old_extent * new_extent;
    return to;
  }
  return std::nullopt;
}

void rebatch_reshape(ImportState& state, const NodeView& view, const Values& inputs, Attributes& attributes) {
  const auto before = original_dims(state, view.node.input(0)), to = original_dims(state, view.node.output(0));
  if (!before || !to || !inputs[0].type().has_static_shape()) return;
  const Dims after = inputs[0].type().static_shape();
  if (*before == after) return;
  const auto* given = std::get_if<std::vector<Index>>(&attributes["shape"]);
  const auto open = [](const Index& entry) { return !entry.is_constant() || entry.constant() <= 0; };
  if (given && std::none_of(given->begin(), given->end(), open)) {
    Index count = 1;
    for (const Index& entry : *given) count = count * entry;
    if (count == Index(product(after, after.size()))) return;  // it was computed from the new extents
  }
  const auto shape = follow_reshape(state, *before, after, *to);
  if (!shape) return;
  attributes["shape"] = std::vector<Index>(shape->begin(), shape->end());
  state.shapes_changed++;
}

// Entries of Expand's shape that named an extent which has changed.
void rebatch_expand(ImportState& state, const NodeView& view, const Values& inputs, Attributes& attributes) {
  const auto before = original_dims(state, view.node.input(0));
  auto* shape = std::get_if<std::vector<Index>>(&attributes["shape"]);
  if (!before || !shape || !inputs[0].type().has_static_shape()) return;
  const Dims after = inputs[0].type().static_shape();
  for (size_t back = 1; back <= std::min(after.size(), shape->size()); back++) {
    const int64_t was = (*before)[before->size() - back], is = after[after.size() - back];
    Index& entry = (*shape)[shape->size() - back];
    if (was == is || entry != Index(was)) continue;
    entry = is;
    state.shapes_changed++;
  }
}

// Parts of a Concat that depend on no input have the old batch 1 where the others have the new one: they are repeated.
Status rebatch_concat(ImportState& state, const NodeView& view, Values& inputs, const Attributes& attributes) {
  std::vector<Dims> dims;
  for (const Value& input : inputs) {
    if (!input.type().has_static_shape()) return Unit{};
    dims.push_back(input.type().static_shape());
    if (dims.back().size() != dims[0].size()) return Unit{};
  }
  const auto* axis_attribute = attributes.contains("axis") ? std::get_if<Index>(&attributes.at("axis")) : nullptr;
  if (!axis_attribute) return Unit{};
  const auto rank = static_cast<int64_t>(dims[0].size());
  const int64_t axis = axis_attribute->constant() + (axis_attribute->constant() < 0 ? rank : 0);
  Dims wanted = dims[0];
  for (const Dims& d : dims)
    for (size_t k = 0; k < wanted.size(); k++) wanted[k] = std::max(wanted[k], d[k]);
  for (size_t i = 0; i < inputs.size(); i++) {
    std::vector<Index> shape(wanted.begin(), wanted.end());
    if (axis >= 0 && axis < rank) shape[static_cast<size_t>(axis)] = dims[i][static_cast<size_t>(axis)];
    if (shape == *inputs[i].type().shape) continue;
    const auto before = original_dims(state, view.node.input(static_cast<int>(i)));
    if (before && *before != dims[i]) continue;  // it follows already: a real contradiction
    GOPT_ASSIGN_OR_RETURN(inputs[i], state.builder.apply(OpKind::Expand, {inputs[i]}, {{"shape", shape}}));
  }
  return Unit{};
}

}  // namespace

Status rebatch_node(ImportState& state, const NodeView& view, OpKind kind, Values& inputs, Attributes& attributes) {
  if (view.scope.depth > 0 || inputs.empty() || !inputs[0]) return Unit{};
  if (kind == OpKind::Reshape) rebatch_reshape(state, view, inputs, attributes);
  if (kind == OpKind::Expand) rebatch_expand(state, view, inputs, attributes);
  if (kind == OpKind::Concat) return rebatch_concat(state, view, inputs, attributes);
  return Unit{};
}

}  // namespace gopt::ir
