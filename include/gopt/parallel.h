// The same work on several threads; what comes out is put in order by who asks, so that it does not depend on them.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace gopt {

// Calls work(thread, item) for each item below `count`; items are taken in order. What a call throws is thrown on once
// all threads have stopped; no further items are taken then.
template <class F>
void parallel_for(int threads, size_t count, const F& work) {
  std::atomic<size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto loop = [&](int thread) {
    try {
      for (size_t item = next++; item < count; item = next++) work(thread, item);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads && static_cast<size_t>(thread) < count; thread++)
    others.emplace_back(loop, thread);
  loop(0);
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace gopt
