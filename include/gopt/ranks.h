// Processes that do one job together: each runs the same program on the same input, does its part of the work, and gets
// what the others found. One process alone needs nothing else; tools/rulegen/mpi_ranks.h has processes that MPI starts.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace gopt {

class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual int rank() const { return 0; }
  virtual int count() const { return 1; }

  // What every rank gives, in the order of ranks, on all of them. Every rank calls it, and calls come in one order.
  virtual std::vector<std::string> gather(std::string own);

  // work(item) for every item below `count`, on so many threads of each rank, items taken as threads become free; the
  // results by item, on all ranks. `arrived` is called on rank 0 alone, one call at a time, as results come. `work`
  // must not depend on who does it.
  virtual std::vector<std::string> share(size_t count, int threads, const std::function<std::string(size_t)>& work,
                                         const std::function<void(size_t, const std::string&)>& arrived);

  // Ends all ranks with this message: the others would wait for one that cannot go on. Returns where there are none.
  virtual void fail(const std::string& message);
};

}  // namespace gopt
