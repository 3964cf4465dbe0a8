// What the steps of one proof share. Each rule is proved with a state of its own, so that verdicts do not depend on
// what was proved before.
#pragma once

#include <set>
#include <stdexcept>
#include <string>

#include "normal_form.h"
#include "solver.h"

namespace gopt {

// What the method cannot express (an infinite constant outside a maximum); verify_rule answers Unknown with the reason.
class ProofLimit : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Where partial functions are defined. The left side may assume that its own divisors are not 0 and its own radicands
// not negative, since it has no value otherwise; the right side may assume, and need, no more than that.
class Domains {
 public:
  void start_right_side() { right_side_ = true; }
  // Notes that a side needs `text`; whether the left side needed it too (always for the left side itself).
  bool admits(const std::string& text) {
    const std::string canonical = without_binder_names(text);
    if (!right_side_) needed_.insert(canonical);
    return needed_.count(canonical) > 0;
  }
  void demand(const std::string& text) {
    if (!admits(text)) missing_ = text;
  }
  // A demand of the right side that the left does not make; empty if there is none.
  const std::string& missing() const { return missing_; }

 private:
  static std::string without_binder_names(const std::string& text);
  std::set<std::string> needed_;
  std::string missing_;
  bool right_side_ = false;
};

struct ProofState {
  Solver& solver;
  BinderPool pool;
  Domains domains;
  bool truncating_division = false;  // Divide is the integers'
};

}  // namespace gopt
