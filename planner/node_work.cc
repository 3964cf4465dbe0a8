#include "node_work.h"

#include <algorithm>
#include <unordered_map>

#include "gopt/definition.h"

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

int64_t count_or(const TensorType& type, int64_t otherwise) {
  return type.has_static_shape() ? element_count(type.static_shape()) : otherwise;
}

}  // namespace

const NodeWork& work_of(const Node& node) {
  thread_local std::unordered_map<Hash128, NodeWork, HashOfHash128> known;
  const auto [it, is_new] = known.try_emplace(node.hash);
  if (is_new && !node.is(OpKind::Input) && !node.is(OpKind::Constant) && !node.is(OpKind::Opaque))
    it->second = compute(node);
  return it->second;
}

bool is_product(const Node& node) {
  return node.is(OpKind::Conv) || node.is(OpKind::ConvTranspose) || node.is(OpKind::MatMul) || node.is(OpKind::Gemm);
}

double product_operations(const Node& node, int64_t elements_otherwise) {
  const bool is_convolution = node.is(OpKind::Conv) || node.is(OpKind::ConvTranspose);
  // Each element of `base` takes part in as many multiply-adds as there are weights for its channel or column.
  const TensorType& base = node.is(OpKind::ConvTranspose) ? node.inputs[0].type() : node.outputs[0];
  const TensorType& factor = node.inputs[1].type();
  int64_t weights = count_or(factor, elements_otherwise), columns = 1;
  if (factor.has_static_shape() && node.is(OpKind::MatMul) && factor.static_shape().size() > 2) {
    const std::vector<int64_t> dims = factor.static_shape();
    weights = dims[dims.size() - 2] * dims.back();  // of one matrix: each product has its own
  }
  if (base.has_static_shape() && !base.static_shape().empty())
    columns = is_convolution ? base.static_shape()[1] : base.static_shape().back();
  return 2 * static_cast<double>(count_or(base, elements_otherwise)) * static_cast<double>(weights) /
         static_cast<double>(std::max<int64_t>(1, columns));
}

}  // namespace gopt::planner
