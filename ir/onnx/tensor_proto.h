// Tensors from and to ONNX's TensorProto: typed fields converted, raw bytes moved or left where they are mapped,
// external data mapped. Sizes are checked against the dims before anything is read.
#pragma once

#include <memory>
#include <optional>

#include "gopt/type.h"
#include "mapped_file.h"
#include "proto.h"
#include "wire.h"

namespace gopt::ir {

// A message whose raw_data may have been left where it lies, in a mapped file.
struct TensorSource {
  onnx::TensorProto proto;
  std::optional<Storage> raw;
};

// Takes the data out of `source`; its name stays. Errors: negative dims, an unknown element type, data that do not fit
// the dims, external data that are missing, too short or outside the model's folder.
Result<Tensor> take_tensor(TensorSource& source, ExternalFiles& files);
// Zeros with the values at the indices. Errors: as above, indices out of range.
Result<Tensor> take_sparse_tensor(onnx::SparseTensorProto& proto, ExternalFiles& files);

// The message without its data: dims, type, name.
onnx::TensorProto tensor_header(const Tensor& tensor, const std::string& name);
// The whole message; meant for small tensors.
onnx::TensorProto tensor_message(const Tensor& tensor, const std::string& name);

// The bytes that a tensor of these dims takes, also for 4-bit types; nothing for strings, unknown types and overflow.
std::optional<size_t> tensor_bytes(ElementType type, std::span<const int64_t> dims);

}  // namespace gopt::ir
