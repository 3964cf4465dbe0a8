#include "linear_system.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace gopt::verifier {
namespace {

constexpr size_t kMostRows = 250, kMostNewRows = 600;
constexpr int64_t kLargest = int64_t{1} << 62;  // of a number in a row: its opposite and sums of two are numbers, too

int64_t checked(__int128 value) {
  if (value >= kLargest || value <= -kLargest) throw std::overflow_error("a coefficient exceeds 62 bits");
  return static_cast<int64_t>(value);
}

int64_t coefficient_of(const LinearSystem::Terms& terms, LinearSystem::Variable variable) {
  const auto it = std::lower_bound(terms.begin(), terms.end(), variable,
                                   [](const auto& term, LinearSystem::Variable v) { return term.first < v; });
  return it != terms.end() && it->first == variable ? it->second : 0;
}

LinearSystem::Terms negated(LinearSystem::Terms terms) {
  for (auto& [variable, coefficient] : terms) coefficient = -coefficient;
  return terms;
}

// a times the first and b times the second.
LinearSystem::Terms weighted_sum(const LinearSystem::Terms& first, int64_t a, const LinearSystem::Terms& second,
                                 int64_t b) {
  LinearSystem::Terms sum;
  sum.reserve(first.size() + second.size());
  auto i = first.begin(), j = second.begin();
  while (i != first.end() || j != second.end()) {
    const bool takes_first = j == second.end() || (i != first.end() && i->first <= j->first);
    const bool takes_second = i == first.end() || (j != second.end() && j->first <= i->first);
    const LinearSystem::Variable variable = takes_first ? i->first : j->first;
    __int128 coefficient = 0;
    if (takes_first) coefficient += static_cast<__int128>(a) * (i++)->second;
    if (takes_second) coefficient += static_cast<__int128>(b) * (j++)->second;
    if (coefficient != 0) sum.emplace_back(variable, checked(coefficient));
  }
  return sum;
}

int64_t floor_of(const Rational& r) {
  const int64_t quotient = r.numerator() / r.denominator();
  return r.numerator() % r.denominator() < 0 ? quotient - 1 : quotient;
}

bool is_below(const Rational& a, const Rational& b) { return (a + -b).numerator() < 0; }

}  // namespace

void LinearSystem::require(const Terms& terms, const Rational& constant, bool is_strict) {
  for (const auto& [variable, coefficient] : terms) checked(coefficient);
  insert(terms, constant, is_strict);
}

void LinearSystem::set_derived(Variable variable) {
  if (derived_.size() <= variable) derived_.resize(variable + 1, false);
  derived_[variable] = true;
}

// Coefficients become coprime, so that parallel constraints meet in one row, of which the tighter is kept.
void LinearSystem::insert(Terms terms, Rational constant, bool is_strict) {
  checked(constant.numerator());
  int64_t divisor = 0;
  for (const auto& [variable, coefficient] : terms) divisor = std::gcd(divisor, coefficient);
  if (divisor == 0) {
    if (constant.numerator() < 0 || (constant.is_zero() && is_strict)) is_contradiction_ = true;
    return;
  }
  if (divisor != 1) {
    for (auto& [variable, coefficient] : terms) coefficient /= divisor;
    constant = constant * Rational(1, divisor);
  }
  if (numbers_ == Numbers::Integers) {
    // More than 0 is, in whole numbers, at least 1 once the constant is whole.
    const int64_t whole = floor_of(constant);
    constant = Rational(is_strict && constant == Rational(whole) ? whole - 1 : whole);
    is_strict = false;
  }
  if (const auto opposite = rows_.find(negated(terms)); opposite != rows_.end()) {
    const Rational slack = constant + opposite->second.constant;
    if (slack.numerator() < 0 || (slack.is_zero() && (is_strict || opposite->second.is_strict)))
      is_contradiction_ = true;
  }
  const auto [it, is_new] = rows_.try_emplace(std::move(terms), Bound{constant, is_strict});
  if (is_new) return;
  Bound& known = it->second;
  if (is_below(constant, known.constant)) {
    known = {constant, is_strict};
  } else if (constant == known.constant) {
    known.is_strict = known.is_strict || is_strict;
  }
}

bool LinearSystem::is_equation(const Terms& terms, const Bound& bound) const {
  const auto opposite = rows_.find(negated(terms));
  return opposite != rows_.end() && (opposite->second.constant + bound.constant).is_zero();
}

// What an equation gives is put in its place elsewhere: no row is added. A coefficient of 1 keeps whole numbers whole.
std::optional<LinearSystem::Pivot> LinearSystem::pivot_of_equation() const {
  std::optional<Pivot> best;
  int64_t best_size = 0;
  for (const auto& [terms, bound] : rows_) {
    if (terms[0].second < 0 || !is_equation(terms, bound)) continue;
    for (const auto& [variable, coefficient] : terms) {
      const int64_t size = 2 * (coefficient < 0 ? -coefficient : coefficient) - (is_derived(variable) ? 1 : 0);
      if (best && size >= best_size) continue;
      best = Pivot{variable, terms};
      best_size = size;
    }
    if (best_size <= 2) break;
  }
  return best;
}

LinearSystem::Pivot LinearSystem::choose_pivot() const {
  if (const auto pivot = pivot_of_equation()) return *pivot;
  std::map<Variable, Count> counts;
  for (const auto& [terms, bound] : rows_)
    for (const auto& [variable, coefficient] : terms)
      (coefficient > 0 ? counts[variable].positive : counts[variable].negative)++;
  const auto best = std::min_element(counts.begin(), counts.end(), [&](const auto& a, const auto& b) {
    return std::pair{!is_derived(a.first), a.second.growth()} < std::pair{!is_derived(b.first), b.second.growth()};
  });
  return {best->first, std::nullopt};
}

LinearSystem::Answer LinearSystem::solve() {
  try {
    size_t made = 0;
    while (!is_contradiction_ && !rows_.empty()) {
      const size_t before = rows_.size();
      eliminate(choose_pivot());
      made += rows_.size() > before ? rows_.size() - before : 0;
      if (rows_.size() > kMostRows || made > kMostNewRows)
        return is_contradiction_ ? Answer::Infeasible : Answer::Unknown;
    }
  } catch (const std::overflow_error&) {
    return is_contradiction_ ? Answer::Infeasible : Answer::Unknown;
  }
  return is_contradiction_ ? Answer::Infeasible : Answer::Feasible;
}

void LinearSystem::eliminate(const Pivot& pivot) {
  const Variable variable = pivot.variable;
  Elimination step{variable, {}};
  for (auto it = rows_.begin(); it != rows_.end();) {
    if (coefficient_of(it->first, variable) == 0) {
      ++it;
      continue;
    }
    step.rows.emplace_back(it->first, it->second);
    it = rows_.erase(it);
  }
  const Terms opposite = pivot.equation ? negated(*pivot.equation) : Terms();
  for (size_t i = 0; i < step.rows.size() && !is_contradiction_; i++) {
    const bool is_positive = coefficient_of(step.rows[i].first, variable) > 0;
    const bool is_own = pivot.equation && (step.rows[i].first == *pivot.equation || step.rows[i].first == opposite);
    if (is_own || (!pivot.equation && !is_positive)) continue;
    for (size_t j = 0; j < step.rows.size() && !is_contradiction_; j++) {
      const bool other_is_positive = coefficient_of(step.rows[j].first, variable) > 0;
      if (is_positive == other_is_positive) continue;
      if (pivot.equation && step.rows[j].first != *pivot.equation && step.rows[j].first != opposite) continue;
      if (rows_.size() > kMostRows) break;
      if (is_positive)
        combine(step.rows[i], step.rows[j], variable);
      else
        combine(step.rows[j], step.rows[i], variable);
    }
  }
  eliminated_.push_back(std::move(step));
}

void LinearSystem::combine(const std::pair<Terms, Bound>& positive, const std::pair<Terms, Bound>& negative,
                           Variable variable) {
  const int64_t p = coefficient_of(positive.first, variable), n = -coefficient_of(negative.first, variable);
  const int64_t divisor = std::gcd(p, n), a = n / divisor, b = p / divisor;
  insert(weighted_sum(positive.first, a, negative.first, b),
         positive.second.constant * Rational(a) + negative.second.constant * Rational(b),
         positive.second.is_strict || negative.second.is_strict);
}

// The variables that were eliminated last have bounds that are numbers; those of the others follow.
std::optional<std::map<LinearSystem::Variable, int64_t>> LinearSystem::integer_point(int choice) const {
  std::map<Variable, int64_t> point;
  for (size_t step = eliminated_.size(); step-- > 0;) {
    std::optional<int64_t> low, high;
    for (const auto& [terms, bound] : eliminated_[step].rows) {
      Rational rest = bound.constant;
      int64_t own = 0;
      for (const auto& [variable, coefficient] : terms) {
        if (variable == eliminated_[step].variable)
          own = coefficient;
        else if (const auto it = point.find(variable); it != point.end())
          rest = rest + Rational(coefficient) * Rational(it->second);
      }
      // own * x + rest >= 0, or more than 0.
      const Rational limit = -rest * Rational(1, own);
      const bool excludes = bound.is_strict && limit.denominator() == 1;
      if (own > 0) {
        const int64_t least = -floor_of(-limit) + (excludes ? 1 : 0);
        low = low ? std::max(*low, least) : least;
      } else {
        const int64_t most = floor_of(limit) - (excludes ? 1 : 0);
        high = high ? std::min(*high, most) : most;
      }
    }
    if (low && high && *low > *high) return std::nullopt;
    int64_t value = low ? *low + choice : high ? *high - choice : choice;
    if (low && high) value = std::min(value, *high);
    point[eliminated_[step].variable] = value;
  }
  return point;
}

}  // namespace gopt::verifier
