// Which of two polynomials of a rule's symbols is the larger one, as samples of sizes tell: a guess, by which a right
// side is written before it is proved.
#pragma once

#include <optional>
#include <vector>

#include "gopt/index.h"

namespace gopt::verifier {

class SizeSigns {
 public:
  // Precondition: `sizes` is not empty.
  explicit SizeSigns(std::vector<Environment> sizes) : sizes_(std::move(sizes)) {}

  // Whether that holds at all samples; false where one gives the polynomial no value.
  bool is_never_below(const Index& a, const Index& b) const;
  bool is_same(const Index& a, const Index& b) const { return is_never_below(a, b) && is_never_below(b, a); }
  bool is_ever_below(const Index& a, const Index& b) const;

  // The smaller or larger one at all samples; nothing where that depends on the sizes.
  std::optional<Index> smaller(const Index& a, const Index& b) const;
  std::optional<Index> larger(const Index& a, const Index& b) const;

  // Whether the condition is false at more than half of the samples: else it is one that a proof may rest on.
  bool is_mostly_false(const Cond& condition) const;
  // The quotient rounded down: a number where it is one at all samples.
  Index quotient(const Index& numerator, const Index& denominator) const;

 private:
  std::vector<Environment> sizes_;
};

}  // namespace gopt::verifier
