// Forms as real numbers made of variables: elements, functions and whatever else is no sum, product, maximum or
// comparison is a variable, the same for the same text. piecewise.h and demands.h ask the solver about what comes out.
#pragma once

#include <map>

#include "solver/proof_state.h"

namespace gopt::verifier {

class RealEncoder {
 public:
  RealExprPtr operator()(const NormalForm& form);
  // What is known of the variables met so far: roots and inverses by what they are of, functions by their bounds. Where
  // a function is applied outside its domain nothing is claimed.
  std::vector<RealFact> facts(ProofState& state);

  // What the variables met so far stand for, in the order in which they were met: factors, and sums over binders.
  const std::vector<std::pair<std::string, Factor>>& factors() const { return factors_; }
  const std::vector<std::pair<std::string, Summand>>& sums() const { return sums_; }

 private:
  RealExprPtr encode(const Summand& term);
  RealExprPtr encode(const Factor& factor);
  RealExprPtr variable(const std::string& text, const Factor* factor);
  void append_facts(const std::string& variable, const Factor& factor, ProofState& state, std::vector<RealFact>& out);

  std::map<std::string, size_t> numbers_;
  std::vector<std::pair<std::string, Factor>> factors_;  // by which variables are known
  std::vector<std::pair<std::string, Summand>> sums_;
};

}  // namespace gopt::verifier
