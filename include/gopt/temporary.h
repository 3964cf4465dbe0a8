// Names for what is not whole yet, or is needed for a while: one place makes them, and takes them away whatever
// happens.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

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
  const std::string& final_path() const { return final_path_; }
  // Closes the file, whose removal is then the caller's: its name of today.
  Result<std::string> release();

 private:
  TemporaryFile(std::string final_path, std::string path, int file);
  std::string final_path_, path_;
  int file_ = -1;
  size_t position_ = 0;
};

// The file with that text and no other, whole or not at all.
Status write_whole(const std::string& path, std::string_view text);

// Where gopt keeps what it can make again: $XDG_CACHE_HOME/gopt, else ~/.cache/gopt, made where it is missing. Errors:
// neither variable says where, the folder cannot be made.
Result<std::filesystem::path> cache_folder();

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

// Files that are whole and wait for their names, which they are given together: all of them, or none, and then what was
// there is there as before.
class StagedFiles {
 public:
  StagedFiles() = default;
  StagedFiles(const StagedFiles&) = delete;
  StagedFiles& operator=(const StagedFiles&) = delete;
  ~StagedFiles();

  // Errors: the disk's, on closing it.
  Status add(TemporaryFile file);
  // A file or folder inside `kept` (or that folder itself), which is to be at `target`: in place of a file, or of an
  // empty folder.
  void add(const std::filesystem::path& made, const std::filesystem::path& target);
  void keep(TemporaryFolder folder) { folders_.push_back(std::move(folder)); }
  // An old file that is to be gone.
  void remove(const std::filesystem::path& old);
  // In the order in which they came. Errors: what cannot be replaced, with the system's reason; nothing has changed.
  Status commit();

 private:
  struct Step {
    std::filesystem::path made, target;  // made: empty where the target is only removed
    std::filesystem::path backup;        // what was at the target, until all is done
    bool is_placed = false, replaces_folder = false;
  };
  static Status save(Step& step);
  static Status place(Step& step);
  static void undo(Step& step);

  std::vector<Step> steps_;
  std::vector<TemporaryFolder> folders_;
};

}  // namespace gopt
