// Writes a model file: the small part from its message, the tensors after it one at a time, in the file or beside it.
// What is written appears under its name only when it is whole.
#pragma once

#include "export_state.h"

namespace gopt::ir {

// A file beside its final place; removed unless it is committed.
class TemporaryFile {
 public:
  static Result<TemporaryFile> create(const std::string& final_path);
  TemporaryFile(TemporaryFile&& other) noexcept;
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile();

  Status write(const void* data, size_t size);
  Status write(const std::string& text) { return write(text.data(), text.size()); }
  size_t position() const { return position_; }
  Status commit();  // closes and renames

 private:
  TemporaryFile(std::string final_path, std::string path, int file);
  std::string final_path_, path_;
  int file_ = -1;
  size_t position_ = 0;
};

// Errors: as export_onnx; a weight-only value that cannot be evaluated, by name.
Status stream_model(const onnx::ModelProto& head, const onnx::GraphProto& graph,
                    const std::vector<PendingTensor>& tensors, const std::string& path, const ExportOptions& options);

}  // namespace gopt::ir
