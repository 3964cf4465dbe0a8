// What the steps of one proof share. Each rule is proved with a state of its own, so that verdicts do not depend on
// what was proved before.
#pragma once

#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "normal_form/normal_form.h"
#include "proof_log.h"
#include "solver.h"

namespace gopt::verifier {

// What the method cannot express (an infinite constant outside a maximum); verify_rule answers Unknown with the reason.
class NotExpressible : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A partial function's argument: a divisor that must not be 0, the argument of a root, logarithm or power. It is
// applied where the context holds, for some values of the binders of sums around it: over nothing, it is not applied.
struct Demand {
  std::string function;
  NormalForm argument;
  Cond context;
  std::string text;               // of function and argument, binders numbered by first appearance
  std::vector<AtomId> binders{};  // free ones of the argument, in that order
};

// The demands of both sides. A side has no value where its own are not met.
class Domains {
 public:
  void start_right_side() { right_side_ = true; }
  void demand(std::string function, NormalForm argument, const Cond& context);
  const std::vector<Demand>& of_left() const { return left_; }
  const std::vector<Demand>& of_right() const { return right_; }

 private:
  bool right_side_ = false;
  std::vector<Demand> left_, right_;
};

struct ProofState {
  Solver& solver;
  BinderPool pool;
  Domains domains;
  std::set<int> booleans;            // inputs that hold truth values, 1 or 0
  bool truncating_division = false;  // Divide is the integers'
  bool sides_are_defined = false;    // demands that both sides make are met: what they divide by is not 0
  ProofLog* log = nullptr;           // where steps are written, if anywhere
  Cond always{};                     // what holds wherever the sides are compared
};

// The demands as they are now. What is worked out beside the proof, to tell whether two arguments are equal or what a
// sign leaves of a form, makes demands of its own, which are forgotten at the end of the scope.
class DemandsSoFar {
 public:
  explicit DemandsSoFar(ProofState& state) : state_(state), demanded_(state.domains) {}
  ~DemandsSoFar() { state_.domains = std::move(demanded_); }
  DemandsSoFar(const DemandsSoFar&) = delete;
  DemandsSoFar& operator=(const DemandsSoFar&) = delete;
  const std::vector<Demand>& of_left() const { return demanded_.of_left(); }
  const std::vector<Demand>& of_right() const { return demanded_.of_right(); }

 private:
  ProofState& state_;
  Domains demanded_;
};

}  // namespace gopt::verifier
