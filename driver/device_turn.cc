#include "device_turn.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "gopt/clock.h"
#include "machine.h"

namespace gopt::driver {

DeviceTurn::DeviceTurn() {
  std::error_code failed;
  const auto folder = std::filesystem::temp_directory_path(failed);
  if (failed) return;
  constexpr int kOfOwner = 0600;
  const std::string name = "gopt_device_" + std::to_string(getuid()) + "_" + cuda_bus().value_or("");
  file_ = open((folder / name).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, kOfOwner);
  if (file_ < 0) return;
  // One that hangs must not hang the others: after a while times are taken beside it.
  constexpr double kLongestWait = 120;
  constexpr auto kPause = std::chrono::milliseconds(20);
  const auto start = Clock::now();
  while (flock(file_, LOCK_EX | LOCK_NB) != 0 && seconds_since(start) < kLongestWait)
    std::this_thread::sleep_for(kPause);
  waited_seconds_ = seconds_since(start);
}

DeviceTurn::~DeviceTurn() {
  if (file_ >= 0) close(file_);  // and with it the lock
}

}  // namespace gopt::driver
