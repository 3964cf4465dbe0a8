#include "real_cells.h"

#include <algorithm>
#include <map>

namespace gopt {
namespace {

using Kind = RealExpr::Kind;
using Monomial = std::vector<std::string>;  // variables in order, one for each power
using Polynomial = std::map<Monomial, Rational>;

constexpr int kMaxCells = 512;
constexpr size_t kMaxMonomials = 4000;

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
std::optional<Polynomial> expanded(const RealExpr& value) {
  if (value.kind == Kind::Variable) return Polynomial{{{value.variable}, 1}};
  if (value.kind == Kind::Constant) return value.constant.is_zero() ? Polynomial{} : Polynomial{{{}, value.constant}};
  Polynomial result;
  if (value.kind != Kind::Add) result = {{{}, 1}};
  for (const RealExprPtr& part : value.parts) {
    const auto own = expanded(*part);
    if (!own || result.size() * own->size() > kMaxMonomials) return std::nullopt;
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

class CellSplitter {
 public:
  explicit CellSplitter(const CellQuestion& is_empty) : is_empty_(is_empty) {}

  bool is_zero(const RealExprPtr& value) {
    const RealExprPtr found = innermost_case(value);
    if (!found) {
      if (++cells_ > kMaxCells) return false;
      const auto polynomial = expanded(*value);
      return (polynomial && polynomial->empty()) || is_empty_(cell_, value);
    }
    const std::vector<RealExprPtr>& parts = found->parts;
    if (found->kind == Kind::Maximum) {
      for (const RealExprPtr& largest : parts) {
        std::vector<RealSign> signs;
        for (const RealExprPtr& part : parts)
          if (part != largest) signs.push_back({difference(largest, part), false});
        if (!is_zero_where(signs, value, found, largest)) return false;
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
    const size_t before = cell_.size();
    cell_.insert(cell_.end(), signs.begin(), signs.end());
    const bool result = is_zero(replaced(value, old, by));
    cell_.resize(before);
    return result;
  }

  const CellQuestion& is_empty_;
  std::vector<RealSign> cell_;
  int cells_ = 0;
};

}  // namespace

bool is_zero_in_cells(const RealExprPtr& value, const CellQuestion& is_empty) {
  return CellSplitter(is_empty).is_zero(value);
}

}  // namespace gopt
