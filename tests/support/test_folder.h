// A folder for one test's files, removed with what is in it.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace gopt {

class TestFolder {
 public:
  TestFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "gopt_test_XXXXXX").string();
    if (!::mkdtemp(path.data())) throw std::runtime_error("no folder for the test's files can be made");
    path_ = path;
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

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
