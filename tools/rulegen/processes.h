// Runs a program in every process that mpirun started, or in this one alone. Rank 0 speaks: what others print is
// dropped, but for a failure while they work.
#pragma once

#include <functional>

#include "gopt/ranks.h"

namespace gopt::cli {

// The exit status. Under MPI, `argv` may lose what is MPI's. Where gopt is built without MPI, being started as one of
// several processes is the user's error: each would do all of the work.
int run_on_ranks(int argc, char** argv, const std::function<int(Ranks&, int, char**)>& program);

}  // namespace gopt::cli
