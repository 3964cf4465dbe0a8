// What TASO's rules leave unsaid of shapes: every extent of a variable begins as a symbol of its own, and what an
// operator needs of its inputs makes symbols equal. What has no solution in polynomials stays open, and is a
// requirement of the operator's definition.
#pragma once

#include <map>
#include <set>

#include "taso_rule.h"

namespace gopt::rules {

class TasoShapes {
 public:
  // Only symbols made since may be solved for from now on: the target side must not narrow what the source side means.
  // Groups alone are still made equal where their multiples must be: a weight without channels says no group.
  void freeze();
  Index fresh(const std::string& name);
  Index fresh_group(const std::string& name);
  Index resolve(const Index& index) const { return substitute(index, solution_); }
  void make_equal(const Index& a, const Index& b);
  // The same for a symbol of the source, where an operator of the target has no meaning otherwise.
  void narrow(const Index& symbol, const Index& value);
  // A symbol that was solved for is one of its own again; only meaning() still knows what it must be.
  void reopen(AtomId symbol);
  Index meaning(const Index& index) const { return substitute(resolve(index), reopened_); }
  bool is_open(const Index& index) const;  // one symbol that may still be solved for
  bool changed() const { return changed_; }
  void clear_changed() { changed_ = false; }

  std::map<int, Index> groups_of;  // of the convolutions in the source, by the variable that is their weight

 private:
  void solve(AtomId symbol, const Index& value);
  bool make_groups_equal(const Index& zero);
  std::map<AtomId, int> age_;  // of symbols that may be solved for
  Substitution solution_, reopened_;
  std::map<AtomId, size_t> groups_;  // in the order of their making
  bool frozen_ = false, changed_ = false;
};

// a / b where that is a polynomial; nothing elsewhere, and where b is 0.
std::optional<Index> exact_quotient(const Index& a, const Index& b);

// The rank of each variable (negative) and of each operator's outputs, as far as the operators determine it.
struct TasoRanks {
  std::map<int, int> of_variable;
  std::vector<std::optional<int>> of_source, of_target;
};
TasoRanks infer_taso_ranks(const TasoRule& rule);
std::set<int> variables_of(const TasoRule& rule);

}  // namespace gopt::rules
