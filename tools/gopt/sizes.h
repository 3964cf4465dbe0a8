// The sizes of open extents that --specialize names.
#pragma once

#include <string>
#include <vector>

#include "gopt/result.h"

namespace gopt::cli {

constexpr const char* kSpecializeHelp =
    "SYMBOL=1,8: with --emit, code for each of these sizes behind one interface. Of several symbols, given one by one, "
    "all combinations; batch=1,seq=64 in one word is one combination, and more such words add others";

// Each size as its assignments, "batch=1" or "x=1x3x224x224". Words that name the same symbols add up; words that name
// others are combined with them. Errors say which word, and what is expected: also a symbol in words with different
// others, and more than 64 sizes.
Result<std::vector<std::vector<std::string>>> parse_sizes(const std::vector<std::string>& words);
std::string joined_size(const std::vector<std::string>& size);  // "batch=1 seq=64"

}  // namespace gopt::cli
