// Patterns of rules at any rank. Lengths of lists are fixed, one pattern for each; permutations and subsets are not: a
// pattern holds symbols for their places, and expressions of these where the right side composes or inverts them.
#include <unordered_map>

#include "gopt/scheme.h"
#include "matching/pattern.h"

namespace gopt::optimizer {
namespace {

std::map<std::string, int> sizes_of(const RankAssignment& ranks) {
  std::map<std::string, int> sizes;
  for (const auto& [name, places] : ranks.places) sizes[name] = static_cast<int>(places.size());
  return sizes;
}

class SchemePatternMaker {
 public:
  SchemePatternMaker(const Scheme& scheme, const RankAssignment& ranks)
      : scheme_(scheme), ranks_(ranks), plain_(plain_ranks(scheme, ranks.lengths, sizes_of(ranks))) {}

  Result<Pattern> make() {
    Pattern pattern;
    for (const SchemeVariable& variable : scheme_.variables) {
      const TensorType type = type_of(scheme_, variable, ranks_);
      for (const Index& extent : *type.shape) collect_symbols(extent, pattern.extent_symbols);
      pattern.variables.push_back({variable.kind, type.element, *type.shape, false});
    }
    bound_ = pattern.extent_symbols;
    GOPT_ASSIGN_OR_RETURN(pattern.left, side(scheme_.left));
    collect(pattern.left, bound_);
    GOPT_ASSIGN_OR_RETURN(pattern.right, side(scheme_.right));
    pattern.condition = condition_of(scheme_, ranks_) && places_are_of_lists();
    std::set<AtomId> used;
    collect(pattern.right, used);
    collect_symbols(pattern.condition, used);
    for (AtomId id : used)
      if (!bound_.count(id)) return Error{"symbol `" + atom(id).name + "` is not bound by its left side"};
    rename(pattern);
    GOPT_RETURN_IF_ERROR(plan_walk(pattern));
    return pattern;
  }

 private:
  static void collect(const PatternSide& side, std::set<AtomId>& symbols) {
    for (const PatternNode& node : side.nodes)
      for (const auto& [name, value] : node.attributes) collect_symbols(value, symbols);
  }

  // Canonical attributes are those of the plain permutations and subsets, and with them those of all others.
  Result<PatternSide> side(const SchemeSide& lines) {
    GOPT_ASSIGN_OR_RETURN(const SchemeGraph plain, side_of(scheme_, lines, plain_));
    PatternSide made;
    std::unordered_map<std::string, PatternValue> values;
    for (size_t i = 0; i < scheme_.variables.size(); i++)
      values[scheme_.variables[i].name] = {static_cast<int>(i), -1, 0};
    for (size_t i = 0; i < lines.nodes.size(); i++) {
      const SchemeNode& line = lines.nodes[i];
      const Node& node = *plain.nodes[i];
      PatternNode own{
          .op = line.op, .inputs = {}, .attributes = node.attributes, .outputs = node.outputs, .tensor = line.tensor};
      for (const std::string& input : line.inputs)
        own.inputs.push_back(input.empty() ? PatternValue{} : values.at(input));
      for (const auto& [name, value] : line.attributes)
        if (depends_on_places(scheme_, value)) own.attributes[name] = attribute_of(scheme_, line, name, ranks_);
      own.is_commutative = line.op != OpKind::Constant && op_info(line.op).has(kCommutative);
      for (size_t k = 0; k < line.outputs.size(); k++)
        values[line.outputs[k]] = {-1, static_cast<int>(i), static_cast<int>(k)};
      made.nodes.push_back(std::move(own));
    }
    for (const std::string& output : lines.outputs) made.outputs.push_back(values.at(output));
    return made;
  }

  // A permutation of some axes may, in a model, be one of more.
  Cond places_are_of_lists() const {
    Cond all;
    for (const AxisSymbol& symbol : scheme_.symbols) {
      const auto places = ranks_.places.find(symbol.name);
      if (places == ranks_.places.end()) continue;
      for (const Index& place : places->second)
        if (bound_.count(*place.as_atom())) all = all && within(place, Index(0), Index(ranks_.lengths.at(symbol.list)));
    }
    return all;
  }

  void rename(Pattern& pattern) const {
    Substitution names;
    for (AtomId id : bound_) names[id] = symbol("?" + atom(id).name);
    for (PatternVariable& variable : pattern.variables)
      for (Index& extent : variable.shape) extent = substitute(extent, names);
    for (PatternSide* side : {&pattern.left, &pattern.right})
      for (PatternNode& node : side->nodes)
        for (auto& [name, value] : node.attributes) {
          if (auto* index = std::get_if<Index>(&value)) *index = substitute(*index, names);
          if (auto* list = std::get_if<std::vector<Index>>(&value))
            for (Index& index : *list) index = substitute(index, names);
        }
    pattern.condition = substitute(pattern.condition, names);
    std::set<AtomId> extents;
    for (AtomId id : pattern.extent_symbols) extents.insert(*names.at(id).as_atom());
    pattern.extent_symbols = std::move(extents);
  }

  const Scheme& scheme_;
  const RankAssignment& ranks_;
  const RankAssignment plain_;
  std::set<AtomId> bound_;
};

}  // namespace

Result<Pattern> compile_at_ranks(const RewriteRule& rule, const std::string& hash, const RankAssignment& ranks) {
  if (rule.is_partial()) return Error{"its sides are equal on a part of the output only"};
  GOPT_ASSIGN_OR_RETURN(Pattern pattern, SchemePatternMaker(*rule.scheme, ranks).make());
  name_after(rule, hash, pattern);
  return pattern;
}

}  // namespace gopt::optimizer
