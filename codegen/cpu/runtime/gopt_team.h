// Threads that share the kernels of a run, in one parallel region around as many kernels as there are in a row: they
// wait awake for the parts that each kernel hands out. A part is taken by whoever is there first, so that no kernel
// waits for a thread that the system lets run late.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>

namespace gopt_runtime {

// Which threads run a kernel, where it is no primitive of the library: one; those that share it; its own, so that it
// runs outside of the team.
constexpr int kOneThread = -1, kShared = -2, kAlone = -3;

// Of a part of shared work: its number, and that of the thread, from 0 on, which has no other part meanwhile.
using RunPart = void (*)(const void* work, int64_t part, int slot);

class Team {
 public:
  explicit Team(int threads);

  // What `work` shares by share() is the team's; between that the other threads wait. Rethrows what it throws.
  template <class Work>
  void lead(const Work& work) {
    lead([](const void* own) { (*static_cast<const Work*>(own))(); }, &work);
  }

  // By the thread that leads, within its work, not within a part.
  void share(int64_t parts, int threads, RunPart run, const void* work);
  // How many threads there are within its work: fewer than were asked for where OpenMP has no more.
  int present() const { return present_; }

 private:
  // Parts that one thread is to take first: a line of memory for each thread. What a ticket allows to take is there
  // until it was run, since only then the next work is handed out.
  struct alignas(64) Range {
    std::atomic<uint64_t> ticket{0};
    RunPart run = nullptr;
    const void* work = nullptr;
    int64_t first = 0;
  };
  class Patience;

  void lead(void (*work)(const void*), const void* own);
  void serve(int slot);
  void take_parts(int slot) noexcept;
  void wake();
  void close();
  template <class IsOver>
  void wait(std::atomic<int>& sleepers, const IsOver& is_over);

  const int size_;
  int present_ = 1;
  std::unique_ptr<Range[]> ranges_;
  alignas(64) std::atomic<int64_t> left_{0};  // parts that were not run yet
  alignas(64) std::atomic<int> sleepers_{0};  // threads that wait for work, asleep
  std::atomic<int> leader_sleeps_{0};
  std::atomic<int> interrupted_{0};  // regions yet with short waits, since the system took a processor from a thread
  std::mutex mutex_;
  std::condition_variable changed_;
};

// The team's that leads on this thread, else a parallel region of its own.
void share_parts(int64_t parts, int threads, RunPart run, const void* work);

// Threads that would share what is shared now.
int threads_now();

// run(part, slot) for each part, on so many threads at most; slot: below `threads`.
template <class Run>
void share(int64_t parts, int threads, const Run& run) {
  if (threads > 1 && parts > 1)
    return share_parts(
        parts, threads, [](const void* work, int64_t part, int slot) { (*static_cast<const Run*>(work))(part, slot); },
        &run);
  for (int64_t part = 0; part < parts; part++) run(part, 0);
}

// run(first, last, slot) for ranges that are [0, count) together.
template <class Run>
void share_range(int64_t count, int threads, const Run& run) {
  constexpr int64_t kTurns = 4;  // of a thread: what a thread that comes late has not taken yet, others take
  const int64_t parts = threads > 1 ? std::min(count, threads * kTurns) : std::min<int64_t>(count, 1);
  share(parts, threads, [&](int64_t part, int slot) { run(count * part / parts, count * (part + 1) / parts, slot); });
}

// run(k, slot) for each k in [0, count).
template <class Run>
void share_each(int64_t count, int threads, const Run& run) {
  share_range(count, threads, [&](int64_t first, int64_t last, int slot) {
    for (int64_t k = first; k < last; k++) run(k, slot);
  });
}

}  // namespace gopt_runtime
