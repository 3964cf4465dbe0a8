// Solves equations between a pattern's extents or attributes and the model's: rule symbols are bound to the model's
// polynomials. An equation that binds one symbol linearly is solved at once, others wait until more is known.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "gopt/index.h"

namespace gopt::optimizer {

class Facts;

class SymbolBindings {
 public:
  // With facts, two extents are equal where these say so: products of a goal's symbols that none of them can be solved
  // for.
  explicit SymbolBindings(const Facts* facts = nullptr) : facts_(facts) {}
  // Adds pattern == actual. False: it contradicts what is bound.
  bool unify(const Index& pattern, const Index& actual);
  bool unify(const std::vector<Index>& pattern, const std::vector<Index>& actual);
  // Solves what waits. False: a contradiction, or an equation that cannot be decided.
  bool settle();
  // Solves what can be solved. False: a contradiction.
  bool propagate();
  // Takes back what was added since, for a search that tries one thing after another. Not across settle().
  struct Mark {
    size_t bound, waiting;
  };
  Mark mark() const { return {bound_.size(), waiting_.size()}; }
  void go_back(const Mark& mark);
  // Null: not bound.
  const Index* find(AtomId symbol) const;
  Substitution substitution() const;

 private:
  enum class Outcome { Holds, Contradicts, Waits };
  Outcome solve(const Index& pattern, const Index& actual);
  bool are_equal(const Index& a, const Index& b) const;
  std::optional<Index> quotient(const Index& dividend, const Index& divisor) const;

  const Facts* facts_;
  std::vector<std::pair<AtomId, Index>> bound_;
  std::vector<std::pair<Index, Index>> waiting_;
};

// Quotient where `divisor` divides every part of `dividend`; nothing else is a quotient.
std::optional<Index> divide_exactly(const Index& dividend, const Index& divisor);

// What the symbol is where the index is zero and `factor` is not; nothing where the index is not linear in it, or the
// quotient not exact.
struct ZeroSolution {
  Index value, factor;
};
std::optional<ZeroSolution> solve_for_zero(const Index& index, AtomId symbol);

// True only where the index is non-negative for all values >= 0 of the model's symbols.
bool is_surely_non_negative(const Index& index);
// True only where the condition holds for all of them.
bool is_surely_true(const Cond& cond);

}  // namespace gopt::optimizer
