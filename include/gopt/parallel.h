// Tasks on several threads (oneTBB's; ir/parallel.cc is the only file that includes it). What comes out is put in order
// by who asks, so that it does not depend on them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace gopt {

// Calls work(thread, item) for each item below `count`, on up to so many threads; items are taken in order. `thread` is
// below the number of threads (and of items) and is no other call's at the time; 0 is the calling thread. What a call
// throws is thrown on once all threads have stopped; no further items are taken then. A call may itself ask for
// threads.
void parallel_for(int threads, size_t count, const std::function<void(int thread, size_t item)>& work);

// Tasks that run on up to so many threads while the calling thread goes on. They do not wait for each other.
class BackgroundTasks {
 public:
  explicit BackgroundTasks(int threads);
  ~BackgroundTasks();  // once all have ended
  void run(std::function<void()> task);
  bool has_failed() const;  // a task has thrown
  // Until all have ended. Throws on what one of them threw.
  void wait();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gopt
