#include "interruption.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <utility>

namespace gopt::cli {
namespace {

// That the user's are no longer waited for is a signal, too.
constexpr int kOver = SIGUSR1;

sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

sigset_t awaited_signals() {
  sigset_t signals = ending_signals();
  sigaddset(&signals, kOver);
  return signals;
}

}  // namespace

Interruption::Interruption(std::function<void()> last_words) : last_words_(std::move(last_words)) {
  const sigset_t signals = awaited_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  watcher_ = std::thread([this] { wait(); });
}

Interruption::~Interruption() {
  pthread_kill(watcher_.native_handle(), kOver);
  watcher_.join();
  const sigset_t signals = awaited_signals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

void Interruption::wait() {
  const sigset_t signals = awaited_signals();
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
  if (signal == kOver) return;
  last_words_();
  _exit(128 + signal);
}

}  // namespace gopt::cli
