// Equality of a rule's outputs, one by one.
#pragma once

#include "proof_task.h"
#include "regions/region_table.h"

namespace gopt::verifier {

class OutputProver {
 public:
  explicit OutputProver(ProofTask& task) : task_(task) {}

  // Whether the output is equal wherever the left side is defined and `part` holds; if no proof is found, once more
  // with empty tensors as cases of their own.
  bool prove(size_t output, const Cond& part);
  // The same for the positions of a box, with equations solved; of all where it has no ranges.
  bool prove_box(size_t output, const Cond& part, const Box& box, const Substitution& solved);

  // What was found on the way, since the prover was made or the finding was forgotten: a condition under which both
  // sides apply partial functions to the same values;
  const std::optional<Cond>& missing() const { return missing_; }
  void forget_missing() { missing_.reset(); }
  // why no proof was found, where that is known, and whether it is that the left side alone applies one;
  const std::string& reason() const { return reason_; }
  bool left_alone_is_partial() const { return left_alone_is_partial_; }
  // whether the left side of an output that is equal has no value where the right side has one.
  bool left_demands_more() const { return left_demands_more_; }

 private:
  struct Attempt;
  bool prove_in(size_t output, const Cond& part);
  size_t divisions_left(size_t output, const Substitution& solved) const;
  bool can_solve(size_t output, const Cond& part, const Substitution& solved) const;
  std::vector<Index> subscripts_of(size_t output) const;
  bool are_sizes(const std::vector<Index>& factors, const Cond& assumed);  // none is negative
  void normalize_sides(Attempt& attempt);
  bool conclude(Attempt& attempt, const Cond& part);
  bool meets_demands(struct ProofState& state, const Cond& part);

  ProofTask& task_;
  std::optional<Cond> missing_;
  std::string reason_;
  bool left_alone_is_partial_ = false, left_demands_more_ = false;
};

}  // namespace gopt::verifier
