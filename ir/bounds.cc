#include "gopt/bounds.h"

#include <algorithm>

namespace gopt {
namespace {

constexpr int kMostSteps = 24;  // of replacing symbols by their bounds

bool depends_on(AtomId id, AtomId symbol) {
  std::set<AtomId> symbols;
  collect_symbols(Index::from_atom(id), symbols);
  return symbols.contains(symbol);
}

// index = slope * atom + rest; the slope may hold the atom again.
struct Split {
  Index slope, rest;
};
Split split_by(const Index& index, AtomId id) {
  Split split{Index(0), Index(index.constant())};
  for (const Index::Term& term : index.terms()) {
    const auto at = std::ranges::find(term.atoms, id);
    Index product(term.coefficient);
    for (auto it = term.atoms.begin(); it != term.atoms.end(); ++it)
      if (it != at) product = product * Index::from_atom(*it);
    (at == term.atoms.end() ? split.rest : split.slope) += product;
  }
  return split;
}

// The first atom that is no size; loops before divisions, which may hold loops.
std::optional<AtomId> atom_to_bound(const Index& index, const SymbolBounds& bounds) {
  std::optional<AtomId> division;
  for (const Index::Term& term : index.terms())
    for (const AtomId id : term.atoms) {
      if (bounds.spans.contains(id)) return id;
      if (atom(id).kind == AtomKind::FloorDiv && !division) division = id;
    }
  return division;
}

// What is left of all sizes is at least 1: with each one larger by one than something of at least 0, as counts are, no
// coefficient may be negative.
bool is_nonnegative_in_sizes(const Index& index, const SymbolBounds& bounds) {
  Substitution shifted;
  for (const Index::Term& term : index.terms())
    for (const AtomId id : term.atoms) {
      if (bounds.counts.contains(id)) continue;
      if (!bounds.sizes.contains(id)) return false;
      shifted[id] = Index::from_atom(id) + Index(1);
    }
  const Index moved = substitute(index, shifted);
  return moved.constant() >= 0 &&
         std::ranges::all_of(moved.terms(), [](const Index::Term& term) { return term.coefficient >= 0; });
}

bool is_nonnegative(const Index& index, const SymbolBounds& bounds, int steps) {
  if (index.is_constant()) return index.constant() >= 0;
  const std::optional<AtomId> id = atom_to_bound(index, bounds);
  if (!id) return is_nonnegative_in_sizes(index, bounds);
  if (steps == 0) return false;
  const auto is_so = [&](const Index& other) { return is_nonnegative(other, bounds, steps - 1); };
  const Split split = split_by(index, *id);
  const bool rises = is_so(split.slope);
  if (!rises && !is_so(-split.slope)) return false;
  if (const auto span = bounds.spans.find(*id); span != bounds.spans.end())
    return is_so(split.slope * (rises ? span->second.low : span->second.high) + split.rest);
  // A quotient q of n by d: 0 <= q where n >= 0, and d q <= n.
  const Atom& quotient = atom(*id);
  if (!is_so(quotient.denominator - Index(1))) return false;
  if (rises) return is_so(quotient.numerator) && is_so(split.rest);
  return is_so(split.slope * quotient.numerator + split.rest * quotient.denominator);
}

template <class Map>
Index map_atoms(const Index& index, const Map& map) {
  Index result(index.constant());
  for (const Index::Term& term : index.terms()) {
    Index product(term.coefficient);
    for (const AtomId id : term.atoms) product = product * map(id);
    result += product;
  }
  return result;
}

bool is_in_one_step(const Index& n, const Index& d, const SymbolBounds& bounds) {
  return is_surely_nonnegative(n, bounds) && is_surely_nonnegative(d - Index(1) - n, bounds);
}

// floor(n / d): what a loop adds in whole multiples of d comes out, and the rest is 0 where it is seen to be below d.
Index divide(Index n, const Index& d, const SymbolBounds& bounds) {
  Index quotient(0);
  for (const auto& [symbol, span] : bounds.spans) {
    const std::optional<Index> step = slope(n, symbol);
    if (!step || *step == Index(0)) continue;
    const Index times = floor_div(*step, d);
    if (times * d != *step) continue;
    quotient += times * Index::from_atom(symbol);
    n = n - *step * Index::from_atom(symbol);
  }
  if (is_in_one_step(n, d, bounds)) return quotient;
  return quotient + map_atoms(floor_div(n, d), [&](AtomId id) {
           const Atom& a = atom(id);
           const bool is_rest = a.kind == AtomKind::FloorDiv && is_in_one_step(a.numerator, a.denominator, bounds);
           return is_rest ? Index(0) : Index::from_atom(id);
         });
}

}  // namespace

bool is_surely_nonnegative(const Index& index, const SymbolBounds& bounds) {
  return is_nonnegative(index, bounds, kMostSteps);
}

std::optional<Index> slope(const Index& index, AtomId symbol) {
  const Split split = split_by(index, symbol);
  for (const Index* part : {&split.slope, &split.rest})
    for (const Index::Term& term : part->terms())
      for (const AtomId id : term.atoms)
        if (depends_on(id, symbol)) return std::nullopt;
  return split.slope;
}

Index simplify(const Index& index, const SymbolBounds& bounds) {
  if (index.is_constant()) return index;
  return map_atoms(index, [&](AtomId id) -> Index {
    const Atom& a = atom(id);
    if (a.kind == AtomKind::Symbol) {
      const auto span = bounds.spans.find(id);
      return span != bounds.spans.end() && span->second.low == span->second.high ? span->second.low
                                                                                 : Index::from_atom(id);
    }
    if (a.kind == AtomKind::FloorDiv)
      return divide(simplify(a.numerator, bounds), simplify(a.denominator, bounds), bounds);
    std::vector<Index> subscripts;
    for (const Index& s : a.subscripts) subscripts.push_back(simplify(s, bounds));
    return load_index(a.input, std::move(subscripts));
  });
}

Cond simplify(const Cond& cond, const SymbolBounds& bounds) {
  switch (cond.kind()) {
    case CondKind::True:
    case CondKind::False: return cond;
    case CondKind::NonNegative: {
      const Index index = simplify(cond.index(), bounds);
      if (is_surely_nonnegative(index, bounds)) return {};
      if (is_surely_nonnegative(Index(-1) - index, bounds)) return Cond::never();
      return at_least(index, Index(0));
    }
    case CondKind::And:
    case CondKind::Or: break;
  }
  const bool all = cond.kind() == CondKind::And;
  Cond result = all ? Cond() : Cond::never();
  for (const Cond& part : cond.parts())
    result = all ? result && simplify(part, bounds) : result || simplify(part, bounds);
  return result;
}

}  // namespace gopt
