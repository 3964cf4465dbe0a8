#include "scheme_layout.h"

#include <algorithm>
#include <set>

namespace gopt::rules {

bool is_block(const LayoutItem& item) { return !item.list.empty(); }

bool has_state(const LayoutItem& item, AxisState state) {
  return std::any_of(item.states.begin(), item.states.end(), [&](const auto& s) { return s.second == state; });
}

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
    const Word named = rules::product(name->word, inverse(block.word));
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
    use(name->subset, rules::product(found->word, name->word));
  }
  return reference;
}

// Lengths of lists are places only: a block of axes is proved as one. Products of extents are the same for it.
void LayoutAnalysis::check_numbers(const std::set<AtomId>& symbols, bool is_place) const {
  for (AtomId id : symbols) {
    const auto number = list_number(scheme_, atom(id).name);
    if (!number) continue;
    if (number->is_rank != is_place || (!is_place && scheme_.has_integers(number->of)))
      throw SchemeError("'" + atom(id).name + "' is not to be said here");
  }
}

void LayoutAnalysis::check_numbers(const SchemeNode& node) const {
  static const std::set<std::string> kListed{"axes", "perm", "shape", "starts", "ends", "steps", "pads", "repeats"};
  for (const auto& [name, value] : node.attributes) {
    const bool is_place = name == "axis" || name == "axes" || name == "perm";
    std::set<AtomId> symbols;
    if (const auto* items = std::get_if<SchemeItems>(&value)) {
      for (const SchemeItem& item : *items) {
        collect_symbols(item.value, symbols);
        if (!item.domain.empty() && !kListed.contains(name))
          throw SchemeError(op_info(node.op).name + ": " + name + " is not of lists");
      }
    } else {
      collect_symbols(std::get<AttributeValue>(value), symbols);
      for (AtomId id : symbols)
        if (!is_place && list_number(scheme_, atom(id).name))
          throw SchemeError("'" + atom(id).name + "' is not to be said here");
    }
    check_numbers(symbols, is_place);
  }
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
    const bool is_extent =
        name && name->subset.empty() && (name->head == AxisName::Head::Extent || name->head == AxisName::Head::One);
    if (!is_extent && is_list(scheme_, item.domain) && scheme_.has_integers(item.domain)) {
      layout.push_back(block(item.domain, {}, AxisState::Full));
      use_at(layout.back(), item);
      continue;
    }
    if (!is_extent) throw SchemeError(to_string(item.value) + " is no extent of a list's axes");
    layout.push_back(
        block(name->list, name->word, name->head == AxisName::Head::One ? AxisState::One : AxisState::Full));
  }
  return layout;
}

std::vector<Layout> LayoutAnalysis::analyze(SchemeSide& side) {
  std::map<std::string, Layout> values;
  for (const SchemeVariable& v : scheme_.variables) {
    std::set<AtomId> symbols;
    for (const SchemeItem& item : v.shape) collect_symbols(item.value, symbols);
    check_numbers(symbols, false);
    values[v.name] = extents(v.shape);
  }
  for (SchemeNode& node : side.nodes) {
    if (node.op == OpKind::Constant) {
      values[node.outputs.at(0)] = Layout(node.tensor.dims().size());
      node.rank = Index(static_cast<int64_t>(node.tensor.dims().size()));
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
    check_numbers(node);
    const Layouts outputs = outputs_of(node, inputs);
    if (outputs.size() != node.outputs.size())
      throw SchemeError(op_info(node.op).name + " has another number of outputs");
    node.rank = Index();
    for (const LayoutItem& item : outputs.front()) node.rank += length(item);
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
      word = rules::product(inverse(uses_.at(name->symbol)), word);
    if (common && *common != word) object("a condition is about several axes at once");
    common = word;
  }
}

}  // namespace gopt::rules
