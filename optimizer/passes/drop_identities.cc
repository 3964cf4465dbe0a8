#include <algorithm>
#include <set>

#include "passes/passes.h"

namespace gopt::optimizer {
namespace {

// Whether the definition reads, at every subscript, the input at the same subscript.
bool copies_by_definition(const Node& node) {
  const auto definition = define(node.op, {input_tensor(0, node.inputs.front().type())}, node.attributes);
  if (!definition.ok() || definition->outputs.size() != 1) return false;
  std::vector<AtomId> axes;
  std::vector<Index> subscripts;
  for (size_t axis = 0; axis < node.outputs.front().shape->size(); axis++) {
    axes.push_back(fresh_symbol());
    subscripts.push_back(Index::from_atom(axes.back()));
  }
  const bool copies = definition->outputs.front().at(subscripts) == read(0, subscripts);
  for (AtomId axis : axes) release_symbol(axis);
  return copies;
}

bool has_name_of_its_own(const Value& value) {
  return value.node->is(OpKind::Input) || value.node->is(OpKind::Constant);
}

}  // namespace

bool is_copy(const Node& node) {
  if (node.op == OpKind::Opaque || node.inputs.size() != 1 || node.outputs.size() != 1 || !node.inputs.front())
    return false;
  const TensorType& type = node.outputs.front();
  if (node.is(OpKind::Identity)) return true;
  if (!type.shape || !(node.inputs.front().type() == type)) return false;
  switch (node.op) {
    // Row-major order and an equal shape leave each element where it was.
    case OpKind::Reshape:
    case OpKind::Flatten:
    case OpKind::Squeeze:
    case OpKind::Unsqueeze: return true;
    default: break;
  }
  const OpInfo& info = op_info(node.op);
  if (!info.has(kDataMovement) && !info.has(kElementwise)) return false;
  return copies_by_definition(node);
}

Replacements drop_identities(const Graph& graph) {
  // An output that would become an input, a constant or another output keeps its copy, which carries its name.
  std::set<Value> outputs;
  for (const GraphOutput& output : graph.outputs()) outputs.insert(output.value);
  Replacements replacements;
  for (const NodePtr& node : graph.nodes()) {
    if (!is_copy(*node)) continue;
    const Value copy{node, 0}, original = node->inputs.front();
    if (outputs.count(copy)) {
      if (has_name_of_its_own(original) || outputs.count(original)) continue;
      outputs.insert(original);
    }
    replacements.emplace_back(copy, original);
  }
  return replacements;
}

}  // namespace gopt::optimizer
