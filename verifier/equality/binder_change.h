// Guesses of how binders correspond (untrusted), and the check that a guess is a bijection of integer vectors.
#pragma once

#include "normal_form/normal_form.h"

namespace gopt::verifier {

// The index without a factor that all its coefficients share, which changes nothing where it must be 0.
Index without_common_factor(const Index& index);

// Lower bounds that the literals state of the binder: if some value of it satisfies the condition, the largest of these
// does.
std::vector<Index> lower_bounds(const Cond& cond, AtomId binder);

// Subscript differences that must vanish for the two factors to be equal.
void append_equations(const Factor& known, const Factor& other, std::vector<Index>& equations);

// The binders of sums and maxima inside factors. They mean nothing outside: no value of an outer binder may hold one.
struct InnerBinders {
  std::vector<AtomId> of_known, of_other;
  void add(const Factor& known, const Factor& other);
  bool is_held_by(const Index& index) const;
};

// Unknowns that equations == 0 determine, by each other and what else the equations hold; the rest is open. Inner
// binders of the side whose unknowns they are are unknowns on the way.
struct PartialSolution {
  Substitution values;
  std::vector<AtomId> open;
};
PartialSolution solve_partially(std::vector<Index> equations, const std::vector<AtomId>& unknowns,
                                const InnerBinders& inside);

// Solves equations == 0 for `unknowns` over `targets`; unknowns that stay free take unused targets, in the order
// numbered `alternative`. Nothing where that fails.
std::optional<Substitution> solve_binders(const std::vector<Index>& equations, const std::vector<AtomId>& unknowns,
                                          const std::vector<AtomId>& targets, const InnerBinders& inside,
                                          int alternative);

// Where some integer value of the binder satisfies the condition; never where that is not seen.
Cond where_some(const Cond& cond, AtomId binder);

// Whether `change`, from binders `from` to indexes over binders `to`, is affine with a matrix of integers and sizes
// whose determinant is 1 or -1.
bool is_unimodular(const std::vector<AtomId>& from, const std::vector<AtomId>& to, const Substitution& change);

}  // namespace gopt::verifier
