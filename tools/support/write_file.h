// Files that are written whole or not at all: beside the path first, then renamed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gopt/temporary.h"

namespace gopt::cli {

// Errors: the path exists and `force` is not given; its folder is missing or cannot be written.
Status check_writable(const std::string& path, bool force);
// Errors: a file that is written is another one that is written, or one that is read, however it is spelled. Empty
// paths are none.
Status check_distinct(const std::vector<std::string>& written, const std::vector<std::string>& read);
// A file that a command reads, and what it is to that: "is the input itself".
struct ReadFile {
  std::string path, what;
};
// Errors: a file that is written is one that is read, by whatever name: with --force neither. Empty paths are none.
Status check_keeps(const std::vector<ReadFile>& read, const std::vector<std::string>& written);
// Writes text. Errors: as check_writable, or the disk's.
Status write_text(const std::string& path, std::string_view text, bool force);
// The same up to the name, which `staged` gives together with those of other files.
Status stage_text(const std::string& path, std::string_view text, bool force, StagedFiles& staged);

}  // namespace gopt::cli
