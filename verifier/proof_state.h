// What the steps of one proof share. Each rule is proved with a state of its own, so that verdicts do not depend on
// what was proved before.
#pragma once

#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "normal_form.h"
#include "solver.h"

namespace gopt {

// What the method cannot express (an infinite constant outside a maximum); verify_rule answers Unknown with the reason.
class ProofLimit : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A partial function's argument: a divisor that must not be 0, the argument of a root, logarithm or power.
struct Demand {
  std::string function;
  NormalForm argument;
};

// The demands of both sides. The left side has no value where its own are not met; the right side may need, and assume,
// no more.
class Domains {
 public:
  void start_right_side() { right_side_ = true; }
  void demand(std::string function, NormalForm argument);
  // Demands of the right side that are not written alike on the left.
  const std::vector<Demand>& open() const { return open_; }
  const std::vector<Demand>& of_left() const { return left_; }

 private:
  bool right_side_ = false;
  std::set<std::string> left_keys_;
  std::vector<Demand> left_, open_;
};

struct ProofState {
  Solver& solver;
  BinderPool pool;
  Domains domains;
  bool truncating_division = false;  // Divide is the integers'
};

}  // namespace gopt
