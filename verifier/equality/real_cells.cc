#include "real_cells.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <stdexcept>

#include "solver/linear_system.h"

namespace gopt::verifier {
namespace {

using Kind = RealExpr::Kind;
using Monomial = std::vector<std::string>;  // variables in order, one for each power
using Polynomial = std::map<Monomial, Rational>;

RealExprPtr make(RealExpr e) { return std::make_shared<const RealExpr>(std::move(e)); }
RealExprPtr number(int value) { return make({Kind::Constant, value, "", {}, {}}); }
RealExprPtr difference(const RealExprPtr& a, const RealExprPtr& b) {
  return make({Kind::Add, {}, "", {a, make({Kind::Multiply, {}, "", {number(-1), b}, {}})}, {}});
}

bool has_cases(Kind kind) { return kind == Kind::Maximum || kind == Kind::IsLess || kind == Kind::IsEqual; }

bool is_same(const RealExprPtr& a, const RealExprPtr& b) {
  return a == b ||
         (a->kind == b->kind && a->constant == b->constant && a->variable == b->variable && a->cond == b->cond &&
          std::equal(a->parts.begin(), a->parts.end(), b->parts.begin(), b->parts.end(), is_same));
}

// A maximum or comparison without another inside; null where there is none.
RealExprPtr innermost_case(const RealExprPtr& value) {
  for (const RealExprPtr& part : value->parts)
    if (RealExprPtr found = innermost_case(part)) return found;
  return has_cases(value->kind) ? value : nullptr;
}

RealExprPtr replaced(const RealExprPtr& value, const RealExprPtr& old, const RealExprPtr& by) {
  if (is_same(value, old)) return by;
  std::vector<RealExprPtr> parts;
  bool is_changed = false;
  for (const RealExprPtr& part : value->parts) {
    parts.push_back(replaced(part, old, by));
    is_changed = is_changed || parts.back() != part;
  }
  if (!is_changed) return value;
  RealExpr result = *value;
  result.parts = std::move(parts);
  return make(std::move(result));
}

void add_to(Polynomial& sum, const Polynomial& other) {
  for (const auto& [monomial, coefficient] : other) {
    Rational& own = sum[monomial];
    own = own + coefficient;
    if (own.is_zero()) sum.erase(monomial);
  }
}

Polynomial product(const Polynomial& a, const Polynomial& b) {
  Polynomial result;
  for (const auto& [m, c] : a)
    for (const auto& [n, d] : b) {
      Monomial monomial;
      std::merge(m.begin(), m.end(), n.begin(), n.end(), std::back_inserter(monomial));
      add_to(result, {{std::move(monomial), c * d}});
    }
  return result;
}

// Nothing where it grows too large. Precondition: no cases.
std::optional<Polynomial> expanded(const RealExpr& value, size_t most) {
  if (value.kind == Kind::Variable) return Polynomial{{{value.variable}, 1}};
  if (value.kind == Kind::Constant) return value.constant.is_zero() ? Polynomial{} : Polynomial{{{}, value.constant}};
  Polynomial result;
  if (value.kind != Kind::Add) result = {{{}, 1}};
  for (const RealExprPtr& part : value.parts) {
    const auto own = expanded(*part, most);
    if (!own || result.size() * own->size() > most) return std::nullopt;
    if (value.kind == Kind::Add) {
      add_to(result, *own);
    } else {
      result = product(result, *own);
    }
  }
  // Whether the guard holds is a number, 0 or 1, of its own.
  if (value.kind == Kind::Guarded && !value.cond.is_true())
    result = product(result, {{{"guard " + to_string(value.cond)}, 1}});
  return result;
}

// Polynomials of which each is positive, or at least 0, as linear constraints: a product of variables is a variable of
// its own. So what is found empty is.
class LinearCell {
 public:
  explicit LinearCell(const CellLimits& limits) : limits_(limits) {}

  struct Row {
    Polynomial polynomial;
    bool is_strict;
  };

  // Of the rows and one more, that the rest is positive. Where products of variables were met, products of two rows,
  // which are positive, too, tell linear arithmetic more of them.
  LinearSystem::Answer ask(std::vector<Row> rows, const Polynomial& rest) {
    if (!rest.empty()) rows.push_back({rest, true});
    is_exact_ = true;
    try {
      const LinearSystem::Answer answer = solve(rows);
      if (answer == LinearSystem::Answer::Infeasible || is_exact_) return answer;
      const std::vector<Row> more = products(rows);
      rows.insert(rows.end(), more.begin(), more.end());
      return more.empty() ? answer : solve(rows);
    } catch (const std::overflow_error&) {
      return LinearSystem::Answer::Unknown;
    }
  }
  bool is_exact() const { return is_exact_; }  // no products were met: Feasible means that there is a point

 private:
  LinearSystem::Answer solve(const std::vector<Row>& rows) {
    LinearSystem system(LinearSystem::Numbers::Reals);
    for (const Row& row : rows) require(system, row.polynomial, row.is_strict);
    return system.solve();
  }

  // Only those that are made of products that the rows are made of. Squares are not negative either.
  std::vector<Row> products(const std::vector<Row>& rows) {
    std::set<Monomial> known;
    for (const Row& row : rows)
      for (const auto& [monomial, coefficient] : row.polynomial) known.insert(monomial);
    std::vector<Row> made;
    for (const Monomial& monomial : known) {
      bool is_square = !monomial.empty() && monomial.size() % 2 == 0;
      for (size_t i = 0; i + 1 < monomial.size() && is_square; i += 2) is_square = monomial[i] == monomial[i + 1];
      if (is_square) made.push_back({{{monomial, 1}}, false});
    }
    for (size_t i = 0; i < rows.size(); i++) {
      for (size_t j = i; j < rows.size() && made.size() < limits_.products; j++) {
        const Polynomial &a = rows[i].polynomial, &b = rows[j].polynomial;
        if (a.size() * b.size() > limits_.product_terms) continue;
        Polynomial both = product(a, b);
        bool is_closed = true, is_useful = false;
        for (const auto& [monomial, coefficient] : both) {
          is_useful = is_useful || monomial.size() > 1;
          is_closed = is_closed && (monomial.size() < 2 || known.count(monomial) > 0);
        }
        if (is_useful && is_closed) made.push_back({std::move(both), rows[i].is_strict && rows[j].is_strict});
      }
    }
    return made;
  }

  void require(LinearSystem& system, const Polynomial& polynomial, bool is_strict) {
    int64_t common = 1;
    for (const auto& [monomial, coefficient] : polynomial)
      common = (Rational(common) * Rational(coefficient.denominator() / std::gcd(common, coefficient.denominator())))
                   .numerator();
    LinearSystem::Terms terms;
    Rational constant;
    for (const auto& [monomial, coefficient] : polynomial) {
      const Rational scaled = coefficient * Rational(common);
      if (monomial.empty()) {
        constant = scaled;
        continue;
      }
      const auto [it, is_new] =
          variables_.try_emplace(monomial, static_cast<LinearSystem::Variable>(variables_.size()));
      is_exact_ = is_exact_ && monomial.size() == 1 && monomial[0].compare(0, 6, "guard ") != 0;
      terms.emplace_back(it->second, scaled.numerator());
    }
    std::sort(terms.begin(), terms.end());
    system.require(terms, constant, is_strict);
  }

  std::map<Monomial, LinearSystem::Variable> variables_;
  const CellLimits& limits_;
  bool is_exact_ = true;
};

Polynomial opposite(Polynomial polynomial) {
  for (auto& [monomial, coefficient] : polynomial) coefficient = -coefficient;
  return polynomial;
}

// The polynomial with another in place of a variable.
Polynomial replaced(const Polynomial& polynomial, const std::string& variable, const Polynomial& by) {
  Polynomial result;
  for (const auto& [monomial, coefficient] : polynomial) {
    Polynomial term{{{}, coefficient}};
    for (const std::string& factor : monomial)
      term = product(term, factor == variable ? by : Polynomial{{{factor}, 1}});
    add_to(result, term);
  }
  return result;
}

bool is_linear(const Polynomial& polynomial) {
  return std::all_of(polynomial.begin(), polynomial.end(), [](const auto& term) { return term.first.size() < 2; });
}

bool has_guards(const RealExpr& value) {
  return (value.kind == Kind::Guarded && !value.cond.is_true()) ||
         std::any_of(value.parts.begin(), value.parts.end(), [](const RealExprPtr& p) { return has_guards(*p); });
}

// The value where variables have values, which are drawn as they are met. Precondition: no guards.
class PointEvaluator {
 public:
  explicit PointEvaluator(std::mt19937_64& random) : random_(random) {}

  double operator()(const RealExpr& e) {
    switch (e.kind) {
      case Kind::Constant:
        return static_cast<double>(e.constant.numerator()) / static_cast<double>(e.constant.denominator());
      case Kind::Variable: return value_of(e.variable);
      case Kind::Add: return folded(e, 0, [](double a, double b) { return a + b; });
      case Kind::Multiply: return folded(e, 1, [](double a, double b) { return a * b; });
      case Kind::Maximum: return folded(e, -INFINITY, [](double a, double b) { return std::max(a, b); });
      case Kind::IsLess: return (*this)(*e.parts[0]) < (*this)(*e.parts[1]) ? 1 : 0;
      case Kind::IsEqual: return (*this)(*e.parts[0]) == (*this)(*e.parts[1]) ? 1 : 0;
      case Kind::Guarded: return (*this)(*e.parts[0]);
    }
    return 0;
  }

 private:
  template <class F>
  double folded(const RealExpr& e, double start, const F& f) {
    for (const RealExprPtr& part : e.parts) start = f(start, (*this)(*part));
    return start;
  }
  // Binary fractions, so that sums and products are exact; half of them within 1, where powers are smaller.
  double value_of(const std::string& variable) {
    const auto [it, is_new] = values_.try_emplace(variable, 0);
    if (is_new) it->second = (static_cast<double>(random_() % 33) - 16) / (random_() % 2 == 0 ? 4 : 16);
    return it->second;
  }

  std::mt19937_64& random_;
  std::map<std::string, double> values_;
};

// Whether it is not 0 at some of the points that are tried.
bool is_nonzero_somewhere(const RealExpr& value, int points) {
  constexpr double kRounding = 1e-6;
  std::mt19937_64 random(1);
  for (int point = 0; point < points; point++)
    if (std::fabs(PointEvaluator(random)(value)) > kRounding) return true;
  return false;
}

uint64_t nodes_of(const RealExpr& e) {
  uint64_t count = 1;
  for (const RealExprPtr& part : e.parts) count += nodes_of(*part);
  return count;
}

class CellSplitter {
 public:
  CellSplitter(const CellQuestion& is_empty, const std::function<bool()>& is_context_possible,
               const std::function<void(uint64_t)>& work, const CellLimits& limits)
      : is_empty_(is_empty), is_context_possible_(is_context_possible), work_(work), limits_(limits), linear_(limits) {}

  bool is_zero_given(const std::vector<RealSign>& given, const RealExprPtr& value) {
    add_signs(given);
    return (!given.empty() && linear_.ask(rows_, {}) == LinearSystem::Answer::Infeasible) || is_zero(value);
  }

  bool is_zero(const RealExprPtr& value) {
    work_(nodes_of(*value) / limits_.nodes_of_a_unit);
    const RealExprPtr found = innermost_case(value);
    if (!found) {
      return ++cells_ <= limits_.cells && is_zero_here(value);
    }
    const std::vector<RealExprPtr>& parts = found->parts;
    if (found->kind == Kind::Maximum) {
      // Of several that are largest the first one.
      for (size_t i = 0; i < parts.size(); i++) {
        std::vector<RealSign> signs;
        for (size_t j = 0; j < parts.size(); j++)
          if (j != i) signs.push_back({difference(parts[i], parts[j]), j < i});
        if (!is_zero_where(signs, value, found, parts[i])) return false;
      }
      return true;
    }
    const RealExprPtr less = difference(parts[1], parts[0]), more = difference(parts[0], parts[1]);
    if (found->kind == Kind::IsLess)
      return is_zero_where({{less, true}}, value, found, number(1)) &&
             is_zero_where({{more, false}}, value, found, number(0));
    return is_zero_where({{less, false}, {more, false}}, value, found, number(1)) &&
           is_zero_where({{less, true}}, value, found, number(0)) &&
           is_zero_where({{more, true}}, value, found, number(0));
  }

 private:
  bool is_zero_where(const std::vector<RealSign>& signs, const RealExprPtr& value, const RealExprPtr& old,
                     const RealExprPtr& by) {
    const size_t before = cell_.size(), rows_before = rows_.size();
    add_signs(signs);
    work_(limits_.units_of_a_row * rows_.size());
    const bool result = linear_.ask(rows_, {}) == LinearSystem::Answer::Infeasible || is_zero(replaced(value, old, by));
    cell_.resize(before);
    rows_.resize(rows_before);
    return result;
  }

  void add_signs(const std::vector<RealSign>& signs) {
    cell_.insert(cell_.end(), signs.begin(), signs.end());
    for (const RealSign& sign : signs)
      if (auto polynomial = expanded(*sign.value, limits_.monomials))
        rows_.push_back({*std::move(polynomial), sign.is_strict});
  }

  // Of a value without cases, in the cell as it is.
  bool is_zero_here(const RealExprPtr& value) {
    const auto polynomial = expanded(*value, limits_.monomials);
    if (!polynomial) return is_empty_(cell_, value);
    if (polynomial->empty()) return true;
    try {
      if (is_zero_by_equations(*polynomial)) return true;
    } catch (const std::overflow_error&) {
      // It may be 0 all the same.
    }
    bool is_settled = true;
    for (const Polynomial& sign : {*polynomial, opposite(*polynomial)}) {
      const LinearSystem::Answer answer = linear_.ask(rows_, sign);
      const bool is_point =
          answer == LinearSystem::Answer::Feasible && linear_.is_exact() && rows_.size() == cell_.size();
      if (is_point && is_context_possible_()) return false;
      is_settled = is_settled && answer == LinearSystem::Answer::Infeasible;
    }
    return is_settled || is_empty_(cell_, value);
  }

  // A cell that is thin has signs that are 0 all over it: with what these equations give the value may be 0.
  bool is_zero_by_equations(Polynomial value) {
    if (is_linear(value)) return false;
    std::vector<Polynomial> equations;
    for (const LinearCell::Row& row : rows_)
      if (!row.is_strict && is_linear(row.polynomial) && !row.polynomial.empty() &&
          linear_.ask(rows_, row.polynomial) == LinearSystem::Answer::Infeasible)
        equations.push_back(row.polynomial);
    for (size_t i = 0; i < equations.size(); i++) {
      const auto term = equations[i].rbegin();
      if (equations[i].empty() || term->first.empty()) continue;
      const std::string variable = term->first[0];
      Polynomial by;
      for (const auto& [monomial, coefficient] : equations[i])
        if (monomial != term->first) by[monomial] = -coefficient * term->second.inverse();
      value = replaced(value, variable, by);
      for (size_t j = i + 1; j < equations.size(); j++) equations[j] = replaced(equations[j], variable, by);
    }
    return value.empty();
  }

  const CellQuestion& is_empty_;
  const std::function<bool()>& is_context_possible_;
  const std::function<void(uint64_t)>& work_;
  const CellLimits& limits_;
  LinearCell linear_;
  std::vector<LinearCell::Row> rows_;  // of the cell's signs, where they are not too large
  std::vector<RealSign> cell_;
  int cells_ = 0;
};

}  // namespace

bool is_zero_in_cells(const RealExprPtr& value, const std::vector<RealSign>& given, const CellQuestion& is_empty,
                      const std::function<bool()>& is_context_possible, const std::function<void(uint64_t)>& work,
                      const CellLimits& limits) {
  work(nodes_of(*value) / limits.nodes_of_a_unit);
  if (given.empty() && !has_guards(*value) && is_nonzero_somewhere(*value, limits.points) && is_context_possible())
    return false;
  return CellSplitter(is_empty, is_context_possible, work, limits).is_zero_given(given, value);
}

}  // namespace gopt::verifier
