#include "device_turn.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>

#include "gopt/clock.h"

namespace gopt::driver {

DeviceTurn::DeviceTurn() {
  std::error_code failed;
  const auto folder = std::filesystem::temp_directory_path(failed);
  if (failed) return;
  constexpr int kOfOwner = 0600;
  file_ = open((folder / ("gopt_device_" + std::to_string(getuid()))).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, kOfOwner);
  if (file_ < 0) return;
  const auto start = Clock::now();
  while (flock(file_, LOCK_EX) != 0 && errno == EINTR) {
  }
  waited_seconds_ = seconds_since(start);
}

DeviceTurn::~DeviceTurn() {
  if (file_ >= 0) close(file_);  // and with it the lock
}

}  // namespace gopt::driver
