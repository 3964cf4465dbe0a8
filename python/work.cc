#include "work.h"

#include <chrono>
#include <future>

namespace gopt::python {

namespace nb = nanobind;

void run_interruptibly(std::atomic<bool>& stop, const std::function<void()>& work) {
  constexpr auto kBetweenLooks = std::chrono::milliseconds(50);
  std::optional<nb::python_error> raised;
  std::future<void> done;
  {
    const nb::gil_scoped_release release;
    done = std::async(std::launch::async, work);
    while (done.wait_for(kBetweenLooks) != std::future_status::ready) {
      if (stop) continue;
      const nb::gil_scoped_acquire acquire;
      if (PyErr_CheckSignals() == 0) continue;
      raised.emplace();
      stop = true;
    }
  }
  done.get();
  if (raised) throw nb::python_error(*raised);
}

}  // namespace gopt::python
