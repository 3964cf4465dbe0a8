#include "scheme_layout.h"

#include <algorithm>
#include <set>

namespace gopt {

struct LayoutAnalysis::Reference {
  size_t item = 0;
  bool is_permuted = false;
  Word word;           // is_permuted
  std::string subset;  // empty: the whole item
};

namespace {

bool is_block(const LayoutItem& item) { return !item.list.empty(); }

bool has_state(const LayoutItem& item, AxisState state) {
  return std::any_of(item.states.begin(), item.states.end(), [&](const auto& s) { return s.second == state; });
}
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

void LayoutAnalysis::object(const std::string& why) {
  if (objection_.empty()) objection_ = why;
}

LayoutItem LayoutAnalysis::block(const std::string& list, const Word& word, AxisState state) const {
  LayoutItem item{list, word, {{"", state}}};
  for (const std::string& subset : scheme_.subsets_of(list)) item.states[subset] = state;
  return item;
}

Index LayoutAnalysis::length(const LayoutItem& item) const {
  if (!is_block(item)) return Index(1);
  Index rank = symbol("rank." + item.list);
  for (const auto& [subset, state] : item.states)
    if (!subset.empty() && state == AxisState::Absent) rank = rank - symbol("rank." + subset);
  return rank;
}

size_t LayoutAnalysis::boundary_at(const Layout& layout, const Index& position) const {
  Index total;
  for (const LayoutItem& item : layout) total += length(item);
  const bool from_end = position.is_constant() && position.constant() < 0;
  const Index wanted = from_end ? total + position : position;
  Index at;
  for (size_t k = 0; k <= layout.size(); k++) {
    if (at == wanted) return k;
    if (k < layout.size()) at += length(layout[k]);
  }
  throw SchemeError("no axis begins at " + to_string(position));
}

size_t LayoutAnalysis::single_at(const Layout& layout, const Index& position) const {
  // Of a list of length 0 and the axis after it, the axis is meant: lists are passed.
  size_t k = boundary_at(layout, position);
  if (k < layout.size() && !is_block(layout[k])) return k;
  throw SchemeError("no single axis is at " + to_string(position));
}

void LayoutAnalysis::use(const std::string& name, const Word& word) {
  const auto [it, is_new] = uses_.emplace(name, word);
  if (!is_new && it->second != word)
    object("'" + name + "' is read in two orders of its axes: " + to_string(it->second) + ", " + to_string(word));
}

// What an expression at each axis of the block reads.
void LayoutAnalysis::use_at(const LayoutItem& block, const SchemeItem& item) {
  if (item.domain != block.list) throw SchemeError("an entry for each axis of " + block.list + " is to be said");
  std::set<AtomId> symbols;
  collect_symbols(item.value, symbols);
  for (AtomId id : symbols) {
    const auto name = axis_name(scheme_, atom(id).name);
    if (!name) {
      if (list_number(scheme_, atom(id).name)) throw SchemeError("'" + atom(id).name + "' is no number of one axis");
      continue;
    }
    if (name->head == AxisName::Head::Place) throw SchemeError("'" + atom(id).name + "' is a place");
    const Word named = gopt::product(name->word, inverse(block.word));
    if (name->head == AxisName::Head::Integer) use(name->symbol, named);
    if (name->head == AxisName::Head::Extent && !named.empty())
      object("'" + atom(id).name + "' is not the extent of the axis at which it is read");
  }
}

LayoutAnalysis::Reference LayoutAnalysis::referred(const Layout& layout, const SchemeItem& item) {
  Reference reference;
  if (item.domain.empty()) {
    reference.item = single_at(layout, item.value);
    return reference;
  }
  const auto name = axis_name(scheme_, item.value);
  if (!name) throw SchemeError(to_string(item.value) + " is no place of a list");
  const auto is_of_list = [&](const LayoutItem& known) { return known.list == name->list; };
  const auto found = std::find_if(layout.begin(), layout.end(), is_of_list);
  if (found == layout.end()) throw SchemeError("no axes of " + name->list + " are here");
  if (std::any_of(found + 1, layout.end(), is_of_list)) throw SchemeError("axes of " + name->list + " are here twice");
  if (has_state(*found, AxisState::Absent)) throw SchemeError("some axes of " + name->list + " are gone");
  reference.item = static_cast<size_t>(found - layout.begin());
  reference.subset = name->subset;
  if (name->head == AxisName::Head::Extent && name->word.empty() && name->subset.empty()) return reference;
  if (name->head != AxisName::Head::Place) throw SchemeError(to_string(item.value) + " is no place of a list");
  if (name->subset.empty()) {
    reference.is_permuted = true;
    reference.word = name->word;
  } else {
    use(name->subset, gopt::product(found->word, name->word));
  }
  return reference;
}

// A list in which row-major numbers of its axes count: it has to be in its own order, and whole.
void LayoutAnalysis::check_flat(const Layout& layout) const {
  for (const LayoutItem& item : layout) {
    if (!is_block(item)) continue;
    if (scheme_.has_integers(item.list)) throw SchemeError("axes of " + item.list + " have integers of their own");
    if (!scheme_.subsets_of(item.list).empty()) throw SchemeError("some axes of " + item.list + " are a subset");
    if (!item.word.empty()) throw SchemeError("axes of " + item.list + " are in another order");
  }
}

Layout LayoutAnalysis::extents(const SchemeItems& items) {
  Layout layout;
  for (const SchemeItem& item : items) {
    if (item.domain.empty()) {
      layout.emplace_back();
      continue;
    }
    const auto name = axis_name(scheme_, item.value);
    if (!name && is_list(scheme_, item.domain) && scheme_.has_integers(item.domain)) {
      layout.push_back(block(item.domain, {}, AxisState::Full));
      use_at(layout.back(), item);
      continue;
    }
    const bool is_extent =
        name && name->subset.empty() && (name->head == AxisName::Head::Extent || name->head == AxisName::Head::One);
    if (!is_extent) throw SchemeError(to_string(item.value) + " is no extent of a list's axes");
    layout.push_back(
        block(name->list, name->word, name->head == AxisName::Head::One ? AxisState::One : AxisState::Full));
  }
  return layout;
}

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
    if (reference.is_permuted) result.back().word = gopt::product(result.back().word, reference.word);
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
  Layout result = x;
  for (const SchemeItem& item : needed_items(node, "axes")) {
    if (!item.domain.empty()) throw SchemeError("Unsqueeze: single axes alone");
    if (item.value.is_constant() && item.value.constant() < 0)
      throw SchemeError("Unsqueeze: axes count from the front");
    result.insert(result.begin() + static_cast<ptrdiff_t>(boundary_at(result, item.value)), LayoutItem{});
  }
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

std::vector<Layout> LayoutAnalysis::analyze(SchemeSide& side) {
  std::map<std::string, Layout> values;
  for (const SchemeVariable& v : scheme_.variables) values[v.name] = extents(v.shape);
  for (SchemeNode& node : side.nodes) {
    if (node.op == OpKind::Constant) {
      values[node.outputs.at(0)] = Layout(node.tensor.dims().size());
      continue;
    }
    Layouts inputs;
    for (const std::string& name : node.inputs) {
      if (name.empty()) throw SchemeError("an input is left out");
      inputs.push_back(values.at(name));
    }
    if (inputs.empty()) throw SchemeError(op_info(node.op).name + " has no input");
    Index at;
    node.starts.clear();
    for (const LayoutItem& item : inputs[0]) {
      if (is_block(item)) node.starts.emplace(item.list, at);
      at += length(item);
    }
    const Layouts outputs = outputs_of(node, inputs);
    if (outputs.size() != node.outputs.size())
      throw SchemeError(op_info(node.op).name + " has another number of outputs");
    for (size_t k = 0; k < outputs.size(); k++) values[node.outputs[k]] = outputs[k];
  }
  Layouts returned;
  for (const std::string& name : side.outputs) returned.push_back(values.at(name));
  return returned;
}

// A condition at each axis is one of all orders where all of what it reads is moved alike.
void LayoutAnalysis::analyze(const SchemeCondition& condition) {
  std::set<AtomId> symbols;
  collect_symbols(condition.cond, symbols);
  std::optional<Word> common;
  for (AtomId id : symbols) {
    if (const auto number = list_number(scheme_, atom(id).name)) {
      if (number->is_rank)
        object("a condition speaks of the rank");
      else if (scheme_.has_integers(number->of))
        object("a condition speaks of all axes of " + number->of + " at once");
    }
    const auto name = axis_name(scheme_, atom(id).name);
    if (!name) continue;
    if (!scheme_.has_integers(name->list)) object("a condition speaks of single axes of " + name->list);
    Word word = name->word;
    if (name->head == AxisName::Head::Integer && uses_.contains(name->symbol))
      word = gopt::product(inverse(uses_.at(name->symbol)), word);
    if (common && *common != word) object("a condition is about several axes at once");
    common = word;
  }
}

namespace {

// A side written as trees: each read of a variable, and the pads that it passes on its way.
struct Reads {
  std::vector<std::pair<std::string, std::vector<size_t>>> reads;
  std::vector<std::vector<size_t>> pads;  // those above each
};

constexpr size_t kMaxReads = 64, kMaxPads = 10;

void collect_reads(const SchemeSide& side, const std::string& value, const std::vector<size_t>& above, Reads& out) {
  if (out.reads.size() > kMaxReads || out.pads.size() > kMaxPads) return;
  const auto makes = [&](const SchemeNode& node) {
    return std::find(node.outputs.begin(), node.outputs.end(), value) != node.outputs.end();
  };
  const auto node = std::find_if(side.nodes.begin(), side.nodes.end(), makes);
  if (node == side.nodes.end()) {
    out.reads.emplace_back(value, above);
    return;
  }
  std::vector<size_t> path = above;
  if (node->op == OpKind::Pad) {
    path.push_back(out.pads.size());
    out.pads.push_back(above);
  }
  for (const std::string& input : node->inputs) collect_reads(side, input, path, out);
}

bool meets(const std::vector<size_t>& path, size_t set) {
  return std::any_of(path.begin(), path.end(), [&](size_t pad) { return (set >> pad) & 1; });
}

// One axis for each pad that is known to be outside, and one fewer than the places that a variable is read at.
int witnesses(const Reads& all, size_t outside) {
  int count = 0;
  for (size_t pad = 0; pad < all.pads.size(); pad++)
    if (((outside >> pad) & 1) && !meets(all.pads[pad], outside)) count++;
  std::map<std::string, int> live;
  for (const auto& [variable, path] : all.reads)
    if (!meets(path, outside)) live[variable]++;
  for (const auto& [variable, reads] : live) count += reads - 1;
  return count;
}

}  // namespace

int witness_axes(const Scheme& scheme) {
  int most = 1;
  for (size_t k = 0; k < scheme.left.outputs.size() && k < scheme.right.outputs.size(); k++) {
    Reads all;
    collect_reads(scheme.left, scheme.left.outputs[k], {}, all);
    collect_reads(scheme.right, scheme.right.outputs[k], {}, all);
    if (all.reads.size() > kMaxReads || all.pads.size() > kMaxPads) throw SchemeError("its sides read too much");
    for (size_t outside = 0; outside < size_t{1} << all.pads.size(); outside++)
      most = std::max(most, witnesses(all, outside));
  }
  return most;
}

}  // namespace gopt
