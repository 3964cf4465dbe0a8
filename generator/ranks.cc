#include "gopt/ranks.h"

#include <mutex>

#include "parallel.h"

namespace gopt {

void Ranks::fail(const std::string&) {}

std::vector<std::string> Ranks::gather(std::string own) { return {std::move(own)}; }

std::vector<std::string> Ranks::share(size_t count, int threads, const std::function<std::string(size_t)>& work,
                                      const std::function<void(size_t, const std::string&)>& arrived) {
  std::vector<std::string> results(count);
  std::mutex mutex;
  parallel_for(threads, count, [&](int, size_t item) {
    results[item] = work(item);
    const std::lock_guard lock(mutex);
    arrived(item, results[item]);
  });
  return results;
}

}  // namespace gopt
