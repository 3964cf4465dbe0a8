// Sums over the same range as one sum of what is summed: SUM |x| - SUM max(x,0) - SUM max(-x,0) is 0 as
// |x| - max(x,0) - max(-x,0) is, whatever the element. match.h tries it where classes of equal integrands are not
// enough.
#pragma once

#include "normal_form/normal_form.h"

namespace gopt::verifier {

struct SharedSum {
  Cond guard;
  NormalForm integrand;  // binders of the first member are free in it
  // Terms by position, with the change of their binders to those of the first.
  std::vector<std::pair<size_t, Substitution>> members;
};

// The terms by ranges: those with binders whose guards are the same, up to an order of the binders, and those without
// binders, which keep their guards. Nothing where a range has one term only, or there are no binders at all.
std::optional<std::vector<SharedSum>> shared_sums(const std::vector<Summand>& terms);

}  // namespace gopt::verifier
