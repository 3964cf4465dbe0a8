// What a program still does when the user ends it: SIGINT and SIGTERM are waited for by a thread of its own, which may
// lock and write as any other, and then ends the process with 128 + the signal's number.
#pragma once

#include <functional>
#include <thread>

namespace gopt::cli {

class Interruption {
 public:
  // To be made before other threads are, which inherit that the signals are left to this one.
  explicit Interruption(std::function<void()> last_words);
  ~Interruption();  // from now on, the signals end the process as they do elsewhere
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

 private:
  void wait();
  std::function<void()> last_words_;
  std::thread watcher_;
};

}  // namespace gopt::cli
