#include "processes.h"

#include <fmt/core.h>

#include <cstdlib>

namespace gopt::cli {

// Open MPI, MPICH and its kin, and Slurm say by such a variable how many they start.
int run_on_ranks(int argc, char** argv, const std::function<int(Ranks&, int, char**)>& program) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* size = std::getenv(name);
    if (!size || std::atoi(size) <= 1) continue;
    fmt::print(
        stderr,
        "rulegen: built without MPI, so {} processes cannot share the work; run one, or build with -DGOPT_MPI=ON\n",
        size);
    return 1;
  }
  Ranks alone;
  return program(alone, argc, argv);
}

}  // namespace gopt::cli
