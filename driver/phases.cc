#include "gopt/phases.h"

#include <algorithm>

namespace gopt {

PhaseClock::Running::Running(PhaseClock& clock, const std::string& name) : clock_(clock) {
  clock.charge();
  auto phase = std::find_if(clock.phases_.begin(), clock.phases_.end(), [&](const Phase& p) { return p.name == name; });
  if (phase == clock.phases_.end()) phase = clock.phases_.insert(phase, {name});
  phase->times++;
  clock.open_.push_back(static_cast<size_t>(phase - clock.phases_.begin()));
}

PhaseClock::Running::~Running() {
  clock_.charge();
  clock_.open_.pop_back();
}

void PhaseClock::charge() {
  const auto now = std::chrono::steady_clock::now();
  if (!open_.empty()) phases_[open_.back()].seconds += std::chrono::duration<double>(now - since_).count();
  since_ = now;
}

}  // namespace gopt
