#include "expand.h"

#include <algorithm>
#include <cmath>

#include "budget.h"

namespace gopt::checker {
namespace {

constexpr size_t kMaxTerms = 256;

// No sum of products, or of numbers that are not written so.
class NotExpandable : public std::exception {};

class Expander {
 public:
  Form operator()(const Expression& e) {
    if (e.kind == "const") return constant(e.value);
    if (e.kind == "size") return size(e.indexes.at(0));
    if (e.kind == "read") {
      LogFactor f;
      f.kind = "read";
      f.number = e.input;
      f.subscripts = e.indexes;
      return {LogTerm{1, 1, {}, {}, {std::move(f)}}};
    }
    if (e.kind == "+" || e.kind == "-") return sum((*this)(e.args[0]), (*this)(e.args[1]), e.kind == "-" ? -1 : 1);
    if (e.kind == "*") return product((*this)(e.args[0]), (*this)(e.args[1]));
    if (e.kind == "if")
      return sum(guarded((*this)(e.args[0]), e.condition), guarded((*this)(e.args[1]), negation(e.condition)), 1);
    if (e.kind == "reduce" && e.name == "sum") return reduced(e);
    throw NotExpandable();
  }

 private:
  static Form checked(Form form) {
    if (form.size() > kMaxTerms) throw BudgetSpent("terms", kMaxTerms);
    return form;
  }

  static Form constant(double value) {
    if (value == 0) return {};
    constexpr int64_t kLargest = int64_t{1} << 20;
    for (int64_t denominator = 1; denominator <= kLargest; denominator *= 2) {
      const double scaled = value * static_cast<double>(denominator);
      if (scaled == std::floor(scaled) && std::fabs(scaled) < static_cast<double>(kLargest))
        return {LogTerm{static_cast<int64_t>(scaled), denominator, {}, {}, {}}};
    }
    throw NotExpandable();
  }

  // A product of sizes is a product of factors.
  static Form size(const Poly& poly) {
    if (auto c = poly.constant()) return *c == 0 ? Form{} : Form{LogTerm{*c, 1, {}, {}, {}}};
    LogTerm term;
    auto append = [&](const Poly& p) {
      LogFactor f;
      f.kind = "size";
      f.subscripts = {p};
      term.factors.push_back(std::move(f));
    };
    if (poly.terms().size() == 1) {
      const auto& [monomial, c] = *poly.terms().begin();
      term.numerator = c;
      for (const AtomPtr& a : monomial) append(Poly::of(a));
    } else {
      append(poly);
    }
    return {std::move(term)};
  }

  static Form sum(Form a, Form b, int64_t sign) {
    for (LogTerm& t : b) {
      t.numerator *= sign;
      a.push_back(std::move(t));
    }
    return checked(std::move(a));
  }

  Form product(const Form& a, const Form& b) {
    if (a.size() * b.size() > kMaxTerms) throw BudgetSpent("terms", kMaxTerms);
    Form r;
    for (const LogTerm& x : a) {
      for (const LogTerm& other : b) {
        LogTerm y = freshened(other);
        if (__builtin_mul_overflow(x.numerator, y.numerator, &y.numerator) ||
            __builtin_mul_overflow(x.denominator, y.denominator, &y.denominator))
          throw NotExpandable();
        y.binders.insert(y.binders.end(), x.binders.begin(), x.binders.end());
        y.guard = conjunction(x.guard, y.guard);
        y.factors.insert(y.factors.end(), x.factors.begin(), x.factors.end());
        r.push_back(std::move(y));
      }
    }
    return r;
  }

  static Form guarded(Form form, const Condition& guard) {
    for (LogTerm& t : form) t.guard = conjunction(t.guard, guard);
    return form;
  }

  Form reduced(const Expression& e) {
    PolySubstitution renamed;
    std::vector<std::string> binders;
    Condition range;
    for (size_t i = 0; i < e.binders.size(); i++) {
      binders.push_back(fresh());
      const Poly k = Poly::of_text(binders.back());
      renamed[e.binders[i]] = k;
      range = conjunction(range, {Condition::Kind::AtLeastZero, k, {}});
      range = conjunction(range, {Condition::Kind::AtLeastZero, e.indexes[i] - k - Poly(1), {}});
    }
    Form form;
    for (const LogTerm& t : (*this)(e.args[0])) {
      LogTerm inner = substitute(t, renamed);
      inner.binders.insert(inner.binders.end(), binders.begin(), binders.end());
      inner.guard = conjunction(inner.guard, range);
      form.push_back(std::move(inner));
    }
    return form;
  }

  LogTerm freshened(const LogTerm& term) {
    PolySubstitution renamed;
    std::vector<std::string> binders;
    for (const std::string& b : term.binders) {
      binders.push_back(fresh());
      renamed[b] = Poly::of_text(binders.back());
    }
    LogTerm r = substitute(term, renamed);
    r.binders = std::move(binders);
    return r;
  }
  // No text of the log can spell it.
  std::string fresh() { return "#" + std::to_string(++used_); }

  int used_ = 0;
};

}  // namespace

std::optional<Form> expand(const Expression& e) {
  try {
    return Expander()(e);
  } catch (const NotExpandable&) {
    return std::nullopt;
  } catch (const BudgetSpent&) {
    return std::nullopt;
  }
}

std::string canonical_text(const LogTerm& term) {
  constexpr size_t kMaxPermuted = 4;
  LogTerm t = term;
  std::sort(t.binders.begin(), t.binders.end());
  std::string best = text_of(Form{t});
  while (t.binders.size() <= kMaxPermuted && std::next_permutation(t.binders.begin(), t.binders.end()))
    best = std::min(best, text_of(Form{t}));
  return best;
}

}  // namespace gopt::checker
