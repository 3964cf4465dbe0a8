#include "bijection.h"

namespace gopt::check {
namespace {

__int128 determinant(const std::vector<std::vector<int64_t>>& m, std::vector<bool>& used, size_t row) {
  if (row == m.size()) return 1;
  __int128 sum = 0;
  int sign = 1;
  for (size_t column = 0; column < m.size(); column++) {
    if (used[column]) continue;
    if (m[row][column] != 0) {
      used[column] = true;
      sum += sign * static_cast<__int128>(m[row][column]) * determinant(m, used, row + 1);
      used[column] = false;
    }
    sign = -sign;
  }
  return sum;
}

}  // namespace

bool is_bijection(const std::vector<std::string>& from, const std::vector<std::string>& to,
                  const PolySubstitution& change) {
  constexpr size_t kMaxBinders = 8;
  if (from.size() != to.size() || from.size() != change.size() || from.size() > kMaxBinders) return false;
  std::vector<std::vector<int64_t>> matrix;
  for (const std::string& binder : from) {
    auto it = change.find(binder);
    if (it == change.end()) return false;
    std::vector<int64_t> row(to.size(), 0);
    Poly rest = it->second;
    for (size_t k = 0; k < to.size(); k++) {
      for (const auto& [monomial, c] : it->second.terms())
        if (monomial.size() == 1 && monomial[0]->text == to[k]) row[k] = c;
      rest = rest - Poly::of_text(to[k]) * Poly(row[k]);
    }
    std::set<std::string> left;
    collect_symbols(rest, left);
    for (const std::string& k : to)
      if (left.count(k)) return false;
    for (const std::string& k : from)
      if (left.count(k)) return false;
    matrix.push_back(std::move(row));
  }
  std::vector<bool> used(to.size(), false);
  const __int128 d = determinant(matrix, used, 0);
  return d == 1 || d == -1;
}

}  // namespace gopt::check
