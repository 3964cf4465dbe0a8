// Layouts. Values that have to lie alike (what convolutions make, and what follows them in any order of elements) form
// classes; a plan gives each class one layout, so that conversions are left at the borders only.
#include <algorithm>
#include <numeric>
#include <set>

#include "cover.h"
#include "gopt/node_attributes.h"
#include "node_work.h"

namespace gopt::planner {
namespace {

class ClassFinder {
 public:
  explicit ClassFinder(Cover& cover) : cover_(cover), parent_(cover.values.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    is_in_class_.resize(cover.values.size());
  }

  void run() {
    for (uint32_t id = 0; id < cover_.nodes.size(); id++) add_node(id);
    for (uint32_t id = 0; id < cover_.nodes.size() && cover_.options.has_free_borders; id++)
      if (cover_.nodes[id].role == Role::Input) join_any_user(cover_.nodes[id].first_value);
    for (uint32_t id = static_cast<uint32_t>(cover_.nodes.size()); id-- > 0;) leave_or_join(id);
    number_classes();
  }

 private:
  uint32_t root(uint32_t value) {
    while (parent_[value] != value) value = parent_[value] = parent_[parent_[value]];
    return value;
  }
  bool has_channels(const ValueCover& value) const {
    // Kernels for images of channels last make single channels, too.
    const int64_t fewest = cover_.options.target.kind == TargetKind::Cuda ? 1 : 2;
    return value.dims.size() >= 3 && value.dims.size() <= 5 && value.dims[1] >= fewest && value.shape[1].is_constant();
  }
  bool is_image(const ValueCover& value) const { return has_channels(value) && is_type_of_images(value.element); }
  bool is_type_of_images(ElementType type) const {
    const TargetKind target = cover_.options.target.kind;
    const bool is_of_8_bits = type == ElementType::UInt8 || type == ElementType::Int8;
    return is_library_type(type, target) || (is_of_8_bits && target == TargetKind::Cpu);
  }

  void add_node(uint32_t id) {
    const NodeCover& own = cover_.nodes[id];
    const Node& node = cover_.node(id);
    const bool of_convolution = own.role == Role::Convolution ||
                                (own.role == Role::Epilogue && cover_.nodes[own.owner].role == Role::Convolution);
    const bool follows = own.role == Role::Generated && work_of(node).follows_layout;
    if (is_made_image(id)) is_in_class_[own.first_value] = true;
    if (!of_convolution && !follows) return;
    std::vector<uint32_t> alike;  // a convolution's own image may lie otherwise
    for (const Value& input : node.inputs)
      if (own.role != Role::Convolution && input && is_in_class_[cover_.index_of(input)])
        alike.push_back(cover_.index_of(input));
    if (follows && alike.empty()) return;
    for (size_t o = 0; o < node.outputs.size(); o++) {
      const uint32_t value = own.first_value + static_cast<uint32_t>(o);
      // Sums of integers are of another type.
      const bool is_made_of_integers = of_convolution && integers_of(cover_, id) && has_channels(cover_.values[value]);
      if (!is_made_of_integers && !is_image(cover_.values[value])) continue;
      is_in_class_[value] = true;
      for (uint32_t other : alike)
        if (cover_.values[other].dims.size() == cover_.values[value].dims.size()) parent_[root(other)] = root(value);
    }
  }

  const ValueCover& made_by(uint32_t id) const { return cover_.values[cover_.nodes[id].first_value]; }

  // Whether the node moves axis number `from` to where `to` is, the axes between by one.
  bool moves_axis(uint32_t id, size_t from, size_t to) const {
    const Node& node = cover_.node(id);
    if (cover_.nodes[id].role != Role::Generated || !node.is(OpKind::Transpose)) return false;
    const size_t rank = made_by(id).dims.size();
    std::vector<size_t> moved(rank);
    std::iota(moved.begin(), moved.end(), 0);
    if (std::max(from, to) >= rank) return false;
    moved.erase(moved.begin() + static_cast<std::ptrdiff_t>(from));
    moved.insert(moved.begin() + static_cast<std::ptrdiff_t>(to), from);
    return transposed_order(node, rank) == moved;
  }
  size_t last_axis(uint32_t id) const { return made_by(id).dims.size() - 1; }

  // Pixels whose channels come last are made an image: no work where it is one of channels last.
  bool is_made_image(uint32_t id) const { return moves_axis(id, last_axis(id), 1) && is_image(made_by(id)); }

  // A generated kernel may as well write what its users want: plain, where none of them follows the layout, and theirs,
  // where all are convolutions of one class.
  void leave_or_join(uint32_t id) {
    const NodeCover& own = cover_.nodes[id];
    if (own.role != Role::Generated) return;
    const bool is_view = work_of(cover_.node(id)).keeps_order;  // unless it converts
    for (size_t o = 0; o < cover_.node(id).outputs.size(); o++) {
      const uint32_t index = own.first_value + static_cast<uint32_t>(o);
      const ValueCover& value = cover_.values[index];
      if (is_in_class_[index] && !is_wanted(value)) is_in_class_[index] = false;
      const bool may_join = !is_in_class_[index] || is_made_image(id);
      if (!is_view && may_join && is_image(value) && is_joinable(value)) join_users(index);
    }
  }

  // Convolutions of floats read images of few channels as they are.
  bool is_joinable(const ValueCover& value) const {
    return value.dims[1] > kFewChannels ||
           std::ranges::all_of(value.uses, [&](const Use& use) { return cover_.nodes[use.node].integers.has_value(); });
  }

  bool is_wanted(const ValueCover& value) const {
    return std::any_of(value.uses.begin(), value.uses.end(),
                       [&](const Use& use) { return reads_alike(use.node) || makes_pixels(use.node); });
  }
  // An image becomes pixels whose channels come last: no work where it lies so.
  bool makes_pixels(uint32_t id) const { return moves_axis(id, 1, last_axis(id)); }
  // Whether the node reads what lies as its result does.
  bool reads_alike(uint32_t node) const {
    const Role role = cover_.nodes[node].role;
    return role == Role::Convolution || role == Role::Epilogue ||
           (role == Role::Generated && work_of(cover_.node(node)).follows_layout);
  }

  void join_users(uint32_t value) {
    std::optional<uint32_t> common;
    for (const Use& use : cover_.values[value].uses) {
      const NodeCover& user = cover_.nodes[use.node];
      if (user.role != Role::Convolution || use.position != 0 || !is_in_class_[user.first_value]) return;
      const uint32_t wanted = root(user.first_value);
      if (common && *common != wanted) return;
      common = wanted;
    }
    if (!common || cover_.values[value].is_output) return;
    is_in_class_[value] = true;
    parent_[root(value)] = *common;
  }

  // An input of a part of a graph lies as those want it who read it.
  void join_any_user(uint32_t value) {
    if (!is_image(cover_.values[value]) || cover_.values[value].dims[1] <= kFewChannels) return;
    for (const Use& use : cover_.values[value].uses) {
      const NodeCover& user = cover_.nodes[use.node];
      if (!reads_alike(use.node) || !is_in_class_[user.first_value]) continue;
      if (cover_.values[user.first_value].dims.size() != cover_.values[value].dims.size()) continue;
      is_in_class_[value] = true;
      parent_[root(value)] = root(user.first_value);
    }
  }

  void number_classes() {
    std::vector<int> number(cover_.values.size(), -1);
    for (uint32_t value = 0; value < cover_.values.size(); value++) {
      if (!is_in_class_[value]) continue;
      int& own = number[root(value)];
      if (own < 0) own = cover_.layout_classes++;
      cover_.values[value].layout_class = own;
    }
  }

  Cover& cover_;
  std::vector<uint32_t> parent_;
  std::vector<bool> is_in_class_;
};

}  // namespace

std::vector<Layout> layouts_of(const Target& target) {
  const bool is_cpu = target.kind == TargetKind::Cpu;
  std::vector<Layout> layouts;
  if (is_cpu && !target.without.contains(kBlockedLayout)) layouts.push_back(Layout::blocked(target.vector_lanes));
  if (is_cpu && !target.without.contains(kChannelsLastLayout)) layouts.push_back(Layout::channels_last());
  layouts.emplace_back();
  if (!is_cpu && !target.without.contains(kChannelsLastLayout)) layouts.push_back(Layout::channels_last());
  return layouts;
}

namespace {
// Whether some image is cut from channels, or joined along them.
bool has_parts(const Cover& cover) {
  for (uint32_t id = 0; id < cover.nodes.size(); id++) {
    const Node& node = cover.node(id);
    if (!node.is(OpKind::Concat) && !node.is(OpKind::Split) && !node.is(OpKind::Slice)) continue;
    if (cover.nodes[id].role == Role::Generated && cover.values[cover.nodes[id].first_value].layout_class >= 0)
      return true;
  }
  return false;
}
}  // namespace

std::vector<Layout> layouts_for(const Cover& cover) {
  const Target& target = cover.options.target;
  std::vector<Layout> layouts = layouts_of(target);
  const bool is_switched_off = target.without.contains(kChannelsLastLayout) || target.without.contains(kPartsLayout);
  if (target.kind == TargetKind::Cuda && !is_switched_off && has_parts(cover))
    layouts.push_back(Layout::channels_last_in_parts());
  return layouts;
}

bool lies_as(const Layout& layout, const Layout& wanted, const std::vector<int64_t>& dims) {
  if (layout == wanted || (layout.is_channels_last() && wanted.is_channels_last())) return true;
  const auto is_packed = [](const Layout& l) { return l.is_plain() || (l.is_channels_last() && l.line() == 0); };
  return dims.size() > 2 && dims[1] == 1 && is_packed(layout) && is_packed(wanted);
}

void find_layout_classes(Cover& cover) { ClassFinder(cover).run(); }

void choose_layouts(Cover& cover) {
  // Convolutions of integers are of one layout alone.
  std::set<int> of_integers;
  for (uint32_t id = 0; id < cover.nodes.size(); id++)
    if (integers_of(cover, id)) of_integers.insert(cover.values[cover.nodes[id].first_value].layout_class);
  for (ValueCover& value : cover.values) {
    if (value.layout_class < 0) continue;
    if (of_integers.contains(value.layout_class)) {
      value.layout = Layout::channels_last();
      continue;
    }
    const auto number = static_cast<size_t>(value.layout_class);
    value.layout = number < cover.layouts.size() ? cover.layouts[number] : cover.layout;
  }
}

}  // namespace gopt::planner
