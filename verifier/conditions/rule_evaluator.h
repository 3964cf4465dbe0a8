// Both sides of a rule evaluated at given sizes: whether they are defined, and their values at any position for random
// inputs. The truth tables of conditions (size_table.h) and regions (region_table.h) are made of it.
#pragma once

#include <optional>
#include <random>
#include <set>
#include <vector>

#include "gopt/rule.h"
#include "samples/compiled_side.h"

namespace gopt::verifier {

class RuleEvaluator {
 public:
  // Precondition: the three outlive the evaluator.
  RuleEvaluator(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right);

  // Sizes at which the left side is defined. The right side: its requirements hold and its outputs' extents are those
  // of the left.
  void set_sizes(const Environment& sizes);
  bool is_left_defined() const;
  bool is_right_defined() const;
  // Extents of an output of the left side; nothing where one is negative.
  std::optional<std::vector<int64_t>> dims(size_t output) const;
  bool has_elements() const;  // every variable and every output has some

  // How often to draw inputs: twice, and where a side applies partial functions once more for each variable. Outputs of
  // few elements need several such draws: two maxima of few elements are often the same.
  int rounds() const;
  int draws() const;
  // Random inputs; the second round draws positive numbers, so that roots and logarithms are met where they are
  // defined; in later rounds one variable is 0, since a side that divides by it may differ from one that does not there
  // alone.
  void draw_inputs(std::mt19937_64& random, int round);
  // Whether both sides have one value there, as far as rounding lets it be seen. `is_finite` is set where that value is
  // a number.
  bool agree_at(size_t output, const std::vector<int64_t>& position, bool* is_finite = nullptr);
  // Whether they agree at all positions of each output; where these are many, at the corners, at one position for each
  // place on each axis, and at `limit` more.
  bool agree(std::mt19937_64& random, size_t limit);

 private:
  const RewriteRule& rule_;
  const SideMeaning &left_, &right_;
  Cond left_condition_;
  CompiledSide left_side_, right_side_;
  size_t floats_;
  std::map<std::string, std::vector<Index>> index_extents_;
  bool truncating_;
  bool is_partial_;  // a side divides, or applies a named function
  Environment sizes_;
  SampleInputs inputs_;
};

}  // namespace gopt::verifier
