#include "common_factors.h"

#include <algorithm>
#include <map>

namespace gopt::verifier {

bool is_exponential(const Factor& f) { return f.kind == FactorKind::Call && f.function == Function::Exp; }

std::optional<std::vector<size_t>> shared_positions(const NormalForm& form, size_t i) {
  std::set<AtomId> symbols;
  collect_symbols(form[0].factors[i], symbols);
  for (const Summand& term : form)
    for (AtomId binder : term.binders)
      if (symbols.count(binder)) return std::nullopt;
  const std::string wanted = key(form[0].factors[i]);
  std::vector<size_t> positions;
  for (const Summand& term : form) {
    auto it = std::find_if(term.factors.begin(), term.factors.end(), [&](const Factor& f) { return key(f) == wanted; });
    if (it == term.factors.end()) return std::nullopt;
    positions.push_back(static_cast<size_t>(it - term.factors.begin()));
  }
  return positions;
}

void remove_factors(NormalForm& form, const std::vector<size_t>& positions) {
  for (size_t t = 0; t < form.size(); t++)
    form[t].factors.erase(form[t].factors.begin() + static_cast<ptrdiff_t>(positions[t]));
}

Rational leading_coefficient(const NormalForm& form) {
  const Summand* first = nullptr;
  std::string smallest;
  for (const Summand& term : form) {
    if (term.factors.empty() && form.size() > 1) continue;
    Summand unsigned_term = term;
    unsigned_term.coefficient = 1;
    std::string text = key(NormalForm{unsigned_term});
    if (!first || text < smallest) {
      first = &term;
      smallest = std::move(text);
    }
  }
  return first ? first->coefficient : Rational(1);
}

std::vector<Factor> least_exponentials(const NormalForm& form) {
  std::set<AtomId> binders;
  for (const Summand& term : form) binders.insert(term.binders.begin(), term.binders.end());
  std::map<std::string, Factor> found;
  for (const Summand& term : form) {
    for (const Factor& f : term.factors) {
      if (!is_exponential(f)) continue;
      std::set<AtomId> symbols;
      collect_symbols(f, symbols);
      const bool is_bound = std::any_of(symbols.begin(), symbols.end(), [&](AtomId s) { return binders.count(s) > 0; });
      if (!is_bound) found.emplace(key(f, false), f);
    }
  }
  std::vector<Factor> least;
  for (auto& [text, factor] : found) {
    std::optional<int> lowest;
    for (const Summand& term : form) {
      int power = 0;
      for (const Factor& f : term.factors)
        if (f.kind == FactorKind::Call && key(f, false) == text) power += f.exponent;
      lowest = lowest ? std::min(*lowest, power) : power;
    }
    if (*lowest == 0) continue;
    factor.exponent = *lowest;
    least.push_back(std::move(factor));
  }
  return least;
}

std::optional<Factor> shared_square(const NormalForm& form) {
  for (size_t i = 0; !form.empty() && i < form[0].factors.size(); i++) {
    const Factor& f = form[0].factors[i];
    const std::string text = key(f);
    const bool is_shared = std::all_of(form.begin(), form.end(), [&](const Summand& term) {
      return std::count_if(term.factors.begin(), term.factors.end(),
                           [&](const Factor& other) { return key(other) == text; }) >= 2;
    });
    if (is_shared && shared_positions(form, i)) return f;
  }
  return std::nullopt;
}

}  // namespace gopt::verifier
