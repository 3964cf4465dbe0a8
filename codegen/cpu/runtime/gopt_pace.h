// With how many threads a model runs best now. Where others use the processors as well, threads that share kernels wait
// for each other's turns there, and a run may take many times as long as by one thread alone: which of both is faster
// is seen by running.
#pragma once

#include <algorithm>
#include <limits>

namespace gopt_runtime {

class Pace {
 public:
  // Whether the next run is to be by one thread alone.
  bool is_alone() const { return is_alone_; }

  // There is no other way than all threads.
  void give_up() {
    has_given_up_ = true;
    is_alone_ = false;
  }

  // After a run, as is_alone() said; `own_ms` of it the thread that called ran itself.
  void ran(double ms, double own_ms) {
    if (has_given_up_) return;
    runs_++;
    sum_ += ms;
    own_sum_ += own_ms;
    least_ = std::min(least_, ms);
    since_trial_ += ms;
    const bool is_lost = is_trial_ && sum_ > std::max(kTurn * mean_, kLeastTrialMs) && sum_ > kLost * mean_ * runs_;
    if (!is_lost && (runs_ < kTurn || sum_ < kTurnMs)) return;
    if (is_trial_)
      judge();
    else
      watch();
    runs_ = 0;
    sum_ = own_sum_ = 0;
    least_ = kNever;
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  // Runs of a turn, and how long it is at least: some times as long as the system gives a processor to one of two.
  static constexpr int kTurn = 4;
  static constexpr double kTurnMs = 100;
  static constexpr int kSlowTurns = 2;       // after which it is not by chance
  static constexpr double kSlow = 2;         // times the best, for each run of a turn
  static constexpr double kAwake = 0.75;     // of the time, since threads wait awake
  static constexpr double kQuiet = 3;        // times the best of all threads: as fast as one may be alone
  static constexpr double kWorth = 0.9;      // of the other way's time, for a change
  static constexpr double kLost = 1.5;       // of the other way's time, with which a trial ends early
  static constexpr double kTimesTrial = 30;  // times its time without another
  static constexpr double kLongRunMs = 50;   // of which threads wait for each other a small part
  static constexpr double kWaitMs = 100, kLongestWaitMs = 2000;  // from one trial to the next
  static constexpr double kLeastTrialMs = 25;

  // One thread is tried where the others have become slow; all of them from time to time, and where one has become
  // fast.
  void watch() {
    const bool is_awake = own_sum_ > sum_ * kAwake, is_as_ever = is_awake && least_ < best_[is_alone_] * kSlow;
    best_[is_alone_] = std::min(best_[is_alone_], least_);
    slow_turns_ = is_as_ever ? 0 : slow_turns_ + 1;
    mean_ = sum_ / runs_;
    least_before_ = least_;
    const bool is_due = since_trial_ > (is_alone_ && is_awake && mean_ < best_[0] * kQuiet ? kWaitMs : wait_ms_);
    is_trial_ = is_due && (is_alone_ || (slow_turns_ >= kSlowTurns && best_[0] < kLongRunMs));
    if (is_trial_) is_alone_ = !is_alone_;
  }

  // Each trial that changes nothing is followed by a longer time without one, of which it is a small part; where one
  // thread is no faster, what was the best of all threads is so no longer.
  void judge() {
    best_[is_alone_] = std::min(best_[is_alone_], least_);
    const bool stays = sum_ / runs_ < mean_ * kWorth;
    if (!stays) is_alone_ = !is_alone_;
    if (!stays && !is_alone_) best_[0] = std::max(best_[0], least_before_);
    wait_ms_ = stays ? kWaitMs : std::max(std::min(wait_ms_ * 2, kLongestWaitMs), sum_ * kTimesTrial);
    is_trial_ = false;
    slow_turns_ = 0;
    since_trial_ = 0;
  }

  bool is_alone_ = false, is_trial_ = false, has_given_up_ = false;
  int runs_ = 0, slow_turns_ = 0;
  // Milliseconds of this turn; of the one before a trial.
  double sum_ = 0, own_sum_ = 0, least_ = kNever, mean_ = 0, least_before_ = 0;
  double best_[2] = {kNever, kNever};  // of a run: together, alone
  double since_trial_ = 0, wait_ms_ = kWaitMs;
};

}  // namespace gopt_runtime
