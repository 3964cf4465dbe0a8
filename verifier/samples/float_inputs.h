// Inputs that show what a floating-point type makes of a rule: magnitudes over its whole range, masked rows, large
// shifts, equal elements, numbers near those of the rule.
#pragma once

#include <random>

#include "compiled_expr.h"
#include "gopt/rule.h"

namespace gopt::verifier {

// What the type can hold. Activations are drawn with exponents in [lowest, highest], so that a few of them may be added
// or multiplied by a weight; weights are as trained ones are, within 2^-weight and 2^weight.
struct RealRange {
  double largest, smallest_normal, smallest;
  double unit;    // largest relative error of rounding
  double margin;  // what is below largest / margin may be added up or weighed without an overflow
  int lowest, highest, weight;
};
RealRange range_of(ElementType real);

class FloatInputs {
 public:
  // `rule` as it is stated in the type `real`; `constants` are numbers that occur in it.
  FloatInputs(const RewriteRule& rule, ElementType real, std::vector<double> constants);
  // Inputs of the given extents, by variable, and float variables by slot. Draws of the same number are of one kind.
  SampleInputs draw(const std::vector<std::vector<int64_t>>& dims, int number, std::mt19937_64& random) const;
  // The same inputs but for a rounding of each element: what is left of a result then is what its digits are worth.
  SampleInputs perturbed(const SampleInputs& inputs, std::mt19937_64& random) const;

 private:
  enum class Kind {
    Ordinary,
    Scales,
    PositiveScales,
    ElementScales,
    Masked,
    Shifted,
    Near,  // elements that share their first digits, small enough for what saturates behind them
    Equal,
    Logits,
    NearConstants
  };
  struct Draw {
    Kind kind;
    double base;   // of shifts, near and equal elements; the scale of others
    double apart;  // near elements: how far, as a part of the base
    bool is_positive;
  };
  Draw draw_kind(Kind kind, std::mt19937_64& random) const;
  double draw_element(const Draw& draw, std::mt19937_64& random) const;
  void mask_rows(SampleTensor& tensor, std::mt19937_64& random) const;
  double weight(bool is_positive, std::mt19937_64& random) const;

  const RewriteRule& rule_;
  ElementType real_;
  RealRange range_;
  std::vector<double> constants_;
  size_t floats_;
};

}  // namespace gopt::verifier
