#include "binder_change.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>

namespace gopt::verifier {
namespace {

void collect_reads(const NormalForm& form, std::vector<const Factor*>& out) {
  for (const Summand& term : form) {
    for (const Factor& factor : term.factors) {
      if (factor.kind == FactorKind::Read) out.push_back(&factor);
      for (const NormalForm& a : factor.args) collect_reads(a, out);
      for (const Branch& b : factor.branches) collect_reads(b.value, out);
    }
  }
}
std::vector<const Factor*> reads_inside(const Factor& factor) {
  std::vector<const Factor*> reads;
  for (const NormalForm& a : factor.args) collect_reads(a, reads);
  for (const Branch& b : factor.branches) collect_reads(b.value, reads);
  return reads;
}

void collect_binders(const Factor& factor, std::vector<AtomId>& out);
void collect_binders(const NormalForm& form, std::vector<AtomId>& out) {
  for (const Summand& term : form) {
    out.insert(out.end(), term.binders.begin(), term.binders.end());
    for (const Factor& factor : term.factors) collect_binders(factor, out);
  }
}
void collect_binders(const Factor& factor, std::vector<AtomId>& out) {
  for (const NormalForm& a : factor.args) collect_binders(a, out);
  for (const Branch& b : factor.branches) {
    out.insert(out.end(), b.binders.begin(), b.binders.end());
    collect_binders(b.value, out);
  }
}

// What the index multiplies the binder by, where that is no number.
std::optional<Index> symbolic_coefficient(const Index& index, AtomId binder) {
  Index coefficient(0);
  for (const Index::Term& term : index.terms()) {
    Index rest(term.coefficient);
    int64_t power = 0;
    for (AtomId id : term.atoms) {
      if (id == binder) {
        power++;
      } else {
        rest = rest * Index::from_atom(id);
      }
    }
    if (power > 1) return std::nullopt;
    if (power == 1) coefficient += rest;
  }
  return coefficient.is_constant() ? std::nullopt : std::optional(coefficient);
}

// Binders that one symbolic number c multiplies in both indexes correspond: where the rest differs by a multiple of c,
// they differ by what it is multiplied by (d*k - 2*d is d*l - d for k = l + 1).
void append_pairs(const Index& known, const Index& other, std::vector<Index>& equations) {
  std::set<AtomId> in_known, in_other;
  collect_symbols(known, in_known);
  collect_symbols(other, in_other);
  for (AtomId b : in_other) {
    if (in_known.count(b)) continue;
    const auto wanted = symbolic_coefficient(other, b);
    if (!wanted) continue;
    for (AtomId a : in_known) {
      if (in_other.count(a) || symbolic_coefficient(known, a) != wanted) continue;
      const Index apart = Index::from_atom(b) - Index::from_atom(a);
      const Index rest = other - known - *wanted * apart, shift = floor_div(rest, *wanted);
      equations.push_back(shift * *wanted == rest ? apart + shift : apart);
      break;
    }
  }
}

void append_differences(const Factor& known, const Factor& other, std::vector<Index>& equations) {
  if (known.subscripts.size() != other.subscripts.size()) return;
  for (size_t i = 0; i < known.subscripts.size(); i++)
    append_pairs(known.subscripts[i], other.subscripts[i], equations);
  for (size_t i = 0; i < known.subscripts.size(); i++) equations.push_back(other.subscripts[i] - known.subscripts[i]);
}

// What the index multiplies the binder by, where it holds none of the binders otherwise.
std::optional<Index> coefficient_of(const Index& index, AtomId binder, const std::vector<AtomId>& binders) {
  Index coefficient(0);
  for (const Index::Term& term : index.terms()) {
    if (std::find(term.atoms.begin(), term.atoms.end(), binder) == term.atoms.end()) continue;
    Index rest(term.coefficient);
    bool is_taken = false;
    for (AtomId id : term.atoms) {
      if (id == binder && !is_taken) {
        is_taken = true;
      } else {
        rest = rest * Index::from_atom(id);
      }
    }
    coefficient += rest;
  }
  const Index others = index - coefficient * Index::from_atom(binder);
  const bool is_affine = !depends_on(others, binder) && std::none_of(binders.begin(), binders.end(), [&](AtomId other) {
    return depends_on(coefficient, other);
  });
  return is_affine ? std::optional(coefficient) : std::nullopt;
}

// Determinant of a small matrix of polynomials, by its first row.
std::optional<Index> determinant(const std::vector<std::vector<Index>>& m) {
  constexpr size_t kMaxRows = 5;
  if (m.size() > kMaxRows) return std::nullopt;
  if (m.empty()) return Index(1);
  Index sum(0);
  for (size_t column = 0; column < m.size(); column++) {
    if (m[0][column] == Index(0)) continue;
    std::vector<std::vector<Index>> minor;
    for (size_t row = 1; row < m.size(); row++) {
      minor.push_back(m[row]);
      minor.back().erase(minor.back().begin() + static_cast<ptrdiff_t>(column));
    }
    const auto own = determinant(minor);
    if (!own) return std::nullopt;
    sum += m[0][column] * *own * Index(column % 2 == 0 ? 1 : -1);
  }
  return sum;
}

// Determinant of an integer matrix, by Bareiss's fraction-free elimination. Nothing on overflow.
std::optional<int64_t> determinant(std::vector<std::vector<int64_t>> m) {
  int64_t sign = 1, previous = 1;
  for (size_t c = 0; c + 1 < m.size(); c++) {
    size_t pivot = c;
    while (pivot < m.size() && m[pivot][c] == 0) pivot++;
    if (pivot == m.size()) return 0;
    if (pivot != c) {
      std::swap(m[pivot], m[c]);
      sign = -sign;
    }
    for (size_t r = c + 1; r < m.size(); r++) {
      for (size_t k = c + 1; k < m.size(); k++) {
        int64_t a, b, difference;
        if (__builtin_mul_overflow(m[r][k], m[c][c], &a) || __builtin_mul_overflow(m[r][c], m[c][k], &b) ||
            __builtin_sub_overflow(a, b, &difference))
          return std::nullopt;
        m[r][k] = difference / previous;
      }
    }
    previous = m[c][c];
  }
  return m.empty() ? 1 : sign * m.back().back();
}

}  // namespace

void append_equations(const Factor& known, const Factor& other, std::vector<Index>& equations) {
  if (known.kind == FactorKind::Read || known.kind == FactorKind::Size)
    return append_differences(known, other, equations);
  const std::vector<const Factor*> known_reads = reads_inside(known);
  std::set<const Factor*> used;
  for (const Factor* read : reads_inside(other)) {
    auto it = std::find_if(known_reads.begin(), known_reads.end(),
                           [&](const Factor* k) { return !used.count(k) && k->input == read->input; });
    if (it == known_reads.end()) continue;
    used.insert(*it);
    append_differences(**it, *read, equations);
  }
}

namespace {

void put(PartialSolution& solution, std::vector<Index>& equations, AtomId unknown, const Index& value) {
  const Substitution step{{unknown, value}};
  for (auto& [known, solved] : solution.values) solved = substitute(solved, step);
  solution.values[unknown] = value;
  for (Index& e : equations) e = substitute(e, step);
  std::erase(solution.open, unknown);
}

}  // namespace

Index without_common_factor(const Index& index) {
  int64_t common = std::abs(index.constant());
  for (const Index::Term& term : index.terms()) common = std::gcd(common, term.coefficient);
  if (common <= 1) return index;
  Index r(index.constant() / common);
  for (const Index::Term& term : index.terms()) {
    Index product(term.coefficient / common);
    for (AtomId id : term.atoms) product = product * Index::from_atom(id);
    r += product;
  }
  return r;
}

std::vector<Index> lower_bounds(const Cond& cond, AtomId binder) {
  std::vector<Index> bounds;
  for (const Cond& literal : conjuncts(cond)) {
    if (literal.kind() != CondKind::NonNegative) continue;
    const auto split = split_linear(literal.index(), binder);
    if (split && split->coefficient == 1) bounds.push_back(-split->rest);
  }
  return bounds;
}

void InnerBinders::add(const Factor& known, const Factor& other) {
  collect_binders(known, of_known);
  collect_binders(other, of_other);
}

bool InnerBinders::is_held_by(const Index& index) const {
  const auto is_held = [&](AtomId binder) { return depends_on(index, binder); };
  return std::any_of(of_known.begin(), of_known.end(), is_held) ||
         std::any_of(of_other.begin(), of_other.end(), is_held);
}

PartialSolution solve_partially(std::vector<Index> equations, const std::vector<AtomId>& unknowns,
                                const InnerBinders& inside) {
  // An equation that holds an inner binder says what that is (h + k == h' + k' of a sum over k), not what h is.
  PartialSolution solution{{}, inside.of_other};
  solution.open.insert(solution.open.end(), unknowns.begin(), unknowns.end());
  for (bool changed = true; changed;) {
    changed = false;
    for (Index& e : equations) e = without_common_factor(e);
    for (size_t e = 0; e < equations.size() && !changed; e++) {
      for (AtomId unknown : solution.open) {
        const auto split = split_linear(equations[e], unknown);
        if (!split || (split->coefficient != 1 && split->coefficient != -1)) continue;
        put(solution, equations, unknown, split->coefficient == 1 ? -split->rest : split->rest);
        changed = true;
        break;
      }
    }
  }
  for (AtomId binder : inside.of_other) {
    solution.values.erase(binder);
    std::erase(solution.open, binder);
  }
  for (AtomId unknown : unknowns) {
    const auto it = solution.values.find(unknown);
    if (it == solution.values.end() || !inside.is_held_by(it->second)) continue;
    solution.values.erase(it);
    solution.open.push_back(unknown);
  }
  return solution;
}

std::optional<Substitution> solve_binders(const std::vector<Index>& equations, const std::vector<AtomId>& unknowns,
                                          const std::vector<AtomId>& targets, const InnerBinders& inside,
                                          int alternative) {
  PartialSolution solution = solve_partially(equations, unknowns, inside);
  if (solution.open.empty()) return alternative == 0 ? std::optional(solution.values) : std::nullopt;
  std::set<AtomId> used;
  for (const auto& [unknown, value] : solution.values) collect_symbols(value, used);
  std::vector<AtomId> unused;
  for (AtomId target : targets)
    if (!used.count(target)) unused.push_back(target);
  if (unused.size() < solution.open.size()) return std::nullopt;
  std::sort(unused.begin(), unused.end());
  for (int i = 0; i < alternative; i++)
    if (!std::next_permutation(unused.begin(), unused.end())) return std::nullopt;
  const std::vector<AtomId> rest = solution.open;
  std::vector<Index> none;
  for (size_t i = 0; i < rest.size(); i++) put(solution, none, rest[i], Index::from_atom(unused[i]));
  return solution.values;
}

// Each lower bound is at most each upper one: exact for integers, as the binder's coefficients are 1 or -1.
Cond where_some(const Cond& cond, AtomId binder) {
  std::vector<Index> lower, upper;
  Cond rest;
  for (const Cond& literal : conjuncts(cond)) {
    if (!depends_on(literal, binder)) {
      rest = rest && literal;
      continue;
    }
    const auto split = literal.kind() == CondKind::NonNegative ? split_linear(literal.index(), binder) : std::nullopt;
    if (!split || (split->coefficient != 1 && split->coefficient != -1)) return Cond::never();
    if (split->coefficient == 1) {
      lower.push_back(-split->rest);
    } else {
      upper.push_back(split->rest);
    }
  }
  for (const Index& low : lower)
    for (const Index& high : upper) rest = rest && at_least(high, low);
  return rest;
}

bool is_unimodular(const std::vector<AtomId>& from, const std::vector<AtomId>& to, const Substitution& change) {
  if (from.size() != to.size()) return false;
  std::vector<std::vector<int64_t>> numbers(from.size(), std::vector<int64_t>(to.size(), 0));
  std::vector<std::vector<Index>> matrix(from.size(), std::vector<Index>(to.size()));
  bool has_symbols = false;
  for (size_t i = 0; i < from.size(); i++) {
    auto it = change.find(from[i]);
    if (it == change.end()) return false;
    for (size_t j = 0; j < to.size(); j++) {
      if (!depends_on(it->second, to[j])) continue;
      const auto coefficient = coefficient_of(it->second, to[j], to);
      if (!coefficient) return false;
      matrix[i][j] = *coefficient;
      if (const auto number = coefficient->as_constant())
        numbers[i][j] = *number;
      else
        has_symbols = true;
    }
  }
  if (has_symbols) {
    const auto d = determinant(matrix);
    return d == Index(1) || d == Index(-1);
  }
  const auto d = determinant(std::move(numbers));
  return d == 1 || d == -1;
}

}  // namespace gopt::verifier
