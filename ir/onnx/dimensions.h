// Extents that a file leaves open, which are symbols by name, and what --shape makes of them.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "import_state.h"

namespace gopt::ir {

std::set<std::string> initializer_names(const ModelFile& file);

// Gives symbols the numbers that the options say (ImportState::fixed). Errors: options that do not fit the model's
// inputs.
Status apply_shape_options(ImportState& state);

// The options without those that change extents which the file gives as numbers, and these (old, new); nothing where
// there is no such option.
std::optional<ImportOptions> without_changed_extents(const ModelFile& file, const ImportOptions& options,
                                                     std::vector<std::pair<int64_t, int64_t>>& changed);

}  // namespace gopt::ir
