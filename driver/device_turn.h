// One process at a time runs kernels on a GPU to time them: others that do so wait, and go on building meanwhile.
#pragma once

namespace gopt::driver {

// Holds a lock of the GPU's, the first that this process sees, while it lives; where none can be had, nothing is waited
// for, and for no longer than two minutes.
class DeviceTurn {
 public:
  DeviceTurn();
  ~DeviceTurn();
  DeviceTurn(const DeviceTurn&) = delete;
  DeviceTurn& operator=(const DeviceTurn&) = delete;
  double waited_seconds() const { return waited_seconds_; }

 private:
  int file_ = -1;
  double waited_seconds_ = 0;
};

}  // namespace gopt::driver
