#include "bijection.h"

#include <algorithm>

namespace gopt::checker {
namespace {

Poly determinant(const std::vector<std::vector<Poly>>& m, std::vector<bool>& used, size_t row) {
  if (row == m.size()) return Poly(1);
  Poly sum;
  int sign = 1;
  for (size_t column = 0; column < m.size(); column++) {
    if (used[column]) continue;
    if (!m[row][column].terms().empty()) {
      used[column] = true;
      sum = sum + Poly(sign) * m[row][column] * determinant(m, used, row + 1);
      used[column] = false;
    }
    sign = -sign;
  }
  return sum;
}

bool holds_any(const Poly& poly, const std::vector<std::string>& symbols) {
  std::set<std::string> held;
  collect_symbols(poly, held);
  return std::any_of(symbols.begin(), symbols.end(), [&](const std::string& s) { return held.count(s) > 0; });
}

// What the polynomial multiplies the symbol by in monomials that hold it once.
Poly coefficient_of(const Poly& poly, const std::string& symbol) {
  Poly sum;
  for (const auto& [monomial, c] : poly.terms()) {
    const auto is_it = [&](const AtomPtr& atom) { return atom->text == symbol; };
    if (std::count_if(monomial.begin(), monomial.end(), is_it) != 1) continue;
    Poly product(c);
    for (const AtomPtr& atom : monomial)
      if (!is_it(atom)) product = product * Poly::of(atom);
    sum = sum + product;
  }
  return sum;
}

}  // namespace

bool is_bijection(const std::vector<std::string>& from, const std::vector<std::string>& to,
                  const PolySubstitution& change) {
  constexpr size_t kMaxBinders = 8;
  if (from.size() != to.size() || from.size() != change.size() || from.size() > kMaxBinders) return false;
  std::vector<std::vector<Poly>> matrix;
  for (const std::string& binder : from) {
    auto it = change.find(binder);
    if (it == change.end()) return false;
    std::vector<Poly> row;
    Poly rest = it->second;
    for (const std::string& k : to) {
      row.push_back(coefficient_of(it->second, k));
      if (holds_any(row.back(), to) || holds_any(row.back(), from)) return false;
      rest = rest - Poly::of_text(k) * row.back();
    }
    if (holds_any(rest, to) || holds_any(rest, from)) return false;
    matrix.push_back(std::move(row));
  }
  std::vector<bool> used(to.size(), false);
  const auto d = determinant(matrix, used, 0).constant();
  return d == 1 || d == -1;
}

}  // namespace gopt::checker
