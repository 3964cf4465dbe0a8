#include "write_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

namespace gopt::cli {

Status check_writable(const std::string& path, bool force) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !force) return Error{path + " exists; give --force to overwrite it"};
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error))
    return Error{path + " is no regular file; write to another one"};
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (!std::filesystem::is_directory(folder, error))
    return Error{path + ": " + folder.string() + " is no folder; make it first"};
  if (access(folder.c_str(), W_OK) != 0) return Error{path + ": the folder cannot be written: " + std::strerror(errno)};
  return Unit{};
}

Status check_distinct(const std::vector<std::string>& written, const std::vector<std::string>& read) {
  const auto canonical = [](const std::string& path) {
    std::error_code error;
    const std::filesystem::path own = std::filesystem::weakly_canonical(path, error);
    return error ? std::filesystem::path(path) : own;
  };
  std::set<std::filesystem::path> known;
  for (const std::string& path : read)
    if (!path.empty()) known.insert(canonical(path));
  for (const std::string& path : written)
    if (!path.empty() && !known.insert(canonical(path)).second)
      return Error{path + " is named twice; it would be overwritten by what is written last"};
  std::vector<ReadFile> kept;
  for (const std::string& path : read) kept.push_back({path, "is " + path + ", which is read"});
  return check_keeps(kept, written);  // names that are no link, but of one file
}

Status check_keeps(const std::vector<ReadFile>& read, const std::vector<std::string>& written) {
  for (const std::string& path : written) {
    for (const ReadFile& file : read) {
      std::error_code error;
      if (std::filesystem::equivalent(file.path, path, error) && !error)
        return Error{path + " " + file.what + "; write to another file"};
    }
  }
  return Unit{};
}

Status write_text(const std::string& path, std::string_view text, bool force) {
  GOPT_RETURN_IF_ERROR(check_writable(path, force));
  return write_whole(path, text);
}

Status stage_text(const std::string& path, std::string_view text, bool force, StagedFiles& staged) {
  GOPT_RETURN_IF_ERROR(check_writable(path, force));
  GOPT_ASSIGN_OR_RETURN(TemporaryFile file, TemporaryFile::create(path));
  GOPT_RETURN_IF_ERROR(file.write(text));
  return staged.add(std::move(file));
}

}  // namespace gopt::cli
