// Nodes that are no computation at all: reshapes and contiguous slices lie inside their input, and the inputs of a
// concatenation along the outermost axis that matters lie inside its output, written there by whoever makes them.
#include <algorithm>
#include <set>

#include "cover.h"
#include "gopt/node_attributes.h"
#include "node_work.h"

namespace gopt::planner {

uint32_t Cover::root_of(uint32_t value, Index* offset) const {
  Index sum(0);
  while (values[value].parent >= 0) {
    sum += values[value].parent_offset;
    value = static_cast<uint32_t>(values[value].parent);
  }
  if (offset) *offset = sum;
  return value;
}

namespace {

std::optional<int64_t> attribute_int(const Node& node, const char* name) {
  auto it = node.attributes.find(name);
  if (it == node.attributes.end() || !std::holds_alternative<Index>(it->second)) return std::nullopt;
  return std::get<Index>(it->second).as_constant();
}

std::optional<std::vector<int64_t>> attribute_ints(const Node& node, const char* name) {
  auto it = node.attributes.find(name);
  if (it == node.attributes.end() || !std::holds_alternative<std::vector<Index>>(it->second)) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Index& i : std::get<std::vector<Index>>(it->second)) {
    if (!i.is_constant()) return std::nullopt;
    numbers.push_back(i.constant());
  }
  return numbers;
}

// Where an output begins along the one axis that is cut.
struct Cut {
  size_t axis = 0;
  Index start;
};
using Offset = std::optional<Index>;  // elements before a part of a value; nothing where it is not in one piece

// Parts of lines begin where kernels can read eight elements at a time.
constexpr int64_t kAlignedChannels = 8;

class ViewChooser {
 public:
  explicit ViewChooser(Cover& cover) : cover_(cover) {
    for (uint32_t id = 0; id < cover_.nodes.size(); id++)
      roles_.insert(roles_.end(), cover_.node(id).outputs.size(), cover_.nodes[id].role);
  }

  void run() {
    for (uint32_t id = 0; id < cover_.nodes.size(); id++)
      if (cover_.nodes[id].role == Role::Generated) look_into_input(id);
    if (cover_.options.target.without.contains(kPieces)) return;
    // Later concatenations first: an earlier one is then often a part of a later one.
    for (uint32_t id = static_cast<uint32_t>(cover_.nodes.size()); id-- > 0;)
      if (cover_.nodes[id].role == Role::Generated && cover_.node(id).is(OpKind::Concat)) concatenate_in_place(id);
  }

 private:
  uint32_t input_index(uint32_t id, size_t position) const { return cover_.index_of(cover_.node(id).inputs[position]); }
  ValueCover& output(uint32_t id, size_t o) { return cover_.values[cover_.nodes[id].first_value + o]; }
  Role maker_role(uint32_t value) const { return roles_[value]; }

  void look_into_input(uint32_t id) {
    const Node& node = cover_.node(id);
    std::vector<Offset> offsets;
    if (is_within_kernel(id)) return;
    if (work_of(node).keeps_order) {
      if (same_memory(cover_.values[input_index(id, 0)], output(id, 0))) offsets = {Index(0)};
    } else if (node.is(OpKind::Transpose)) {
      if (is_relabelled(node, cover_.values[input_index(id, 0)], output(id, 0))) offsets = {Index(0)};
    } else if (node.is(OpKind::Split) || node.is(OpKind::Slice) || node.is(OpKind::Gather)) {
      for (size_t o = 0; o < node.outputs.size(); o++) offsets.push_back(slice_offset(id, o));
    }
    if (offsets.empty() || std::find(offsets.begin(), offsets.end(), std::nullopt) != offsets.end()) return;
    cover_.nodes[id].role = Role::View;
    for (size_t o = 0; o < offsets.size(); o++) {
      output(id, o).parent = static_cast<int>(input_index(id, 0));
      output(id, o).parent_offset = *offsets[o];
    }
  }

  // Between a reduction and what is computed of each element: one kernel on CUDA may be all of these (fusion.cc).
  bool is_within_kernel(uint32_t id) const {
    const Node& node = cover_.node(id);
    const Target& target = cover_.options.target;
    if (target.kind != TargetKind::Cuda || target.without.contains(kInlining) || !work_of(node).keeps_order)
      return false;
    const ValueCover &in = cover_.of(node.inputs[0]), &out = cover_.values[cover_.nodes[id].first_value];
    const uint32_t maker = cover_.id_of(node.inputs[0].node.get());
    const auto is_computed = [&](const Use& use) {
      return cover_.nodes[use.node].role == Role::Generated && op_info(cover_.node(use.node).op).has(kElementwise);
    };
    return in.uses.size() == 1 && !in.is_output && !out.is_output && !out.uses.empty() &&
           cover_.nodes[maker].role == Role::Generated && work_of(cover_.node(maker)).reduces &&
           std::ranges::all_of(out.uses, is_computed);
  }

  static bool same_memory(const ValueCover& in, const ValueCover& out) {
    if (in.stored != out.stored) return false;
    if (in.layout == out.layout) return in.layout.is_plain() || in.shape == out.shape;
    const auto is_as_plain = [](const ValueCover& value) {
      return !value.layout.is_in_parts() && lies_as(value.layout, Layout(), value.dims);
    };
    if (is_as_plain(in) && is_as_plain(out)) return true;
    // One pixel and whole blocks of channels: every layout is the same.
    const ValueCover& image = in.layout.is_plain() ? out : in;
    if (image.layout.is_in_parts() && image.shape[0] != Index(1)) return false;
    return image.shape.size() == 4 && image.shape[2] == Index(1) && image.shape[3] == Index(1) &&
           is_whole_blocks(image.shape[1], image.layout.lanes()) && (in.layout.is_plain() || out.layout.is_plain());
  }

  // Axes in another order lie in the same one: pixels whose channels come last are an image of channels last.
  static bool is_relabelled(const Node& transpose, const ValueCover& in, const ValueCover& out) {
    for (const ValueCover* value : {&in, &out})
      if (value->layout.is_blocked() || value->layout.is_in_parts() || value->is_empty()) return false;
    const size_t rank = in.shape.size();
    std::vector<size_t> from, to;  // axes of the input in memory, before and after
    for (const size_t axis : in.layout.axes(rank))
      if (in.shape[axis] != Index(1)) from.push_back(axis);
    const std::vector<size_t> order = transposed_order(transpose, rank);
    for (const size_t axis : out.layout.axes(rank))
      if (out.shape[axis] != Index(1)) to.push_back(order[axis]);
    return in.stored == out.stored && from == to;
  }

  static bool is_whole_blocks(const Index& channels, int lanes) {
    return channels.is_constant() && channels.constant() % lanes == 0;
  }

  std::optional<Cut> find_cut(uint32_t id, size_t o) {
    const Node& node = cover_.node(id);
    const Shape& in = cover_.values[input_index(id, 0)].shape;
    auto normal = [&](int64_t axis) {
      return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(in.size()) : axis);
    };
    const auto axis = attribute_int(node, "axis");
    if (node.is(OpKind::Split)) {
      Cut cut{normal(axis.value_or(0)), Index(0)};
      for (size_t before = 0; before < o; before++) cut.start += output(id, before).shape[cut.axis];
      return cut;
    }
    if (node.is(OpKind::Gather)) {
      const Node& index = *node.inputs[1].node;
      if (!axis || !index.is(OpKind::Constant) || index.tensor.count() != 1) return std::nullopt;
      const int64_t start = index.tensor.to_ints()[0];
      return Cut{normal(*axis), start < 0 ? Index(start) + in[normal(*axis)] : Index(start)};
    }
    const auto starts = attribute_ints(node, "starts"), axes = attribute_ints(node, "axes"),
               steps = attribute_ints(node, "steps");
    if (!starts || starts->size() != 1 || (steps && (*steps)[0] != 1)) return std::nullopt;
    const size_t cut_axis = normal(axes ? (*axes)[0] : 0);
    const int64_t start = (*starts)[0];
    if (start == 0) return Cut{cut_axis, Index(0)};
    if (!in[cut_axis].is_constant()) return std::nullopt;  // where it begins depends on the size
    const int64_t extent = in[cut_axis].constant();
    return Cut{cut_axis, Index(std::clamp<int64_t>(start < 0 ? start + extent : start, 0, extent))};
  }

  // Elements before a contiguous slice.
  Offset slice_offset(uint32_t id, size_t o) {
    const ValueCover &in = cover_.values[input_index(id, 0)], &out = output(id, o);
    const auto cut = find_cut(id, o);
    if (!cut || in.layout != out.layout || in.stored != out.stored || out.is_empty()) return std::nullopt;
    return part_offset(in, out, *cut);
  }

  // Where a part of `whole` that begins at the cut lies in memory: in one piece where nothing that varies more slowly
  // than the axis that is cut has more than one place.
  static Offset part_offset(const ValueCover& whole, const ValueCover& part, const Cut& cut) {
    const Layout& layout = whole.layout;
    if (layout.is_in_parts())
      return cut.axis == 1 && is_whole_blocks(cut.start, kAlignedChannels) ? Offset(cut.start) : std::nullopt;
    const std::vector<size_t> axes = layout.axes(whole.shape.size());
    const Shape extents = layout.extents(whole.shape);
    size_t at = 0;
    for (; axes[at] != cut.axis; at++)
      if (extents[at] != Index(1)) return std::nullopt;
    Index after(1);
    for (size_t d = at + 1; d < axes.size(); d++) after = after * extents[d];
    if (!layout.is_blocked() || cut.axis != 1) return cut.start * after;
    const int lanes = layout.lanes();
    if (!is_whole_blocks(cut.start, lanes)) return std::nullopt;
    if (!is_whole_blocks(part.shape[1], lanes) && cut.start + part.shape[1] != whole.shape[1]) return std::nullopt;
    return Index(cut.start.constant() / lanes) * after;
  }

  void concatenate_in_place(uint32_t id) {
    const Node& node = cover_.node(id);
    const auto axis = attribute_int(node, "axis");
    ValueCover& whole = output(id, 0);
    const uint32_t whole_index = cover_.nodes[id].first_value;
    if (!axis || whole.is_empty()) return;
    Cut cut{static_cast<size_t>(*axis < 0 ? *axis + static_cast<int64_t>(whole.dims.size()) : *axis), Index(0)};
    std::vector<Index> offsets;
    for (size_t i = 0; i < node.inputs.size(); i++) {
      const ValueCover& part = cover_.values[input_index(id, i)];
      const bool is_alike = part.layout == whole.layout && part.stored == whole.stored;
      const Offset offset = is_alike ? part_offset(whole, part, cut) : std::nullopt;
      if (!offset) return;
      offsets.push_back(*offset);
      cut.start += part.shape[cut.axis];
    }
    if (all_free(id)) {
      for (size_t i = 0; i < offsets.size(); i++) {
        ValueCover& root = cover_.values[cover_.root_of(input_index(id, i))];
        root.parent = static_cast<int>(whole_index);
        root.parent_offset = offsets[i];
      }
      cover_.nodes[id].role = Role::View;
    } else if (whole.parent < 0 && already_adjacent(id, offsets)) {
      Index start;
      whole.parent = static_cast<int>(cover_.root_of(input_index(id, 0), &start));
      whole.parent_offset = start;
      cover_.nodes[id].role = Role::View;
    }
  }

  // Each input owns its memory and is made by somebody who may as well write elsewhere; one at least by a library
  // kernel, since loops of our own are better fused into one kernel that writes them all.
  bool all_free(uint32_t id) const {
    std::set<uint32_t> roots;
    bool library = false;
    for (size_t i = 0; i < cover_.node(id).inputs.size(); i++) {
      Index offset;
      const uint32_t root = cover_.root_of(input_index(id, i), &offset);
      const ValueCover& r = cover_.values[root];
      const Role role = maker_role(root);
      if (offset != Index(0) || r.is_output || r.elements() != cover_.values[input_index(id, i)].elements())
        return false;
      if (role == Role::Input || role == Role::Weight || role == Role::Unplanned) return false;
      if (!roots.insert(root).second) return false;
      library |= role == Role::Convolution || role == Role::MatrixProduct || role == Role::Attention ||
                 role == Role::Epilogue || r.uses.size() > 1;
    }
    return library;
  }

  bool already_adjacent(uint32_t id, const std::vector<Index>& offsets) const {
    Index first;
    const uint32_t root = cover_.root_of(input_index(id, 0), &first);
    if (root == cover_.nodes[id].first_value) return false;
    for (size_t i = 0; i < offsets.size(); i++) {
      Index offset;
      if (cover_.root_of(input_index(id, i), &offset) != root || offset - first != offsets[i]) return false;
    }
    return true;
  }

  Cover& cover_;
  std::vector<Role> roles_;  // of the makers of values, before any view was chosen
};

}  // namespace

void choose_views(Cover& cover) { ViewChooser(cover).run(); }

}  // namespace gopt::planner
