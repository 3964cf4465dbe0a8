#include "gopt_team.h"

#include <chrono>

namespace gopt_runtime {
namespace {

thread_local Team* leading = nullptr;  // on this thread, outside of parts

// A ticket: the next part and how many there are, for threads below a number; or that no more will come.
constexpr uint64_t kClosed = uint64_t{1} << 63, kCount = (uint64_t{1} << 24) - 1;
constexpr int kCountAt = 24, kThreadsAt = 48, kMostThreads = 1 << 14;
constexpr uint64_t next_of(uint64_t ticket) { return ticket & kCount; }
constexpr uint64_t count_of(uint64_t ticket) { return ticket >> kCountAt & kCount; }
constexpr bool is_for(uint64_t ticket, int slot) {
  return next_of(ticket) < count_of(ticket) && static_cast<uint64_t>(slot) < (ticket & ~kClosed) >> kThreadsAt;
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

// How long a thread waits awake: longer than a small kernel that one thread runs alone; not as long where the system
// has others to run, which is seen by a turn that took longer than any turn takes.
class Team::Patience {
 public:
  explicit Patience(std::atomic<int>& interrupted)
      : interrupted_(interrupted), limit_(interrupted.load(std::memory_order_relaxed) > 0 ? kShort : kLong) {}

  // Whether it is at its end; takes a moment.
  bool is_over() {
    pause();
    if (++turns_ % kTurns != 0) return false;
    const Clock::time_point now = Clock::now();
    if (turns_ == kTurns) begin_ = last_ = now;
    if (now - last_ > kInterruption) interrupted_.store(kRegions, std::memory_order_relaxed);
    last_ = now;
    return now - begin_ > limit_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kTurns = 32, kRegions = 64;
  static constexpr std::chrono::microseconds kLong{200}, kShort{50}, kInterruption{150};
  std::atomic<int>& interrupted_;
  const std::chrono::microseconds limit_;
  int turns_ = 0;
  Clock::time_point begin_, last_;
};

Team::Team(int threads) : size_(std::clamp(threads, 1, kMostThreads)), ranges_(new Range[static_cast<size_t>(size_)]) {}

// A sleeper counts itself before it looks for the last time, and whoever changes something looks for sleepers after it.
template <class IsOver>
void Team::wait(std::atomic<int>& sleepers, const IsOver& is_over) {
  for (Patience patience(interrupted_); !is_over();) {
    if (!patience.is_over()) continue;
    std::unique_lock<std::mutex> lock(mutex_);
    sleepers.fetch_add(1);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    changed_.wait(lock, is_over);
    sleepers.fetch_sub(1);
    return;
  }
}

void Team::wake() {
  const std::lock_guard<std::mutex> lock(mutex_);
  changed_.notify_all();
}

void Team::take_parts(int slot) noexcept {
  int64_t done = 0;
  for (int k = 0; k < size_; k++) {
    Range& range = ranges_[static_cast<size_t>((slot + k) % size_)];
    uint64_t ticket = range.ticket.load(std::memory_order_acquire);
    while (is_for(ticket, slot)) {
      if (!range.ticket.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel)) continue;
      range.run(range.work, range.first + static_cast<int64_t>(next_of(ticket)), slot);
      done++;
      ticket = range.ticket.load(std::memory_order_acquire);
    }
  }
  if (done == 0 || left_.fetch_sub(done) != done) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (leader_sleeps_.load(std::memory_order_relaxed) > 0) wake();
}

void Team::share(int64_t parts, int threads, RunPart run, const void* work) {
  const int shared_by = std::min(threads, size_);
  left_.store(parts, std::memory_order_relaxed);
  for (int slot = shared_by; slot-- > 0;) {  // the others' first
    Range& range = ranges_[static_cast<size_t>(slot)];
    const int64_t first = parts * slot / shared_by, last = parts * (slot + 1) / shared_by;
    range.run = run;
    range.work = work;
    range.first = first;
    range.ticket.store(static_cast<uint64_t>(shared_by) << kThreadsAt | static_cast<uint64_t>(last - first) << kCountAt,
                       std::memory_order_release);
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_relaxed) > 0) wake();
  leading = nullptr;  // what a part shares is its own
  take_parts(0);
  wait(leader_sleeps_, [&] { return left_.load(std::memory_order_acquire) == 0; });
  leading = this;
}

void Team::serve(int slot) {
  Range& own = ranges_[static_cast<size_t>(slot)];
  for (;;) {
    wait(sleepers_, [&] {
      const uint64_t ticket = own.ticket.load(std::memory_order_acquire);
      return (ticket & kClosed) != 0 || is_for(ticket, slot);
    });
    if (own.ticket.load(std::memory_order_acquire) & kClosed) return;
    take_parts(slot);
  }
}

void Team::close() {
  for (int slot = 1; slot < size_; slot++)
    ranges_[static_cast<size_t>(slot)].ticket.store(kClosed, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_relaxed) > 0) wake();
}

void Team::lead(void (*work)(const void*), const void* own) {
  if (size_ == 1) return work(own);
  for (int slot = 1; slot < size_; slot++) ranges_[static_cast<size_t>(slot)].ticket.store(0);
  if (const int left = interrupted_.load(std::memory_order_relaxed); left > 0) interrupted_.store(left - 1);
  std::exception_ptr thrown;
#pragma omp parallel num_threads(size_)
  if (const int slot = omp_get_thread_num(); slot > 0) {
    serve(slot);
  } else {
    leading = this;
    present_ = omp_get_num_threads();
    try {
      work(own);
    } catch (...) {
      thrown = std::current_exception();
    }
    leading = nullptr;
    close();
  }
  if (thrown) std::rethrow_exception(thrown);
}

int threads_now() {
  if (leading) return leading->present();
  return omp_in_parallel() ? 1 : omp_get_max_threads();
}

void share_parts(int64_t parts, int threads, RunPart run, const void* work) {
  if (leading) return leading->share(parts, threads, run, work);
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t part = 0; part < parts; part++) run(work, part, omp_get_thread_num());
}

}  // namespace gopt_runtime
