#include "gopt/parallel.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace gopt {
namespace {

// What other threads get: TBB's own are half as large, and proofs go as deep as expressions are.
size_t usual_stack_bytes() {
  pthread_attr_t attributes;
  size_t bytes = 0;
  pthread_attr_init(&attributes);
  pthread_attr_getstacksize(&attributes, &bytes);
  pthread_attr_destroy(&attributes);
  return bytes;
}

// The signals that end a program stay with the threads that the program has made itself, some of which have handlers
// and wait for them: TBB's threads are started while this lives, and inherit that they are blocked.
class EndingSignalsBlocked {
 public:
  EndingSignalsBlocked() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, &before_);
  }
  ~EndingSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  EndingSignalsBlocked(const EndingSignalsBlocked&) = delete;
  EndingSignalsBlocked& operator=(const EndingSignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// TBB starts no more threads than there are processors; who asks for more gets them. Stays as large as it became.
class ThreadLimit {
 public:
  void raise_to(int threads) {
    const std::lock_guard lock(mutex_);
    if (threads <= threads_) return;
    threads_ = threads;
    const EndingSignalsBlocked blocked;
    more_.reset();  // of two, the smaller one would hold
    more_.emplace(oneapi::tbb::global_control::max_allowed_parallelism, static_cast<size_t>(threads));
  }

 private:
  oneapi::tbb::global_control stack_{oneapi::tbb::global_control::thread_stack_size, usual_stack_bytes()};
  std::mutex mutex_;
  int threads_ = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  std::optional<oneapi::tbb::global_control> more_;
};

void allow(int threads) {
  static ThreadLimit limit;
  limit.raise_to(threads);
}

// An arena of its own for each loop that runs: a thread that waits for tasks that a call has started takes no items
// meanwhile. They are kept for loops to come, since TBB is long done with one only after it was given up.
class ArenaOfLoop {
 public:
  explicit ArenaOfLoop(int threads) : threads_(threads) {
    allow(threads);
    const std::lock_guard lock(mutex());
    std::vector<Arena>& own = idle()[threads];
    if (own.empty()) own.push_back(std::make_unique<oneapi::tbb::task_arena>(threads));
    arena_ = std::move(own.back());
    own.pop_back();
  }
  ~ArenaOfLoop() {
    const std::lock_guard lock(mutex());
    idle()[threads_].push_back(std::move(arena_));
  }
  ArenaOfLoop(const ArenaOfLoop&) = delete;
  ArenaOfLoop& operator=(const ArenaOfLoop&) = delete;
  oneapi::tbb::task_arena& operator*() const { return *arena_; }

 private:
  using Arena = std::unique_ptr<oneapi::tbb::task_arena>;
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static std::map<int, std::vector<Arena>>& idle() {  // by threads
    static std::map<int, std::vector<Arena>> arenas;
    return arenas;
  }

  int threads_;
  Arena arena_;
};

}  // namespace

void parallel_for(int threads, size_t count, const std::function<void(int, size_t)>& work) {
  const int loops = static_cast<int>(std::min(static_cast<size_t>(std::max(threads, 1)), count));
  if (loops <= 1) {
    for (size_t item = 0; item < count; item++) work(0, item);
    return;
  }
  std::atomic<size_t> next{0};
  // A task a thread, not one an item: TBB would take these in an order of its own.
  const auto take_items = [&] {
    const int thread = oneapi::tbb::this_task_arena::current_thread_index();
    try {
      for (size_t item = next++; item < count; item = next++) work(thread, item);
    } catch (...) {
      next = count;
      throw;
    }
  };
  const ArenaOfLoop arena(loops);
  (*arena).execute([&] {
    oneapi::tbb::task_group others;
    {
      const EndingSignalsBlocked blocked;
      for (int loop = 1; loop < loops; loop++) others.run(take_items);
    }
    others.run_and_wait(take_items);
  });
}

struct BackgroundTasks::State {
  explicit State(int threads) : arena(threads, 0) {}

  void run(const std::function<void()>& task) {
    std::exception_ptr thrown;
    try {
      task();
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    if (thrown) failure = thrown;
    has_failed = has_failed || thrown;
    if (--open == 0) all_ended.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    all_ended.wait(lock, [&] { return open == 0; });
  }

  std::mutex mutex;
  std::condition_variable all_ended;
  size_t open = 0;
  std::exception_ptr failure;
  bool has_failed = false;
  oneapi::tbb::task_arena arena;
};

BackgroundTasks::BackgroundTasks(int threads) {
  allow(std::max(threads, 1) + 1);  // and the calling one
  state_ = std::make_unique<State>(std::max(threads, 1));
}

BackgroundTasks::~BackgroundTasks() { state_->wait(); }

void BackgroundTasks::run(std::function<void()> task) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->open++;
  }
  const EndingSignalsBlocked blocked;
  state_->arena.enqueue([state = state_.get(), task = std::move(task)] { state->run(task); });
}

bool BackgroundTasks::has_failed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->has_failed;
}

void BackgroundTasks::wait() {
  state_->wait();
  if (const std::exception_ptr failure = std::exchange(state_->failure, nullptr)) std::rethrow_exception(failure);
}

}  // namespace gopt
