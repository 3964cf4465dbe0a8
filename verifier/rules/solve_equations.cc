#include "solve_equations.h"

#include <algorithm>
#include <vector>

#include "normal_form/normal_form.h"

namespace gopt::verifier {

std::vector<Index> equations_of(const Cond& condition) {
  std::vector<Index> equations;
  const std::vector<Cond> literals = conjuncts(condition);
  for (size_t i = 0; i < literals.size(); i++)
    for (size_t j = i + 1; j < literals.size(); j++)
      if (literals[i].kind() == CondKind::NonNegative && literals[j].kind() == CondKind::NonNegative &&
          literals[j].index() == -literals[i].index())
        equations.push_back(literals[i].index());
  return equations;
}

namespace {

struct Solution {
  AtomId symbol;
  Index value;
};

// A symbol that the equation "index == 0" gives by others.
std::optional<Solution> solve_linear(const Index& index) {
  std::set<AtomId> used;
  collect_symbols(index, used);
  std::vector<AtomId> symbols(used.begin(), used.end());
  std::sort(symbols.begin(), symbols.end(), [](AtomId a, AtomId b) { return atom(a).name < atom(b).name; });
  for (AtomId symbol : symbols) {
    const auto split = split_linear(index, symbol);
    if (!split || (split->coefficient != 1 && split->coefficient != -1)) continue;
    if (depends_on(split->rest, symbol)) continue;
    return Solution{symbol, split->coefficient == 1 ? -split->rest : split->rest};
  }
  return std::nullopt;
}

// "n - d floor(n/d) - r == 0" for a symbol s in n: n is d q + r.
std::optional<Solution> solve_residue(const Index& index) {
  std::set<AtomId> divisions;
  for (const Index::Term& term : index.terms())
    for (AtomId id : term.atoms)
      if (atom(id).kind == AtomKind::FloorDiv) divisions.insert(id);
  for (AtomId id : divisions) {
    const Atom& division = atom(id);
    const Index difference = division.numerator - division.denominator * Index::from_atom(id);
    for (const Index& equation : {index, -index}) {
      const Index rest = difference - equation;  // n - d q is this where the equation holds
      if (!rest.is_constant()) continue;
      const auto linear = solve_linear(division.numerator);
      if (!linear) continue;
      const auto split = split_linear(division.numerator, linear->symbol);
      const Index q = symbol("%q" + atom(linear->symbol).name);
      const Index value = division.denominator * q + rest - split->rest;
      return Solution{linear->symbol, split->coefficient == 1 ? value : -value};
    }
  }
  return std::nullopt;
}

// e = (s - c) a, for a symbol s and a small number c.
struct Factored {
  Index first, second;
};
std::optional<Factored> factored(const Index& e) {
  std::set<AtomId> used;
  for (const Index::Term& term : e.terms())
    if (term.atoms.size() > 1) used.insert(term.atoms.begin(), term.atoms.end());
  for (AtomId s : sorted_by_name({used.begin(), used.end()})) {
    if (atom(s).kind != AtomKind::Symbol) continue;
    Index coefficient, rest(e.constant());
    bool is_linear = true;
    for (const Index::Term& term : e.terms()) {
      Index product(term.coefficient);
      int power = 0;
      for (AtomId id : term.atoms) {
        if (id == s) {
          power++;
        } else {
          product = product * Index::from_atom(id);
        }
      }
      is_linear = is_linear && power <= 1;
      (power == 0 ? rest : coefficient) += product;
    }
    if (!is_linear || coefficient.is_constant() || depends_on(coefficient, s) || depends_on(rest, s)) continue;
    for (int64_t c : {0, 1, 2, -1})
      if (rest == coefficient * Index(-c)) return Factored{Index::from_atom(s) - Index(c), coefficient};
  }
  return std::nullopt;
}

// Where "x y - c (x // a) (y // b) == 0", with c the product of all divisors, for any number of sizes: none is rounded,
// or one is 0. Either is enough; for sizes that are not negative one is needed, too, as no factor on the right is
// larger than its own on the left.
std::optional<Cond> where_nothing_is_rounded(const Index& e) {
  if (e.constant() != 0 || e.terms().size() != 2) return std::nullopt;
  const bool is_first = e.terms()[0].coefficient == 1;
  const Index::Term &whole = e.terms()[is_first ? 0 : 1], &rounded = e.terms()[is_first ? 1 : 0];
  if (whole.coefficient != 1 || rounded.coefficient >= 0 || whole.atoms.size() < 2) return std::nullopt;
  std::vector<AtomId> open = rounded.atoms;
  Index divisors(1), rest(-rounded.coefficient);
  Cond none, any = Cond::never();
  for (AtomId size : whole.atoms) {
    const Index own = Index::from_atom(size);
    const auto quotient = std::find_if(open.begin(), open.end(), [&](AtomId id) {
      return atom(id).kind == AtomKind::FloorDiv && atom(id).numerator == own;
    });
    if (quotient == open.end()) return std::nullopt;
    const Index divisor = atom(*quotient).denominator;
    none = none && equal(own, divisor * Index::from_atom(*quotient));
    any = any || equal(own, Index(0));
    divisors = divisors * divisor;
    open.erase(quotient);
  }
  for (AtomId id : open) rest = rest * Index::from_atom(id);
  return divisors == rest ? std::optional(none || any) : std::nullopt;
}

Cond zero_product(const Index& e) {
  const auto product = factored(e);
  if (product) return equal(product->first, Index(0)) || zero_product(product->second);
  for (const Index& own : {e, -e})
    if (const auto cases = where_nothing_is_rounded(own)) return *cases;
  return equal(e, Index(0));
}

// Whether the condition is an equation, perhaps with more.
bool holds_equation(const Cond& condition) { return !equations_of(condition).empty(); }

}  // namespace

Cond with_products_solved(const Cond& condition) {
  std::vector<Cond> literals = conjuncts(condition);
  for (Cond& literal : literals)
    if (literal.kind() == CondKind::NonNegative) literal = in_lowest_terms(literal);
  Cond r;
  std::vector<bool> done(literals.size(), false);
  for (size_t i = 0; i < literals.size(); i++) {
    if (done[i]) continue;
    Cond part = literals[i];
    for (size_t j = i + 1; j < literals.size() && part.kind() == CondKind::NonNegative; j++) {
      if (literals[j].kind() != CondKind::NonNegative || literals[j].index() != -part.index()) continue;
      done[j] = true;
      part = zero_product(part.index());
    }
    r = r && part;
  }
  return r;
}

std::vector<Cond> cases_of_equations(const Cond& condition) {
  constexpr size_t kMaxCases = 8;
  std::vector<Cond> cases{Cond()};
  for (const Cond& literal : conjuncts(condition)) {
    const bool splits =
        literal.kind() == CondKind::Or && std::all_of(literal.parts().begin(), literal.parts().end(), holds_equation);
    std::vector<Cond> next;
    for (const Cond& so_far : cases)
      for (const Cond& part : splits ? literal.parts() : std::vector<Cond>{literal}) next.push_back(so_far && part);
    if (next.size() > kMaxCases) return {condition};
    cases = std::move(next);
  }
  return cases;
}

Substitution solve_equations(const Cond& condition) {
  Substitution solved;
  std::vector<Index> equations = equations_of(condition);
  for (size_t i = 0; i < equations.size(); i++) {
    auto solution = solve_linear(equations[i]);
    if (!solution) solution = solve_residue(equations[i]);
    if (!solution) continue;
    const Substitution step{{solution->symbol, solution->value}};
    for (auto& [symbol, value] : solved) value = substitute(value, step);
    solved[solution->symbol] = solution->value;
    for (Index& equation : equations) equation = substitute(equation, step);
  }
  return solved;
}

}  // namespace gopt::verifier
