#include "node_work.h"

#include <algorithm>
#include <map>

#include "gopt/definition.h"

namespace gopt::planner {
namespace {

int64_t count_or(const TensorType& type, int64_t otherwise) {
  return type.has_static_shape() ? element_count(type.static_shape()) : otherwise;
}

}  // namespace

bool is_product(const Node& node) {
  return node.is(OpKind::Conv) || node.is(OpKind::ConvTranspose) || node.is(OpKind::MatMul) || node.is(OpKind::Gemm);
}

double node_operations(const Node& node) {
  if (op_info(node.op).has(kDataMovement) || op_info(node.op).has(kShapeOnly)) return 0;
  thread_local std::map<Hash128, double> known;
  const auto [it, is_new] = known.try_emplace(node.hash, 0);
  if (!is_new) return it->second;
  std::vector<TensorExpr> inputs;
  for (size_t k = 0; k < node.inputs.size(); k++) {
    const Value& v = node.inputs[k];
    const bool has_shape = v && v.type().shape;
    inputs.push_back(has_shape ? input_tensor(static_cast<int>(k), v.type()) : TensorExpr{});
    if (v && v.node->is(OpKind::Constant)) inputs.back().data = &v.node->tensor;
  }
  const auto definition = define(node.op, inputs, node.attributes, static_cast<int>(node.outputs.size()));
  for (size_t k = 0; definition.ok() && k < node.outputs.size(); k++)
    it->second += estimate_work(definition->outputs[k]).operations;
  return it->second;
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
