// What is known of a rule's symbols: extents are not negative, the rule's condition holds and its operators are
// defined. Decides conditions from that, by sums of what is known; "no" means that it is not certain.
#pragma once

#include <set>
#include <vector>

#include "gopt/index.h"

namespace gopt::optimizer {

class Facts {
 public:
  void add_non_negative(const Index& index);
  void add(const Cond& cond);
  bool is_non_negative(const Index& index) const { return is_non_negative(index, 0); }
  bool holds(const Cond& cond) const;
  // Equations among what was added: indexes that are zero.
  const std::vector<Index>& zeros() const { return zeros_; }
  // What else the index is where one of the equations says that two products are equal and one of them divides it.
  std::vector<Index> other_forms(const Index& index) const;

 private:
  // `depth` bounds how far into divisions of divisions this looks.
  bool is_non_negative(const Index& index, int depth) const;
  bool is_plainly_non_negative(const Index& index, int depth) const;
  bool is_non_negative_atom(AtomId id, int depth) const;

  std::set<AtomId> symbols_;    // not negative
  std::vector<Index> indexes_;  // not negative
  std::vector<Index> zeros_;
  std::vector<Cond> others_;  // alternatives
};

}  // namespace gopt::optimizer
