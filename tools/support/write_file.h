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
// Writes text. Errors: as check_writable, or the disk's.
Status write_text(const std::string& path, std::string_view text, bool force);
// The same up to the name, which `staged` gives together with those of other files.
Status stage_text(const std::string& path, std::string_view text, bool force, StagedFiles& staged);

}  // namespace gopt::cli
