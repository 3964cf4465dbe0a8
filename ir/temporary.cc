#include "gopt/temporary.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace gopt {
namespace {

// What new files and folders are not allowed; names that the system makes up come with less than the rest.
mode_t creation_mask() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return mask;
}

}  // namespace

TemporaryFile::TemporaryFile(std::string final_path, std::string path, int file)
    : final_path_(std::move(final_path)), path_(std::move(path)), file_(file) {}
TemporaryFile::TemporaryFile(TemporaryFile&& other) noexcept
    : final_path_(std::move(other.final_path_)),
      path_(std::move(other.path_)),
      file_(other.file_),
      position_(other.position_) {
  other.file_ = -1;
  other.path_.clear();
}

Result<TemporaryFile> TemporaryFile::create(const std::string& final_path) {
  std::string path = final_path + ".XXXXXX";
  const int file = ::mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) return Error{final_path + ": cannot be written: " + std::strerror(errno)};
  ::fchmod(file, 0666 & ~creation_mask());
  return TemporaryFile(final_path, path, file);
}

TemporaryFile::~TemporaryFile() {
  if (file_ >= 0) ::close(file_);
  if (!path_.empty()) ::unlink(path_.c_str());
}

Status TemporaryFile::write(const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t done = ::write(file_, at, std::min(size, size_t{1} << 30));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return Error{final_path_ + ": cannot be written: " + std::strerror(errno)};
    at += done;
    size -= static_cast<size_t>(done);
    position_ += static_cast<size_t>(done);
  }
  return Unit{};
}

Status TemporaryFile::commit() {
  const int closed = ::close(std::exchange(file_, -1));
  if (closed != 0 || ::rename(path_.c_str(), final_path_.c_str()) != 0)
    return Error{final_path_ + ": cannot be written: " + std::strerror(errno)};
  path_.clear();
  return Unit{};
}

Result<std::string> TemporaryFile::release() {
  if (::close(std::exchange(file_, -1)) != 0)
    return Error{final_path_ + ": cannot be written: " + std::strerror(errno)};
  return std::exchange(path_, {});
}

Status write_whole(const std::string& path, std::string_view text) {
  GOPT_ASSIGN_OR_RETURN(TemporaryFile file, TemporaryFile::create(path));
  GOPT_RETURN_IF_ERROR(file.write(text));
  return file.commit();
}

Result<std::filesystem::path> cache_folder() {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  const bool has_cache = cache && *cache;
  if (!has_cache && !(home && *home))
    return Error{"no folder for what is kept between runs: set HOME or XDG_CACHE_HOME"};
  const std::filesystem::path folder =
      (has_cache ? std::filesystem::path(cache) : std::filesystem::path(home) / ".cache") / "gopt";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error{folder.string() + " cannot be made: " + error.message()};
  return folder;
}

Result<TemporaryFolder> TemporaryFolder::create() {
  std::error_code error;
  const std::filesystem::path all = std::filesystem::temp_directory_path(error);
  std::string path = (all / "gopt-XXXXXX").string();
  if (error || !::mkdtemp(path.data())) return Error{"no temporary folder can be made; set TMPDIR"};
  return TemporaryFolder(path);
}

Result<TemporaryFolder> TemporaryFolder::beside(const std::filesystem::path& final_path) {
  std::error_code error;
  if (final_path.has_parent_path()) std::filesystem::create_directories(final_path.parent_path(), error);
  if (error) return Error{"cannot make the folder " + final_path.parent_path().string() + ": " + error.message()};
  std::string path = final_path.string() + ".XXXXXX";
  if (!::mkdtemp(path.data()))
    return Error{"cannot make a folder beside " + final_path.string() + ": " + std::strerror(errno)};
  ::chmod(path.c_str(), 0777 & ~creation_mask());
  return TemporaryFolder(path);
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

StagedFiles::~StagedFiles() {
  for (const Step& step : steps_)
    if (!step.is_placed && !step.made.empty()) ::unlink(step.made.c_str());
}

Status StagedFiles::add(TemporaryFile file) {
  const std::string target = file.final_path();
  GOPT_ASSIGN_OR_RETURN(const std::string made, file.release());
  add(made, target);
  return Unit{};
}

void StagedFiles::add(const std::filesystem::path& made, const std::filesystem::path& target) {
  steps_.push_back({made, target, {}});
}

void StagedFiles::remove(const std::filesystem::path& old) { steps_.push_back({{}, old, {}}); }

// A second name for what is there, so that it is never missing; where the file system has none, another name.
Status StagedFiles::save(Step& step) {
  std::error_code error;
  const auto there = std::filesystem::symlink_status(step.target, error);
  if (!std::filesystem::exists(there)) return Unit{};
  if (std::filesystem::is_directory(there)) {
    step.replaces_folder = true;
    return Unit{};
  }
  for (int number = 0;; number++) {
    const std::string backup = step.target.string() + ".before" + std::to_string(number);
    if (std::filesystem::exists(std::filesystem::symlink_status(backup, error))) continue;
    if (::link(step.target.c_str(), backup.c_str()) == 0 || ::rename(step.target.c_str(), backup.c_str()) == 0) {
      step.backup = backup;
      return Unit{};
    }
    return Error{step.target.string() + ": cannot be replaced: " + std::strerror(errno)};
  }
}

Status StagedFiles::place(Step& step) {
  GOPT_RETURN_IF_ERROR(save(step));
  const int failed =
      step.made.empty() ? ::unlink(step.target.c_str()) : ::rename(step.made.c_str(), step.target.c_str());
  if (failed != 0 && !(step.made.empty() && errno == ENOENT))
    return Error{step.target.string() + ": cannot be written: " + std::strerror(errno)};
  step.is_placed = true;
  return Unit{};
}

void StagedFiles::undo(Step& step) {
  if (step.is_placed && !step.made.empty()) ::rename(step.target.c_str(), step.made.c_str());
  if (step.is_placed && step.replaces_folder) ::mkdir(step.target.c_str(), 0777);
  // Where both are names of one file, rename leaves both.
  if (!step.backup.empty() && ::rename(step.backup.c_str(), step.target.c_str()) == 0) ::unlink(step.backup.c_str());
  step.backup.clear();
  step.is_placed = false;
}

Status StagedFiles::commit() {
  for (size_t k = 0; k < steps_.size(); k++) {
    const Status placed = place(steps_[k]);
    if (placed.ok()) continue;
    for (size_t back = k + 1; back-- > 0;) undo(steps_[back]);
    return placed;
  }
  for (Step& step : steps_)
    if (!step.backup.empty()) ::unlink(step.backup.c_str());
  return Unit{};
}

}  // namespace gopt
