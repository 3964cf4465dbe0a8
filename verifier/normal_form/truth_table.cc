#include "truth_table.h"

#include <algorithm>
#include <map>

namespace gopt::verifier {
namespace {

constexpr size_t kMaxComparisons = 5;

// Comparisons by their keys, in order.
using Comparisons = std::map<std::string, Factor>;

bool collect_comparisons(const NormalForm& form, Comparisons& out) {
  for (const Summand& term : form) {
    if (!term.binders.empty() || !term.guard.is_true()) return false;
    for (const Factor& f : term.factors) {
      if ((f.kind != FactorKind::IsLess && f.kind != FactorKind::IsEqual) || f.exponent < 1) return false;
      Factor single = f;
      single.exponent = 1;
      out.emplace(key(f, false), std::move(single));
    }
  }
  return out.size() <= kMaxComparisons;
}

// Bit k of `outcome` is how the k-th comparison comes out.
Rational value_at(const NormalForm& form, const Comparisons& comparisons, size_t outcome) {
  Rational sum;
  for (const Summand& term : form) {
    const bool counts = std::all_of(term.factors.begin(), term.factors.end(), [&](const Factor& f) {
      const auto place = std::distance(comparisons.begin(), comparisons.find(key(f, false)));
      return ((outcome >> place) & 1) != 0;
    });
    if (counts) sum = sum + term.coefficient;
  }
  return sum;
}

// The sum of products of comparisons that has these values.
NormalForm interpolated(const Comparisons& comparisons, std::vector<Rational> values) {
  for (size_t bit = 1; bit < values.size(); bit *= 2)
    for (size_t outcome = 0; outcome < values.size(); outcome++)
      if (outcome & bit) values[outcome] = values[outcome] + -values[outcome ^ bit];
  NormalForm form;
  for (size_t subset = 0; subset < values.size(); subset++) {
    if (values[subset].is_zero()) continue;
    Summand term;
    term.coefficient = values[subset];
    size_t place = 0;
    for (const auto& [text, comparison] : comparisons)
      if ((subset >> place++) & 1) term.factors.push_back(comparison);
    form.push_back(std::move(term));
  }
  return form;
}

}  // namespace

std::optional<NormalForm> by_truth_table(const std::vector<const NormalForm*>& forms,
                                         const std::function<Rational(const std::vector<Rational>&)>& function) {
  Comparisons comparisons;
  for (const NormalForm* form : forms)
    if (!collect_comparisons(*form, comparisons)) return std::nullopt;
  if (comparisons.empty()) return std::nullopt;
  std::vector<Rational> values;
  for (size_t outcome = 0; outcome < size_t{1} << comparisons.size(); outcome++) {
    std::vector<Rational> arguments;
    for (const NormalForm* form : forms) arguments.push_back(value_at(*form, comparisons, outcome));
    values.push_back(function(arguments));
  }
  return interpolated(comparisons, std::move(values));
}

bool is_indicator(const NormalForm& form) {
  Comparisons comparisons;
  if (!collect_comparisons(form, comparisons) || comparisons.empty()) return false;
  for (size_t outcome = 0; outcome < size_t{1} << comparisons.size(); outcome++) {
    const Rational value = value_at(form, comparisons, outcome);
    if (!value.is_zero() && !(value == Rational(1))) return false;
  }
  return true;
}

}  // namespace gopt::verifier
