// Ranks over MPI. One thread of each rank speaks to MPI, and sleeps while it waits, so that cores are left to work.
#pragma once

#include "gopt/ranks.h"

namespace gopt::cli {

class MpiRanks : public Ranks {
 public:
  MpiRanks();  // of MPI_COMM_WORLD; precondition: MPI is initialized
  int rank() const override { return rank_; }
  int count() const override { return count_; }
  std::vector<std::string> gather(std::string own) override;
  std::vector<std::string> share(size_t count, int threads, const std::function<std::string(size_t)>& work,
                                 const std::function<void(size_t, const std::string&)>& arrived) override;
  void fail(const std::string& message) override;

 private:
  void broadcast(std::string& bytes, int from) const;
  std::vector<std::string> hand_out(size_t count, int threads, const std::function<std::string(size_t)>& work,
                                    const std::function<void(size_t, const std::string&)>& arrived) const;
  void take_items(int threads, const std::function<std::string(size_t)>& work) const;

  int rank_ = 0, count_ = 1;
};

}  // namespace gopt::cli
