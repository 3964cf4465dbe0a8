#include "interruption.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <ctime>
#include <utility>

namespace gopt::cli {
namespace {

sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

Interruption::Interruption(std::function<void()> last_words) : last_words_(std::move(last_words)) {
  const sigset_t signals = ending_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  watcher_ = std::thread([this] { wait(); });
}

Interruption::~Interruption() {
  is_over_ = true;
  watcher_.join();
  const sigset_t signals = ending_signals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

void Interruption::wait() {
  constexpr timespec kPatience{0, 50'000'000};  // between looks at whether it is over
  const sigset_t signals = ending_signals();
  while (!is_over_) {
    const int signal = sigtimedwait(&signals, nullptr, &kPatience);
    if (signal <= 0) continue;
    last_words_();
    _exit(128 + signal);
  }
}

}  // namespace gopt::cli
