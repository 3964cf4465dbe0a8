// What only the first of several ranks may do, since it has the files: its answer, an error too, is everyone's.
#pragma once

#include <functional>

#include "gopt/ranks.h"
#include "gopt/result.h"

namespace gopt::cli {

// Text that rank 0 gets from `ask`, on all ranks. Every rank calls it.
Result<std::string> first_rank_says(Ranks& ranks, const std::function<Result<std::string>()>& ask);

}  // namespace gopt::cli
