#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace gopt::cli {

Progress::Progress(size_t total) : total_(total), shown_(isatty(STDERR_FILENO) != 0) {}

void Progress::step(const std::string& what) {
  constexpr size_t kWidth = 30;
  done_++;
  if (!shown_) return;
  const size_t filled = total_ == 0 ? kWidth : std::min(kWidth, kWidth * done_ / total_);
  fmt::print(stderr, "\r\033[K[{}{}] {}/{} {}", std::string(filled, '#'), std::string(kWidth - filled, '.'), done_,
             total_, what.substr(0, 40));
}

void Progress::clear() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

}  // namespace gopt::cli
