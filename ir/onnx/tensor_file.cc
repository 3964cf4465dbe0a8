// One tensor in a file: TensorProto, as ONNX's test data have it.
#include "gopt/onnx.h"
#include "stream.h"
#include "tensor_proto.h"

namespace gopt {

using namespace ir;

Result<Tensor> read_tensor_proto(const std::string& path, std::string* name) {
  GOPT_ASSIGN_OR_RETURN(const auto file, MappedFile::open(path));
  TensorSource source;
  if (!source.proto.ParseFromArray(file->bytes().data(), static_cast<int>(file->bytes().size())))
    return Error{path + ": is no tensor (TensorProto), or is truncated"};
  if (name) *name = source.proto.name();
  ExternalFiles external(std::filesystem::path(path).parent_path());
  auto tensor = take_tensor(source, external);
  if (!tensor.ok()) return Error{path + ": the tensor " + tensor.error().message};
  return tensor;
}

Status write_tensor_proto(const Tensor& tensor, const std::string& name, const std::string& path) {
  GOPT_ASSIGN_OR_RETURN(TemporaryFile file, TemporaryFile::create(path));
  GOPT_RETURN_IF_ERROR(file.write(tensor_message(tensor, name).SerializeAsString()));
  return file.commit();
}

}  // namespace gopt
