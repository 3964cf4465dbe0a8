#include "products.h"

#include <algorithm>

namespace gopt::planner {
namespace {

int64_t count_or(const TensorType& type, int64_t otherwise) {
  return type.has_static_shape() ? element_count(type.static_shape()) : otherwise;
}

}  // namespace

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
