// A folder for one test's files, removed with what is in it.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace gopt {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "gopt_onnx_XXXXXX").string();
    path_ = ::mkdtemp(path.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }
  // Files and folders in it, at any depth.
  size_t count() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::recursive_directory_iterator(path_)) count++;
    return count;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace gopt
