// Linear constraints and whether they can hold together, by Fourier-Motzkin elimination in exact numbers. It settles
// the small questions of which proofs ask hundreds, each in less time than Z3 takes to be given one (solver.cc); what
// is too large for it is left open. Infeasible means: a sum of the constraints, each taken a positive number of times
// and, over integers, rounded down, says that a negative number is not negative.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "normal_form/rational.h"

namespace gopt::verifier {

class LinearSystem {
 public:
  using Variable = uint32_t;
  using Terms = std::vector<std::pair<Variable, int64_t>>;  // sorted by variable, no coefficient is 0
  enum class Numbers { Integers, Reals };
  enum class Answer { Infeasible, Feasible, Unknown };  // Feasible: by numbers that need not be whole

  explicit LinearSystem(Numbers numbers) : numbers_(numbers) {}

  // That the terms and the constant sum to at least 0, or, where it is strict, to more.
  void require(const Terms& terms, const Rational& constant, bool is_strict = false);
  // Values of these follow from those of others: a point is looked for in the others.
  void set_derived(Variable variable);

  // Once, after all is required.
  Answer solve();
  // Whole values that satisfy the constraints, which differ with `choice`. Precondition: the answer was Feasible.
  std::optional<std::map<Variable, int64_t>> integer_point(int choice) const;

 private:
  struct Bound {
    Rational constant;
    bool is_strict;
  };
  using Rows = std::map<Terms, Bound>;
  struct Elimination {
    Variable variable;
    std::vector<std::pair<Terms, Bound>> rows;  // that spoke of it
  };
  struct Count {
    size_t positive = 0, negative = 0;
    size_t growth() const { return positive * negative; }
  };
  struct Pivot {
    Variable variable;
    std::optional<Terms> equation;
  };
  void insert(Terms terms, Rational constant, bool is_strict);
  Pivot choose_pivot() const;
  std::optional<Pivot> pivot_of_equation() const;
  bool is_equation(const Terms& terms, const Bound& bound) const;
  void eliminate(const Pivot& pivot);
  void combine(const std::pair<Terms, Bound>& positive, const std::pair<Terms, Bound>& negative, Variable variable);
  bool is_derived(Variable variable) const { return variable < derived_.size() && derived_[variable]; }

  Numbers numbers_;
  Rows rows_;
  std::vector<bool> derived_;
  std::vector<Elimination> eliminated_;
  bool is_contradiction_ = false;
};

}  // namespace gopt::verifier
