#include "matching/facts.h"

#include <algorithm>
#include <numeric>

#include "matching/unify.h"

namespace gopt::optimizer {

namespace {

// What is not negative exactly where the index is: without a factor that all its terms have.
Index in_lowest_terms(const Index& index) {
  int64_t common = 0;
  for (const Index::Term& term : index.terms()) common = std::gcd(common, term.coefficient);
  if (common < 2) return index;
  const int64_t rest = ((index.constant() % common) + common) % common;
  return divide_exactly(index - Index(rest), Index(common)).value_or(index);
}

}  // namespace

void Facts::add_non_negative(const Index& given) {
  if (given.is_constant()) return;
  const Index index = in_lowest_terms(given);
  if (const auto single = index.as_atom(); single && atom(*single).kind == AtomKind::Symbol) symbols_.insert(*single);
  if (std::find(indexes_.begin(), indexes_.end(), index) != indexes_.end()) return;
  if (std::find(indexes_.begin(), indexes_.end(), -index) != indexes_.end()) zeros_.push_back(index);
  // A symbol that is at least one is not negative either.
  if (index.constant() < 0) add_non_negative(index + Index(-index.constant()));
  indexes_.push_back(index);
}

void Facts::add(const Cond& cond) {
  switch (cond.kind()) {
    case CondKind::True:
    case CondKind::False: return;
    case CondKind::NonNegative: return add_non_negative(cond.index());
    case CondKind::And:
      for (const Cond& part : cond.parts()) add(part);
      return;
    case CondKind::Or: others_.push_back(cond);
  }
}

std::vector<Index> Facts::other_forms(const Index& index) const {
  std::vector<Index> forms;
  for (const Index& zero : zeros_) {
    if (zero.terms().size() != 2 || zero.constant() != 0) continue;
    Index product = zero.terms().front().coefficient;
    for (AtomId id : zero.terms().front().atoms) product = product * Index::from_atom(id);
    const Index other = product - zero;
    if (const auto quotient = divide_exactly(index, product)) forms.push_back(*quotient * other);
    if (const auto quotient = divide_exactly(index, other)) forms.push_back(*quotient * product);
  }
  return forms;
}

bool Facts::is_non_negative_atom(AtomId id, int depth) const {
  const Atom& a = atom(id);
  if (a.kind == AtomKind::Symbol) return symbols_.count(id) > 0;
  // A divisor is positive wherever the quotient is meant at all.
  return a.kind == AtomKind::FloorDiv && depth < 2 && is_non_negative(a.numerator, depth + 1);
}

bool Facts::is_plainly_non_negative(const Index& index, int depth) const {
  if (index.constant() < 0) return false;
  for (const Index::Term& term : index.terms())
    if (term.coefficient < 0) return false;
  for (const Index::Term& term : index.terms())
    for (AtomId id : term.atoms)
      if (!is_non_negative_atom(id, depth)) return false;
  return true;
}

bool Facts::is_non_negative(const Index& index, int depth) const {
  if (is_plainly_non_negative(index, depth)) return true;
  // The sum of one or two known indexes and of what is plainly not negative.
  for (size_t i = 0; i < indexes_.size(); i++) {
    const Index rest = index - indexes_[i];
    if (is_plainly_non_negative(rest, depth)) return true;
    for (size_t j = i; j < indexes_.size(); j++)
      if (is_plainly_non_negative(rest - indexes_[j], depth)) return true;
  }
  return false;
}

bool Facts::holds(const Cond& cond) const {
  switch (cond.kind()) {
    case CondKind::True: return true;
    case CondKind::False: return false;
    case CondKind::NonNegative: return is_non_negative(cond.index());
    case CondKind::And:
      return std::all_of(cond.parts().begin(), cond.parts().end(), [&](const Cond& part) { return holds(part); });
    case CondKind::Or:
      return std::find(others_.begin(), others_.end(), cond) != others_.end() ||
             std::any_of(cond.parts().begin(), cond.parts().end(), [&](const Cond& part) { return holds(part); });
  }
  return false;
}

}  // namespace gopt::optimizer
