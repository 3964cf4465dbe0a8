#include "mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace gopt::ir {

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  // What is no file may block (a pipe nobody writes to) until it is known for what it is.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    if (errno == ENOENT) return Error{path + ": no such file"};
    return Error{path + ": cannot be opened: " + std::strerror(errno)};
  }
  struct stat info {};
  const bool known = ::fstat(file, &info) == 0;
  if (!known || !S_ISREG(info.st_mode)) {
    ::close(file);
    return Error{path + (known && S_ISDIR(info.st_mode) ? ": is a folder, expected a file" : ": is no regular file")};
  }
  const auto size = static_cast<size_t>(info.st_size);
  void* place = size == 0 ? nullptr : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  const int failure = errno;
  ::close(file);
  if (place == MAP_FAILED) return Error{path + ": cannot be mapped: " + std::strerror(failure)};
  return std::shared_ptr<const MappedFile>(new MappedFile({static_cast<const std::byte*>(place), size}));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Result<std::shared_ptr<const MappedFile>> ExternalFiles::open(const std::string& location) {
  if (auto it = open_.find(location); it != open_.end()) return it->second;
  const std::filesystem::path relative(location);
  const std::string what = "external data '" + location + "'";
  if (location.empty()) return Error{"external data without a location"};
  if (relative.is_absolute()) return Error{what + " is an absolute path; it must lie inside the model's folder"};
  std::error_code failure;
  const auto root = std::filesystem::canonical(folder_.empty() ? "." : folder_, failure);
  const auto target = std::filesystem::weakly_canonical(root / relative, failure);
  if (failure) return Error{what + " cannot be found: " + failure.message()};
  const auto [in_root, in_target] = std::mismatch(root.begin(), root.end(), target.begin(), target.end());
  const bool inside = in_root == root.end() || (in_root->empty() && std::next(in_root) == root.end());
  if (!inside) return Error{what + " lies outside the model's folder"};
  auto opened = MappedFile::open(target.string());
  if (!opened.ok()) return std::move(opened).with_context(what);
  open_[location] = *opened;
  return *opened;
}

std::vector<std::string> ExternalFiles::paths() const {
  std::vector<std::string> paths;
  for (const auto& [location, file] : open_) paths.push_back((folder_ / location).string());
  return paths;
}

}  // namespace gopt::ir
