#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "mpi_ranks.h"
#include "processes.h"

namespace gopt::cli {
namespace {

// Standard output and error lead nowhere while this lives.
class Silence {
 public:
  Silence() : output_(dup(1)), error_(dup(2)) {
    if (FILE* nowhere = std::fopen("/dev/null", "w")) {
      dup2(fileno(nowhere), 1);
      dup2(fileno(nowhere), 2);
      std::fclose(nowhere);
    }
  }
  ~Silence() { end(); }
  void end() {
    if (output_ < 0) return;
    std::fflush(stdout);
    std::fflush(stderr);
    dup2(output_, 1);
    dup2(error_, 2);
    close(output_);
    close(error_);
    output_ = -1;
  }

 private:
  int output_, error_;
};

// A rank that says nothing until it fails.
class SilentRanks : public MpiRanks {
 public:
  void fail(const std::string& message) override {
    silence_.end();
    MpiRanks::fail(message);
  }

 private:
  Silence silence_;
};

bool is_started_by_mpi() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "PMI_SIZE"})
    if (std::getenv(name)) return true;
  return false;
}

}  // namespace

int run_on_ranks(int argc, char** argv, const std::function<int(Ranks&, int, char**)>& program) {
  if (!is_started_by_mpi()) {  // starting MPI for one process takes longer than many commands
    Ranks alone;
    return program(alone, argc, argv);
  }
  int provided = 0, rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int status = 0;
  if (rank == 0) {
    MpiRanks ranks;
    status = program(ranks, argc, argv);
  } else {
    SilentRanks ranks;
    status = program(ranks, argc, argv);
  }
  MPI_Finalize();
  return status;
}

}  // namespace gopt::cli
