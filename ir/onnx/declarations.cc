#include "declarations.h"

#include <algorithm>

namespace gopt::ir {
namespace {

// Extents that are neither numbers nor names are left open: ONNX has no form for them.
void write_dim(const Index& extent, onnx::TensorShapeProto::Dimension& dim) {
  dim.clear_value();
  if (const auto number = extent.as_constant()) {
    dim.set_dim_value(*number);
  } else if (const auto id = extent.as_atom(); id && atom(*id).kind == AtomKind::Symbol) {
    dim.set_dim_param(atom(*id).name);
  }
}

}  // namespace

void write_type(const TensorType& type, onnx::ValueInfoProto& info) {
  if (type.element == ElementType::Undefined) return;
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(static_cast<int>(type.element));
  if (!type.shape) return;
  const bool keep = tensor.has_shape() && static_cast<size_t>(tensor.shape().dim_size()) == type.shape->size();
  if (!keep) tensor.mutable_shape()->clear_dim();
  for (size_t axis = 0; axis < type.shape->size(); axis++) {
    auto& dim =
        keep ? *tensor.mutable_shape()->mutable_dim(static_cast<int>(axis)) : *tensor.mutable_shape()->add_dim();
    if (!keep || (*type.shape)[axis].is_constant()) write_dim((*type.shape)[axis], dim);
  }
}

std::vector<Index> short_reshape(const TensorType& input, const std::vector<Index>& shape) {
  const auto holds = [&](int64_t number) {
    return std::find(shape.begin(), shape.end(), Index(number)) != shape.end();
  };
  if (!input.shape || holds(0)) return shape;
  std::vector<Index> entries = shape;
  for (size_t axis = 0; axis < shape.size() && axis < input.shape->size(); axis++)
    if (!shape[axis].is_constant() && (*input.shape)[axis] == shape[axis]) entries[axis] = 0;
  int open = holds(-1) ? 1 : 0;
  for (Index& entry : entries) {
    if (entry.is_constant()) continue;
    entry = -1;
    open++;
  }
  return open > 1 ? shape : entries;
}

}  // namespace gopt::ir
