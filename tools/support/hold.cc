#include "hold.h"

#include <pthread.h>
#include <signal.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace gopt::cli {

Result<Hold> Hold::parse(const char* text) {
  Hold hold;
  if (!text) return hold;
  std::istringstream words(text);
  if (!(words >> hold.count_ >> hold.file_) || hold.count_ == 0)
    return Error{std::string("GOPT_HOLD=") + text + ": expected a number, 1 or more, and a file"};
  return hold;
}

void Hold::after(size_t count) const {
  if (!is_set() || count != count_) return;
  sigset_t ending, before;
  sigemptyset(&ending);
  sigaddset(&ending, SIGINT);
  sigaddset(&ending, SIGTERM);
  // Blocked before anybody can know that the program is here.
  pthread_sigmask(SIG_BLOCK, &ending, &before);
  std::ofstream file(file_, std::ios::app);
  file << "held after " << count << "\n" << std::flush;
  if (!file) throw std::runtime_error("GOPT_HOLD: " + file_ + " cannot be written");
  sigsuspend(&before);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace gopt::cli
