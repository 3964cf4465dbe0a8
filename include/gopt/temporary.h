// Names for what is not whole yet, or is needed for a while: one place makes them, and takes them away whatever
// happens.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "gopt/result.h"

namespace gopt {

// A file beside its final place, of the permissions that any new file gets; removed unless it is committed.
class TemporaryFile {
 public:
  // Errors: no file can be made there, with the system's reason.
  static Result<TemporaryFile> create(const std::string& final_path);
  TemporaryFile(TemporaryFile&& other) noexcept;
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile();

  Status write(const void* data, size_t size);
  Status write(std::string_view text) { return write(text.data(), text.size()); }
  size_t position() const { return position_; }  // bytes written
  // Closes the file and gives it its final name, in place of what had that.
  Status commit();

 private:
  TemporaryFile(std::string final_path, std::string path, int file);
  std::string final_path_, path_;
  int file_ = -1;
  size_t position_ = 0;
};

// The file with that text and no other, whole or not at all.
Status write_whole(const std::string& path, std::string_view text);

// A new folder, removed with all that is in it.
class TemporaryFolder {
 public:
  // Where the system keeps such (TMPDIR), for nobody else to look into. Errors: none can be made there.
  static Result<TemporaryFolder> create();
  // In the folder of `final_path`, which is made where it is missing; of the permissions that any new folder gets.
  static Result<TemporaryFolder> beside(const std::filesystem::path& final_path);
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;  // empty: moved from
};

}  // namespace gopt
