#include "model_file.h"

namespace gopt::python {

Result<GivenModel> GivenModel::of_bytes(std::string_view bytes) {
  GOPT_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::create());
  GivenModel given((folder.path() / "model.onnx").string());
  given.folder_.emplace(std::move(folder));
  GOPT_RETURN_IF_ERROR(write_whole(given.path_, bytes));
  return given;
}

std::string GivenModel::told(std::string text) const {
  if (!folder_) return text;
  for (size_t at = text.find(path_); at != std::string::npos; at = text.find(path_))
    text.replace(at, path_.size(), "the model");
  return text;
}

}  // namespace gopt::python
