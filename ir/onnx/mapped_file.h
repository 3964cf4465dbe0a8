// Read-only files in memory: mapped, so that weights are paged in where they are used and never copied. ExternalFiles
// finds the files that a model refers to and keeps them inside the model's folder.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gopt/result.h"

namespace gopt::ir {

class MappedFile {
 public:
  // Errors: missing, a folder, not readable; each with what would mend it.
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

// Files named by external tensors, relative to one folder; each is mapped once.
class ExternalFiles {
 public:
  explicit ExternalFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}
  // Errors: absolute, outside the folder (also through a symbolic link), missing.
  Result<std::shared_ptr<const MappedFile>> open(const std::string& location);
  std::vector<std::string> paths() const;  // of those that were opened

 private:
  std::filesystem::path folder_;
  std::map<std::string, std::shared_ptr<const MappedFile>> open_;
};

}  // namespace gopt::ir
