#include "matching/unify.h"

#include <algorithm>

#include "matching/facts.h"

namespace gopt::optimizer {
namespace {

Index product_of(const std::vector<AtomId>& atoms, int64_t coefficient) {
  Index product = coefficient;
  for (AtomId id : atoms) product = product * Index::from_atom(id);
  return product;
}

// pattern = factor * symbol + rest, where neither holds the symbol. Nothing where it is not linear.
struct LinearForm {
  Index factor, rest;
};
std::optional<LinearForm> linear_in(const Index& pattern, AtomId symbol) {
  LinearForm form{0, pattern.constant()};
  for (const Index::Term& term : pattern.terms()) {
    const auto occurrences = std::count(term.atoms.begin(), term.atoms.end(), symbol);
    if (occurrences > 1) return std::nullopt;
    for (AtomId id : term.atoms) {
      if (id == symbol || atom(id).kind == AtomKind::Symbol) continue;
      std::set<AtomId> inside;
      collect_symbols(Index::from_atom(id), inside);
      if (inside.count(symbol)) return std::nullopt;
    }
    std::vector<AtomId> others;
    for (AtomId id : term.atoms)
      if (id != symbol) others.push_back(id);
    (occurrences ? form.factor : form.rest) += product_of(others, term.coefficient);
  }
  return form;
}

}  // namespace

std::optional<Index> divide_exactly(const Index& dividend, const Index& divisor) {
  if (divisor == Index(0)) return std::nullopt;
  if (dividend == divisor) return Index(1);
  if (const auto number = divisor.as_constant()) {
    if (dividend.constant() % *number != 0) return std::nullopt;
    Index quotient = dividend.constant() / *number;
    for (const Index::Term& term : dividend.terms()) {
      if (term.coefficient % *number != 0) return std::nullopt;
      quotient += product_of(term.atoms, term.coefficient / *number);
    }
    return quotient;
  }
  // A divisor of one term: taken out of each term of the dividend.
  if (divisor.terms().size() != 1 || divisor.constant() != 0 || dividend.constant() != 0) return std::nullopt;
  const Index::Term& by = divisor.terms().front();
  Index quotient = 0;
  for (const Index::Term& term : dividend.terms()) {
    if (term.coefficient % by.coefficient != 0) return std::nullopt;
    std::vector<AtomId> left = term.atoms;
    for (AtomId id : by.atoms) {
      const auto position = std::find(left.begin(), left.end(), id);
      if (position == left.end()) return std::nullopt;
      left.erase(position);
    }
    quotient += product_of(left, term.coefficient / by.coefficient);
  }
  return quotient;
}

std::optional<ZeroSolution> solve_for_zero(const Index& index, AtomId symbol) {
  const auto form = linear_in(index, symbol);
  if (!form || form->factor == Index(0)) return std::nullopt;
  const auto value = divide_exactly(-form->rest, form->factor);
  if (!value) return std::nullopt;
  return ZeroSolution{*value, form->factor};
}

const Index* SymbolBindings::find(AtomId symbol) const {
  for (const auto& [bound, value] : bound_)
    if (bound == symbol) return &value;
  return nullptr;
}

Substitution SymbolBindings::substitution() const { return {bound_.begin(), bound_.end()}; }

bool SymbolBindings::are_equal(const Index& a, const Index& b) const {
  if (a == b) return true;
  if (!facts_) return false;
  const std::vector<Index> forms = facts_->other_forms(a);
  return std::find(forms.begin(), forms.end(), b) != forms.end();
}

std::optional<Index> SymbolBindings::quotient(const Index& dividend, const Index& divisor) const {
  auto exact = divide_exactly(dividend, divisor);
  if (exact || !facts_) return exact;
  for (const Index& form : facts_->other_forms(dividend))
    if ((exact = divide_exactly(form, divisor))) return exact;
  return std::nullopt;
}

SymbolBindings::Outcome SymbolBindings::solve(const Index& pattern, const Index& actual) {
  if (pattern.is_constant()) return pattern == actual ? Outcome::Holds : Outcome::Contradicts;
  if (const auto single = pattern.as_atom(); single && atom(*single).kind == AtomKind::Symbol) {
    if (const Index* value = find(*single)) return are_equal(*value, actual) ? Outcome::Holds : Outcome::Contradicts;
    bound_.emplace_back(*single, actual);
    return Outcome::Holds;
  }
  std::set<AtomId> symbols;
  collect_symbols(pattern, symbols);
  std::optional<AtomId> unknown;
  for (AtomId id : symbols) {
    if (find(id)) continue;
    if (unknown) return Outcome::Waits;
    unknown = id;
  }
  if (!unknown) return are_equal(substitute(pattern, substitution()), actual) ? Outcome::Holds : Outcome::Contradicts;
  const auto form = linear_in(pattern, *unknown);
  if (!form) return Outcome::Waits;
  const Substitution known = substitution();
  const auto value = quotient(actual - substitute(form->rest, known), substitute(form->factor, known));
  if (!value) return Outcome::Contradicts;
  bound_.emplace_back(*unknown, *value);
  return Outcome::Holds;
}

bool SymbolBindings::unify(const Index& pattern, const Index& actual) {
  const Outcome outcome = solve(pattern, actual);
  if (outcome == Outcome::Waits) waiting_.emplace_back(pattern, actual);
  return outcome != Outcome::Contradicts;
}

bool SymbolBindings::unify(const std::vector<Index>& pattern, const std::vector<Index>& actual) {
  if (pattern.size() != actual.size()) return false;
  for (size_t i = 0; i < pattern.size(); i++)
    if (!unify(pattern[i], actual[i])) return false;
  return true;
}

void SymbolBindings::go_back(const Mark& mark) {
  bound_.resize(mark.bound);
  waiting_.resize(mark.waiting);
}

bool SymbolBindings::settle() { return propagate() && waiting_.empty(); }

bool SymbolBindings::propagate() {
  for (bool progress = true; progress && !waiting_.empty();) {
    progress = false;
    auto equations = std::move(waiting_);
    waiting_.clear();
    for (const auto& [pattern, actual] : equations) {
      const size_t before = waiting_.size();
      if (!unify(pattern, actual)) return false;
      progress = progress || waiting_.size() == before;
    }
  }
  return true;
}

bool is_surely_non_negative(const Index& index) {
  if (index.constant() < 0) return false;
  for (const Index::Term& term : index.terms()) {
    if (term.coefficient < 0) return false;
    for (AtomId id : term.atoms)
      if (atom(id).kind != AtomKind::Symbol) return false;
  }
  return true;
}

bool is_surely_true(const Cond& cond) {
  switch (cond.kind()) {
    case CondKind::True: return true;
    case CondKind::False: return false;
    case CondKind::NonNegative: return is_surely_non_negative(cond.index());
    case CondKind::And: return std::all_of(cond.parts().begin(), cond.parts().end(), is_surely_true);
    case CondKind::Or: return std::any_of(cond.parts().begin(), cond.parts().end(), is_surely_true);
  }
  return false;
}

}  // namespace gopt::optimizer
