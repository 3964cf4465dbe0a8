#include "condition_parts.h"

#include <algorithm>

#include "normal_form/normal_form.h"
#include "normal_form/simplify.h"

namespace gopt::verifier {

bool is_over(const Cond& cond, const std::set<AtomId>& symbols) {
  std::set<AtomId> used;
  collect_symbols(cond, used);
  return std::includes(symbols.begin(), symbols.end(), used.begin(), used.end());
}

std::vector<Cond> parts_of(const Cond& condition) {
  std::vector<Cond> literals = conjuncts(condition), parts;
  for (size_t i = 0; i < literals.size(); i++) {
    Cond part = literals[i];
    for (size_t j = i + 1; j < literals.size() && part.kind() == CondKind::NonNegative; j++) {
      if (literals[j].kind() != CondKind::NonNegative || literals[j].index() != -part.index()) continue;
      part = part && literals[j];
      literals.erase(literals.begin() + static_cast<ptrdiff_t>(j));
    }
    parts.push_back(part);
  }
  return parts;
}

size_t degree(const Cond& cond) {
  size_t most = 0;
  for (const Index::Term& term : cond.index().terms()) most = std::max(most, term.atoms.size());
  for (const Cond& part : cond.parts()) most = std::max(most, degree(part));
  return most;
}

void collect_divisors(const Index& index, std::vector<Index>& out) {
  for (const Index::Term& term : index.terms()) {
    for (AtomId id : term.atoms) {
      const Atom& a = atom(id);
      if (a.kind != AtomKind::FloorDiv) continue;
      collect_divisors(a.denominator, out);
      out.push_back(a.denominator);
      collect_divisors(a.numerator, out);
    }
  }
}
void collect_divisors(const Cond& cond, std::vector<Index>& out) {
  collect_divisors(cond.index(), out);
  for (const Cond& part : cond.parts()) collect_divisors(part, out);
}
void collect_divisors(const Expr& e, std::vector<Index>& out) {
  collect_divisors(e->index, out);
  collect_divisors(e->cond, out);
  for (const Index& s : e->subscripts) collect_divisors(s, out);
  for (const Binder& b : e->binders) collect_divisors(b.extent, out);
  for (const Expr& a : e->args) collect_divisors(a, out);
}

bool can_substitute(const std::vector<Index>& divisors, const Substitution& substitution) {
  return std::none_of(divisors.begin(), divisors.end(),
                      [&](const Index& d) { return substitute(d, substitution) == Index(0); });
}

Cond without_nested_divisions(const Cond& cond, const Cond& given, Solver& solver) {
  if (cond.kind() == CondKind::NonNegative)
    return at_least(without_nested_divisions(cond.index(), given, solver), Index(0));
  if (cond.kind() != CondKind::And) return cond;
  Cond all;
  for (const Cond& part : cond.parts()) all = all && without_nested_divisions(part, given, solver);
  return all;
}

}  // namespace gopt::verifier
