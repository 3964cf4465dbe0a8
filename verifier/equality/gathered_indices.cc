#include "gathered_indices.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

namespace gopt::verifier {
namespace {

bool keeps_all_elements(OpKind op) {
  switch (op) {
    case OpKind::Identity:
    case OpKind::Concat:
    case OpKind::Reshape:
    case OpKind::Flatten:
    case OpKind::Squeeze:
    case OpKind::Unsqueeze:
    case OpKind::Transpose: return true;
    default: return false;
  }
}

struct Gathering {
  Value indices;
  Index extent;  // of the axis that they are places of
};
std::vector<Gathering> gatherings_of(const Graph& side) {
  std::vector<Gathering> gatherings;
  for (const NodePtr& node : side.nodes()) {
    if (!node->is(OpKind::Gather) && !node->is(OpKind::GatherElements)) continue;
    const auto axis = node->attributes.find("axis");
    const Shape& shape = *node->inputs[0].type().shape;
    const Index place = axis == node->attributes.end() ? Index(0) : std::get<Index>(axis->second);
    const int64_t number =
        place.constant() < 0 ? place.constant() + static_cast<int64_t>(shape.size()) : place.constant();
    gatherings.push_back({node->inputs[1], shape.at(static_cast<size_t>(number))});
  }
  return gatherings;
}

// Variables of which elements are the value's; with `whole`, only those of which none is left out. Those at which one
// is gathered are no elements of what is gathered.
void collect_variables(const Value& value, bool whole, std::set<std::string>& out) {
  if (value.node->is(OpKind::Input)) out.insert(value.node->name);
  if (whole && !keeps_all_elements(value.node->op)) return;
  const bool gathers = value.node->is(OpKind::Gather) || value.node->is(OpKind::GatherElements);
  for (size_t k = 0; k < (gathers ? 1 : value.node->inputs.size()); k++)
    if (value.node->inputs[k]) collect_variables(value.node->inputs[k], whole, out);
}

}  // namespace

std::map<std::string, std::vector<Index>> index_extents(const RewriteRule& rule) {
  std::map<std::string, std::vector<Index>> extents;
  for (const Graph* side : {&rule.left, &rule.right}) {
    for (const Gathering& gathering : gatherings_of(*side)) {
      std::set<std::string> variables;
      collect_variables(gathering.indices, false, variables);
      for (const std::string& variable : variables) extents[variable].push_back(gathering.extent);
    }
  }
  return extents;
}

int64_t places_within(const std::vector<Index>& extents, const Environment& sizes) {
  std::optional<int64_t> least;
  for (const Index& extent : extents)
    if (const auto value = evaluate(extent, sizes)) least = least ? std::min(*least, *value) : *value;
  return std::max<int64_t>(least.value_or(0), 0);
}

std::string gathered_on_right_alone(const RewriteRule& rule) {
  const std::vector<Gathering> left = gatherings_of(rule.left);
  std::set<std::string> whole;
  for (const Gathering& own : left) collect_variables(own.indices, true, whole);
  for (const Gathering& own : gatherings_of(rule.right)) {
    const bool is_same = std::any_of(left.begin(), left.end(), [&](const Gathering& other) {
      return other.indices.output == own.indices.output && other.indices.node->hash == own.indices.node->hash;
    });
    if (is_same) continue;
    std::set<std::string> used;
    collect_variables(own.indices, false, used);
    for (const std::string& variable : used)
      if (!whole.count(variable)) return variable;
  }
  return "";
}

}  // namespace gopt::verifier
