// Work that takes long, called from Python: other threads of Python run meanwhile, and errors become exceptions.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <functional>
#include <string>

#include "gopt/result.h"

namespace gopt::python {

// Raised as gopt.Error.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <class T>
T unwrap(Result<T> result) {
  if (!result.ok()) throw UserError(result.error().message);
  return *std::move(result);
}

// Runs `work` in a thread of its own, without the interpreter's lock, to its end. Where a signal handler raises
// (Ctrl-C) `stop` is set, and what was raised is thrown when the work has ended. What `work` throws is thrown here.
void run_interruptibly(std::atomic<bool>& stop, const std::function<void()>& work);

}  // namespace gopt::python
