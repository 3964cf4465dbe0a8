// A model as Python gives it: by its path, or as bytes, which become a file for as long as they are read.
#pragma once

#include <optional>
#include <string>

#include "gopt/temporary.h"

namespace gopt::python {

class GivenModel {
 public:
  // Errors: no file can be made.
  static Result<GivenModel> of_bytes(std::string_view bytes);
  explicit GivenModel(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  // Bytes have no path that anybody knows: texts call them "the model".
  std::string told(std::string text) const;

 private:
  std::string path_;
  std::optional<TemporaryFolder> folder_;
};

}  // namespace gopt::python
