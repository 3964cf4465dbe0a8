#include "node_work.h"

#include <unordered_map>

namespace gopt::planner {
namespace {

std::vector<TensorExpr> input_tensors(const Node& node) {
  std::vector<TensorExpr> inputs;
  for (size_t k = 0; k < node.inputs.size(); k++) {
    const Value& v = node.inputs[k];
    const bool has_shape = v && v.type().shape;
    inputs.push_back(has_shape ? input_tensor(static_cast<int>(k), v.type()) : TensorExpr{});
    if (v && v.node->is(OpKind::Constant)) inputs.back().data = &v.node->tensor;
  }
  return inputs;
}

bool has_reduction(const TensorExpr& output) {
  std::vector<Index> somewhere;
  for (size_t k = 0; k < output.shape.size(); k++) somewhere.push_back(symbol("at" + std::to_string(k)));
  return output.at(somewhere)->height > 0;
}

NodeWork compute(const Node& node) {
  NodeWork work;
  const auto definition = define(node.op, input_tensors(node), node.attributes, static_cast<int>(node.outputs.size()));
  if (!definition.ok()) return work;
  const bool moves = op_info(node.op).has(kDataMovement) || op_info(node.op).has(kShapeOnly);
  for (const TensorExpr& output : definition->outputs) {
    if (!moves) work.operations += estimate_work(output).operations;
    work.reduces = work.reduces || has_reduction(output);
  }
  return work;
}

}  // namespace

const NodeWork& work_of(const Node& node) {
  thread_local std::unordered_map<Hash128, NodeWork, HashOfHash128> known;
  const auto [it, is_new] = known.try_emplace(node.hash);
  if (is_new && !node.is(OpKind::Input) && !node.is(OpKind::Constant) && !node.is(OpKind::Opaque))
    it->second = compute(node);
  return it->second;
}

}  // namespace gopt::planner
