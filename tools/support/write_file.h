// Files that are written whole or not at all: beside the path first, then renamed.
#pragma once

#include <string>
#include <string_view>

#include "gopt/result.h"

namespace gopt::cli {

// Errors: the path exists and `force` is not given; its folder is missing or cannot be written.
Status check_writable(const std::string& path, bool force);
// Writes text. Errors: as check_writable, or the disk's.
Status write_text(const std::string& path, std::string_view text, bool force);

}  // namespace gopt::cli
