// What a run spends its time on: seconds by name. A phase within another stops the clock of the outer one, so that
// phases add up to what was timed.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace gopt {

struct Phase {
  std::string name;
  double seconds = 0;
  int times = 0;  // that it was entered
};

class PhaseClock {
 public:
  // From when it is made until it goes.
  class Running {
   public:
    Running(PhaseClock& clock, const std::string& name);
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    PhaseClock& clock_;
  };

  const std::vector<Phase>& phases() const { return phases_; }  // in order of first entry

 private:
  void charge();  // what went by to the phase that runs

  std::vector<Phase> phases_;
  std::vector<size_t> open_;  // phases that are entered, outer ones first
  std::chrono::steady_clock::time_point since_;
};

}  // namespace gopt
