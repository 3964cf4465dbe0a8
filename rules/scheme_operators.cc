// The table: what each operator makes of lists of axes, and which it refuses.
#include <algorithm>
#include <set>

#include "scheme_layout.h"

namespace gopt::rules {
namespace {

bool is_all(const LayoutItem& item, AxisState state) {
  return std::all_of(item.states.begin(), item.states.end(), [&](const auto& s) { return s.second == state; });
}

Layout without_empty(Layout layout) {
  std::erase_if(layout, [](const LayoutItem& item) { return is_block(item) && is_all(item, AxisState::Absent); });
  return layout;
}

// Of two values that are broadcast against each other, from the last axis on.
LayoutItem aligned(const LayoutItem& a, const LayoutItem& b) {
  if (a.list != b.list) throw SchemeError("a list of axes meets another axis");
  if (!is_block(a)) return a;
  const bool a_is_one = is_all(a, AxisState::One), b_is_one = is_all(b, AxisState::One);
  if (a.word != b.word && !a_is_one && !b_is_one) throw SchemeError("axes of " + a.list + " meet in two orders");
  LayoutItem result = a_is_one ? b : a;
  for (auto& [subset, state] : result.states) {
    const AxisState x = a.states.at(subset), y = b.states.at(subset);
    if ((x == AxisState::Absent) != (y == AxisState::Absent)) throw SchemeError("some axes of " + a.list + " are gone");
    if (x == AxisState::Full || y == AxisState::Full) state = AxisState::Full;
  }
  return result;
}

Layout aligned(const Layout& a, const Layout& b) {
  Layout result = a.size() >= b.size() ? a : b;
  const Layout& shorter = a.size() >= b.size() ? b : a;
  const size_t skipped = result.size() - shorter.size();
  for (size_t k = 0; k < shorter.size(); k++) result[skipped + k] = aligned(result[skipped + k], shorter[k]);
  return result;
}

const SchemeItems* items_of(const SchemeNode& node, const std::string& name) {
  const auto it = node.attributes.find(name);
  return it == node.attributes.end() ? nullptr : std::get_if<SchemeItems>(&it->second);
}
const SchemeItems& needed_items(const SchemeNode& node, const std::string& name) {
  const SchemeItems* items = items_of(node, name);
  if (!items) throw SchemeError(op_info(node.op).name + ": " + name + " is to be said");
  return *items;
}
Index number_of(const SchemeNode& node, const std::string& name, int64_t otherwise) {
  const auto it = node.attributes.find(name);
  return it == node.attributes.end() ? Index(otherwise) : std::get<Index>(std::get<AttributeValue>(it->second));
}

}  // namespace

Layout LayoutAnalysis::elementwise(const Layouts& inputs) const {
  Layout result = inputs.at(0);
  for (size_t k = 1; k < inputs.size(); k++) result = aligned(result, inputs[k]);
  return result;
}

Layout LayoutAnalysis::product(const Layout& a, const Layout& b) const {
  const auto is_matrix = [](const Layout& x) {
    return x.size() >= 2 && !is_block(x.back()) && !is_block(x[x.size() - 2]);
  };
  if (!is_matrix(a) || !is_matrix(b)) throw SchemeError("MatMul: the last two axes are single ones");
  Layout result = aligned(Layout(a.begin(), a.end() - 2), Layout(b.begin(), b.end() - 2));
  result.resize(result.size() + 2);
  return result;
}

Layout LayoutAnalysis::transposed(const SchemeNode& node, const Layout& x) {
  Layout result;
  std::set<size_t> taken;
  for (const SchemeItem& item : needed_items(node, "perm")) {
    const Reference reference = referred(x, item);
    if (!reference.subset.empty() || !taken.insert(reference.item).second)
      throw SchemeError("Transpose: perm says each axis once");
    result.push_back(x[reference.item]);
    if (reference.is_permuted) result.back().word = rules::product(result.back().word, reference.word);
  }
  if (taken.size() != x.size()) throw SchemeError("Transpose: perm says each axis once");
  return result;
}

Layout LayoutAnalysis::reduced(const SchemeNode& node, const Layout& x) {
  const bool keeps = number_of(node, "keepdims", 1) == Index(1);
  const AxisState after = keeps ? AxisState::One : AxisState::Absent;
  Layout result = x;
  std::set<size_t> dropped;
  for (const SchemeItem& item : needed_items(node, "axes")) {
    const Reference reference = referred(x, item);
    LayoutItem& target = result[reference.item];
    if (!is_block(target)) {
      if (!keeps) dropped.insert(reference.item);
      continue;
    }
    if (reference.is_permuted) throw SchemeError("axes of " + target.list + " are said by a permutation");
    if (scheme_.has_integers(target.list)) throw SchemeError("axes of " + target.list + " have integers of their own");
    for (auto& [subset, state] : target.states)
      if (reference.subset.empty() || subset == reference.subset) state = after;
  }
  for (auto it = dropped.rbegin(); it != dropped.rend(); ++it)
    result.erase(result.begin() + static_cast<ptrdiff_t>(*it));
  return without_empty(std::move(result));
}

Layout LayoutAnalysis::sliced(const SchemeNode& node, const Layout& x) {
  const SchemeItems& axes = needed_items(node, "axes");
  for (const char* name : {"starts", "ends", "steps"}) {
    const SchemeItems* items = items_of(node, name);
    if (!items) continue;
    if (items->size() != axes.size())
      throw SchemeError("Slice: " + std::string(name) + " has an entry for each of axes");
    for (size_t k = 0; k < axes.size(); k++) {
      const Reference reference = referred(x, axes[k]);
      const LayoutItem& target = x[reference.item];
      if (!is_block(target)) {
        if (!(*items)[k].domain.empty()) throw SchemeError("Slice: one axis, and entries for many");
        continue;
      }
      if (reference.is_permuted || !reference.subset.empty() || !scheme_.has_integers(target.list))
        throw SchemeError("Slice: axes of " + target.list + " have no integers of their own");
      use_at(target, (*items)[k]);
    }
  }
  return x;
}

Layout LayoutAnalysis::padded(const SchemeNode& node, const Layout& x) {
  const SchemeItems& pads = needed_items(node, "pads");
  if (node.attributes.contains("axes")) throw SchemeError("Pad: pads are said of all axes");
  if (const auto mode = node.attributes.find("mode"); mode != node.attributes.end())
    if (std::get<std::string>(std::get<AttributeValue>(mode->second)) != "constant")
      throw SchemeError("Pad: the border is a constant");
  if (pads.size() != 2 * x.size()) throw SchemeError("Pad: pads has two entries for each axis or list");
  for (size_t k = 0; k < pads.size(); k++) {
    const LayoutItem& target = x[k % x.size()];
    if (pads[k].domain != target.list) throw SchemeError("Pad: pads are in the order of the axes");
    if (!is_block(target)) continue;
    const auto name = axis_name(scheme_, pads[k].value);
    if (scheme_.has_integers(target.list))
      use_at(target, pads[k]);
    else if (!name || name->head != AxisName::Head::Zero)
      throw SchemeError("Pad: axes of " + target.list + " have no integers of their own");
  }
  return x;
}

Layout LayoutAnalysis::tiled(const SchemeNode& node, const Layout& x) const {
  const SchemeItems& repeats = needed_items(node, "repeats");
  if (repeats.size() != x.size()) throw SchemeError("Tile: repeats has an entry for each axis or list");
  for (size_t k = 0; k < x.size(); k++) {
    const auto name = axis_name(scheme_, repeats[k].value);
    if (repeats[k].domain != x[k].list) throw SchemeError("Tile: repeats are in the order of the axes");
    if (is_block(x[k]) && (!name || name->head != AxisName::Head::One))
      throw SchemeError("Tile: a list is not repeated");
  }
  return x;
}

Layout LayoutAnalysis::squeezed(const SchemeNode& node, const Layout& x) {
  Layout result = x;
  std::set<size_t> dropped;
  for (const SchemeItem& item : needed_items(node, "axes")) {
    const Reference reference = referred(x, item);
    LayoutItem& target = result[reference.item];
    if (!is_block(target)) dropped.insert(reference.item);
    for (auto& [subset, state] : target.states) {
      if (!reference.subset.empty() && subset != reference.subset) continue;
      if (state != AxisState::One) throw SchemeError("Squeeze: axes of " + target.list + " are not of extent 1");
      state = AxisState::Absent;
    }
  }
  for (auto it = dropped.rbegin(); it != dropped.rend(); ++it)
    result.erase(result.begin() + static_cast<ptrdiff_t>(*it));
  return without_empty(std::move(result));
}

Layout LayoutAnalysis::unsqueezed(const SchemeNode& node, const Layout& x) const {
  const SchemeItems& axes = needed_items(node, "axes");
  Layout result = x;
  for (const SchemeItem& item : axes) {
    if (!item.domain.empty()) throw SchemeError("Unsqueeze: single axes alone");
    if (item.value.is_constant() && item.value.constant() < 0)
      throw SchemeError("Unsqueeze: axes count from the front");
    result.insert(result.begin() + static_cast<ptrdiff_t>(boundary_at(result, item.value)), LayoutItem{});
  }
  // Axes are places in the result: without what is at them, it is what it was.
  std::set<size_t> inserted;
  for (const SchemeItem& item : axes) inserted.insert(single_at(result, item.value));
  Layout rest = result;
  for (auto it = inserted.rbegin(); it != inserted.rend(); ++it) rest.erase(rest.begin() + static_cast<ptrdiff_t>(*it));
  if (rest != x) throw SchemeError("Unsqueeze: axes are in their order");
  return result;
}

Layout LayoutAnalysis::reshaped(const SchemeNode& node, const Layout& x) {
  const SchemeItems& shape = needed_items(node, "shape");
  for (const SchemeItem& item : shape)
    if (item.value.is_constant() && item.value.constant() <= 0) throw SchemeError("Reshape: all extents are said");
  Layout result = extents(shape);
  check_flat(x);
  check_flat(result);
  return result;
}

Layout LayoutAnalysis::normalized(const SchemeNode& node, const Layouts& inputs) const {
  const size_t first = boundary_at(inputs[0], number_of(node, "axis", -1));
  for (size_t k = first; k < inputs[0].size(); k++)
    if (is_block(inputs[0][k]) && scheme_.has_integers(inputs[0][k].list))
      throw SchemeError("axes of " + inputs[0][k].list + " have integers of their own");
  for (size_t k = 1; k < inputs.size(); k++)
    if (inputs[k].size() > inputs[0].size() - first || aligned(inputs[0], inputs[k]) != inputs[0])
      throw SchemeError("LayerNormalization: scale and bias are of the axes that are normalized");
  return inputs[0];
}

Layout LayoutAnalysis::gathered(const SchemeNode& node, const Layouts& inputs) const {
  const size_t axis = single_at(inputs.at(0), number_of(node, "axis", 0));
  Layout result(inputs[0].begin(), inputs[0].begin() + static_cast<ptrdiff_t>(axis));
  result.insert(result.end(), inputs.at(1).begin(), inputs[1].end());
  result.insert(result.end(), inputs[0].begin() + static_cast<ptrdiff_t>(axis) + 1, inputs[0].end());
  return result;
}

std::vector<Layout> LayoutAnalysis::outputs_of(const SchemeNode& node, const Layouts& inputs) {
  const OpInfo& info = op_info(node.op);
  if (info.has(kElementwise)) return {elementwise(inputs)};
  switch (node.op) {
    case OpKind::MatMul: return {product(inputs.at(0), inputs.at(1))};
    case OpKind::Transpose: return {transposed(node, inputs.at(0))};
    case OpKind::ReduceSum:
    case OpKind::ReduceMean:
    case OpKind::ReduceMax:
    case OpKind::ReduceMin:
    case OpKind::ReduceProd:
    case OpKind::ReduceL1:
    case OpKind::ReduceL2:
    case OpKind::ReduceSumSquare:
    case OpKind::ReduceLogSum:
    case OpKind::ReduceLogSumExp: return {reduced(node, inputs.at(0))};
    case OpKind::Softmax:
    case OpKind::LogSoftmax: single_at(inputs.at(0), number_of(node, "axis", -1)); return {inputs[0]};
    case OpKind::LayerNormalization: return {normalized(node, inputs)};
    case OpKind::Concat:
      single_at(inputs.at(0), number_of(node, "axis", 0));
      for (const Layout& input : inputs)
        if (input != inputs[0]) throw SchemeError("Concat: other axes");
      return {inputs[0]};
    case OpKind::Split:
      single_at(inputs.at(0), number_of(node, "axis", 0));
      return Layouts(node.outputs.size(), inputs[0]);
    case OpKind::Slice: return {sliced(node, inputs.at(0))};
    case OpKind::Pad: return {padded(node, inputs.at(0))};
    case OpKind::Tile: return {tiled(node, inputs.at(0))};
    case OpKind::Squeeze: return {squeezed(node, inputs.at(0))};
    case OpKind::Unsqueeze: return {unsqueezed(node, inputs.at(0))};
    case OpKind::Reshape: return {reshaped(node, inputs.at(0))};
    case OpKind::Flatten:
      check_flat(inputs.at(0));
      boundary_at(inputs[0], number_of(node, "axis", 1));
      return {Layout(2)};
    case OpKind::Expand: return {aligned(inputs.at(0), extents(needed_items(node, "shape")))};
    case OpKind::Gather: return {gathered(node, inputs)};
    case OpKind::FillLike: return {inputs.at(0)};
    default: throw SchemeError(info.name + " lets no list of axes through");
  }
}

}  // namespace gopt::rules
