// What a scheme's names say under given ranks, its instances, and which of these are proved and matched.
#include "gopt/scheme.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "scheme_layout.h"
#include "scheme_names.h"

namespace gopt {

using namespace rules;

namespace {

void for_symbols(const Index& value, const std::function<void(const std::string&, AtomId)>& visit) {
  std::set<AtomId> symbols;
  collect_symbols(value, symbols);
  for (AtomId id : symbols) visit(atom(id).name, id);
}

// rank.A and size.A as numbers and products of extents.
Index with_lengths(const Scheme& scheme, const Index& value, const RankAssignment& ranks) {
  Substitution known;
  for_symbols(value, [&](const std::string& text, AtomId id) {
    const auto number = list_number(scheme, text);
    if (!number) return;
    const int length = length_of(number->of, ranks);
    Index product(1);
    for (int axis = 0; axis < length; axis++) product = product * axis_symbol(number->of, static_cast<size_t>(axis));
    known[id] = number->is_rank ? Index(length) : product;
  });
  return known.empty() ? value : substitute(value, known);
}

Substitution names_at(const Scheme& scheme, const std::set<AtomId>& symbols, size_t axis, const RankAssignment& ranks) {
  Substitution known;
  for (AtomId id : symbols)
    if (const auto name = axis_name(scheme, atom(id).name)) known[id] = value_at(*name, axis, ranks);
  return known;
}

Index at_axis(const Scheme& scheme, const Index& value, size_t axis, const RankAssignment& ranks) {
  std::set<AtomId> symbols;
  collect_symbols(value, symbols);
  return with_lengths(scheme, substitute(value, names_at(scheme, symbols, axis, ranks)), ranks);
}

// Entries that are no places: extents, bounds of slices, pads.
std::vector<Index> values_of(const Scheme& scheme, const SchemeItems& items, const RankAssignment& ranks) {
  std::vector<Index> values;
  for (const SchemeItem& item : items) {
    if (item.domain.empty()) {
      values.push_back(with_lengths(scheme, item.value, ranks));
      continue;
    }
    for (int axis = 0; axis < length_of(item.domain, ranks); axis++)
      values.push_back(at_axis(scheme, item.value, static_cast<size_t>(axis), ranks));
  }
  return values;
}

// Entries of `axes` and `perm`: a list stands for the places of its axes in the node's input.
std::vector<Index> places_of(const Scheme& scheme, const SchemeNode& node, const SchemeItems& items,
                             const RankAssignment& ranks) {
  std::vector<Index> places;
  for (const SchemeItem& item : items) {
    if (item.domain.empty()) {
      places.push_back(with_lengths(scheme, item.value, ranks));
      continue;
    }
    AxisName name = *axis_name(scheme, item.value);
    name.head = AxisName::Head::Place;
    const Index start = with_lengths(scheme, node.starts.at(name.list), ranks);
    for (int axis = 0; axis < length_of(item.domain, ranks); axis++)
      places.push_back(start + value_at(name, static_cast<size_t>(axis), ranks));
  }
  return places;
}

bool is_reduction(OpKind op) { return op_info(op).find_attribute("noop_with_empty_axes") != nullptr; }

Attributes attributes_of(const Scheme& scheme, const SchemeNode& node, const RankAssignment& ranks) {
  Attributes attributes;
  for (const auto& [name, value] : node.attributes) attributes[name] = attribute_of(scheme, node, name, ranks);
  // Over no axes a scheme reduces nothing; ONNX takes that for all axes unless told.
  if (const auto axes = attributes.find("axes"); axes != attributes.end() && is_reduction(node.op))
    if (std::get<std::vector<Index>>(axes->second).empty()) attributes["noop_with_empty_axes"] = Index(1);
  return attributes;
}

// All choices of one option for each of a number of things.
template <class T>
std::vector<std::vector<T>> choices(const std::vector<std::vector<T>>& options) {
  std::vector<std::vector<T>> all{{}};
  for (const std::vector<T>& own : options) {
    std::vector<std::vector<T>> longer;
    for (const std::vector<T>& known : all)
      for (const T& option : own) {
        longer.push_back(known);
        longer.back().push_back(option);
      }
    all = std::move(longer);
  }
  return all;
}

// Of one list: how many axes are in none of its subsets, and in each (`fewest` at least).
std::vector<std::vector<int>> splits(size_t subsets, int fewest, int most) {
  const auto counts = [&](int first) {
    std::vector<int> all;
    for (int count = first; count <= most; count++) all.push_back(count);
    return all;
  };
  std::vector<std::vector<int>> options(subsets, counts(fewest));
  options.insert(options.begin(), counts(0));
  return choices(options);
}

RankAssignment ranks_of(const Scheme& scheme, const std::vector<std::vector<int>>& split_of) {
  std::map<std::string, int> lengths, sizes;
  for (size_t k = 0; k < scheme.lists.size(); k++) {
    const std::vector<std::string> subsets = scheme.subsets_of(scheme.lists[k]);
    int& length = lengths[scheme.lists[k]];
    for (int count : split_of[k]) length += count;
    for (size_t s = 0; s < subsets.size(); s++) sizes[subsets[s]] = split_of[k][s + 1];
  }
  return plain_ranks(scheme, lengths, sizes);
}

int rank_of(const SchemeItems& shape, const RankAssignment& ranks) {
  int rank = 0;
  for (const SchemeItem& item : shape) rank += item.domain.empty() ? 1 : length_of(item.domain, ranks);
  return rank;
}

bool has_rank_within(const Scheme& scheme, const RankAssignment& ranks, int max_rank) {
  for (const SchemeVariable& variable : scheme.variables)
    if (rank_of(variable.shape, ranks) > max_rank) return false;
  for (const RankedOperator& ranked : ranked_operators(scheme, scheme.left, ranks))
    if (ranked.second > max_rank) return false;
  return true;
}

}  // namespace

bool Scheme::has_integers(const std::string& list) const {
  return std::any_of(symbols.begin(), symbols.end(), [&](const AxisSymbol& symbol) {
    return symbol.list == list && symbol.kind == AxisSymbolKind::Integers;
  });
}

std::vector<std::string> Scheme::subsets_of(const std::string& list) const {
  std::vector<std::string> names;
  for (const AxisSymbol& symbol : symbols)
    if (symbol.list == list && symbol.kind == AxisSymbolKind::Subset) names.push_back(symbol.name);
  return names;
}

Index axis_symbol(const std::string& name, size_t axis) { return symbol(name + "." + std::to_string(axis)); }

std::string to_string(const RankAssignment& ranks) {
  std::string text;
  for (const auto& [list, length] : ranks.lengths)
    text += (text.empty() ? "" : ", ") + list + "=" + std::to_string(length);
  for (const auto& [name, places] : ranks.places) text += ", " + name + "=" + to_string(places);
  return text;
}

RankAssignment plain_ranks(const Scheme& scheme, const std::map<std::string, int>& lengths,
                           const std::map<std::string, int>& subset_sizes) {
  RankAssignment ranks{lengths, {}};
  for (const std::string& list : scheme.lists) {
    const int length = lengths.at(list);
    int taken = 0;
    for (const std::string& subset : scheme.subsets_of(list)) taken += subset_sizes.at(subset);
    int next = length - taken;
    for (const AxisSymbol& symbol : scheme.symbols) {
      if (symbol.list != list || symbol.kind == AxisSymbolKind::Integers) continue;
      std::vector<Index>& places = ranks.places[symbol.name];
      const bool is_subset = symbol.kind == AxisSymbolKind::Subset;
      const int count = is_subset ? subset_sizes.at(symbol.name) : length;
      for (int k = 0; k < count; k++) places.emplace_back(is_subset ? next++ : k);
    }
  }
  return ranks;
}

bool depends_on_places(const Scheme& scheme, const SchemeAttribute& attribute) {
  const auto* items = std::get_if<SchemeItems>(&attribute);
  if (!items) return false;
  bool depends = false;
  for (const SchemeItem& item : *items)
    for_symbols(item.value, [&](const std::string& text, AtomId) {
      const auto name = axis_name(scheme, text);
      depends = depends || (name && (!name->word.empty() || !name->subset.empty()));
    });
  return depends;
}

AttributeValue attribute_of(const Scheme& scheme, const SchemeNode& node, const std::string& attribute,
                            const RankAssignment& ranks) {
  const SchemeAttribute& value = node.attributes.at(attribute);
  if (const auto* items = std::get_if<SchemeItems>(&value)) {
    const bool holds_places = attribute == "axes" || attribute == "perm";
    return holds_places ? places_of(scheme, node, *items, ranks) : values_of(scheme, *items, ranks);
  }
  AttributeValue plain = std::get<AttributeValue>(value);
  if (auto* index = std::get_if<Index>(&plain)) *index = with_lengths(scheme, *index, ranks);
  return plain;
}

TensorType type_of(const Scheme& scheme, const SchemeVariable& variable, const RankAssignment& ranks) {
  return {variable.element, values_of(scheme, variable.shape, ranks)};
}

Result<SchemeGraph> side_of(const Scheme& scheme, const SchemeSide& side, const RankAssignment& ranks) {
  GraphBuilder builder;
  std::map<std::string, Value> values;
  std::vector<NodePtr> nodes;
  for (const SchemeVariable& variable : scheme.variables)
    values[variable.name] = builder.input(variable.name, {variable.element, values_of(scheme, variable.shape, ranks)});
  for (const SchemeNode& node : side.nodes) {
    if (node.op == OpKind::Constant) {
      values[node.outputs.at(0)] = builder.constant(node.tensor, node.outputs[0]);
      nodes.push_back(values[node.outputs[0]].node);
      continue;
    }
    std::vector<Value> inputs;
    for (const std::string& input : node.inputs) inputs.push_back(input.empty() ? Value{} : values.at(input));
    GOPT_ASSIGN_OR_RETURN(const NodePtr made,
                          builder.add(node.op, std::move(inputs), attributes_of(scheme, node, ranks),
                                      static_cast<int>(node.outputs.size()), "", node.outputs));
    for (size_t k = 0; k < node.outputs.size(); k++) values[node.outputs[k]] = Value{made, static_cast<int>(k)};
    nodes.push_back(made);
  }
  for (size_t k = 0; k < side.outputs.size(); k++)
    builder.output("out" + std::to_string(k), values.at(side.outputs[k]));
  return SchemeGraph{builder.build(), std::move(nodes)};
}

Cond condition_of(const Scheme& scheme, const RankAssignment& ranks) {
  Cond all;
  for (const SchemeCondition& condition : scheme.conditions) {
    std::set<AtomId> symbols;
    collect_symbols(condition.cond, symbols);
    const int count = condition.domain.empty() ? 1 : length_of(condition.domain, ranks);
    for (int axis = 0; axis < count; axis++) {
      Substitution known = names_at(scheme, symbols, static_cast<size_t>(axis), ranks);
      for (AtomId id : symbols)
        if (list_number(scheme, atom(id).name)) known[id] = with_lengths(scheme, Index::from_atom(id), ranks);
      all = all && substitute(condition.cond, known);
    }
  }
  return all;
}

Result<RewriteRule> instance_of(const RewriteRule& rule, const RankAssignment& ranks) {
  const Scheme& scheme = *rule.scheme;
  RewriteRule instance = rule;
  instance.scheme = nullptr;
  instance.proof.reset();
  instance.variables.clear();
  try {
    for (const SchemeVariable& variable : scheme.variables)
      instance.variables.push_back({variable.name, variable.kind, type_of(scheme, variable, ranks), false});
    instance.condition = condition_of(scheme, ranks);
    GOPT_ASSIGN_OR_RETURN(const SchemeGraph left, side_of(scheme, scheme.left, ranks));
    GOPT_ASSIGN_OR_RETURN(const SchemeGraph right, side_of(scheme, scheme.right, ranks));
    instance.left = left.graph;
    instance.right = right.graph;
  } catch (const std::overflow_error& e) {
    return Error{e.what()};
  }
  return instance;
}

std::vector<RankAssignment> ranks_to_prove(const Scheme& scheme) {
  std::vector<std::vector<std::vector<int>>> options;
  for (const std::string& list : scheme.lists)
    options.push_back(splits(scheme.subsets_of(list).size(), 0, scheme.has_integers(list) ? scheme.bound : 1));
  std::vector<RankAssignment> all;
  for (const auto& choice : choices(options)) all.push_back(ranks_of(scheme, choice));
  return all;
}

std::vector<RankedOperator> ranked_operators(const Scheme& scheme, const SchemeSide& side,
                                             const RankAssignment& ranks) {
  std::vector<RankedOperator> ranked;
  for (const SchemeNode& node : side.nodes)
    ranked.emplace_back(node.op, static_cast<int>(with_lengths(scheme, node.rank, ranks).constant()));
  return ranked;
}

std::vector<RankAssignment> ranks_to_match(const Scheme& scheme, int max_rank) {
  std::vector<std::vector<std::vector<int>>> options;
  for (const std::string& list : scheme.lists) {
    options.emplace_back();
    for (const std::vector<int>& split : splits(scheme.subsets_of(list).size(), 1, max_rank)) {
      int length = 0;
      for (int count : split) length += count;
      if (length <= max_rank) options.back().push_back(split);
    }
  }
  std::vector<RankAssignment> all;
  for (const auto& choice : choices(options)) {
    RankAssignment ranks = ranks_of(scheme, choice);
    if (!has_rank_within(scheme, ranks, max_rank)) continue;
    for (auto& [name, places] : ranks.places)
      for (size_t k = 0; k < places.size(); k++) places[k] = axis_symbol(name, k);
    all.push_back(std::move(ranks));
  }
  return all;
}

Status analyze(Scheme& scheme) {
  try {
    for (const std::string& list : scheme.lists)
      if (scheme.has_integers(list) && !scheme.subsets_of(list).empty())
        throw SchemeError("list " + list + " has subsets and integers");
    LayoutAnalysis analysis(scheme);
    const std::vector<Layout> left = analysis.analyze(scheme.left), right = analysis.analyze(scheme.right);
    if (left != right) analysis.object("the sides' axes are in different orders");
    for (const SchemeCondition& condition : scheme.conditions) analysis.analyze(condition);
    scheme.objection = analysis.objection();
    const auto has_integers = [&](const std::string& list) { return scheme.has_integers(list); };
    scheme.bound = std::any_of(scheme.lists.begin(), scheme.lists.end(), has_integers) ? witness_axes(scheme) : 1;
  } catch (const SchemeError& e) {
    return Error{e.what()};
  }
  return Unit{};
}

}  // namespace gopt
