// The same work on several threads; what comes out is put in order by who asks, so that it does not depend on them.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace gopt::generator {

// Calls work(thread, item) for each item below `count`; items are taken in order.
template <class F>
void parallel_for(int threads, size_t count, const F& work) {
  if (threads <= 1 || count <= 1) {
    for (size_t item = 0; item < count; item++) work(0, item);
    return;
  }
  std::atomic<size_t> next{0};
  const auto loop = [&](int thread) {
    for (size_t item = next++; item < count; item = next++) work(thread, item);
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; thread++) others.emplace_back(loop, thread);
  loop(0);
  for (std::thread& other : others) other.join();
}

}  // namespace gopt::generator
