#include "points_at_sizes.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>

#include "normal_form/normal_form.h"

namespace gopt::verifier {
namespace {

using Monomials = std::set<std::vector<AtomId>>;

// Products of symbols, those of divisors as if they were multiplied by what is divided.
void collect_products(const Index& index, Monomials& out) {
  for (const Index::Term& term : index.terms()) {
    std::set<AtomId> symbols;
    for (AtomId id : term.atoms) {
      const Atom& a = atom(id);
      if (a.kind == AtomKind::Symbol) symbols.insert(id);
      if (a.kind != AtomKind::FloorDiv) continue;
      collect_products(a.numerator, out);
      std::set<AtomId> in_divisor;
      collect_symbols(a.denominator, in_divisor);
      for (AtomId divisor : in_divisor) out.insert({divisor, divisor});
      if (term.atoms.size() > 1) collect_symbols(a.numerator, symbols);
    }
    std::vector<AtomId> product(symbols.begin(), symbols.end());
    if (product.size() == 1 && std::count(term.atoms.begin(), term.atoms.end(), product[0]) > 1)
      product.push_back(product[0]);
    if (product.size() > 1) out.insert(std::move(product));
  }
}
void collect_products(const Cond& cond, Monomials& out) {
  collect_products(cond.index(), out);
  for (const Cond& part : cond.parts()) collect_products(part, out);
}

// Symbols without which all products are linear: sizes before positions, those of most products first.
std::vector<AtomId> symbols_to_fix(Monomials products) {
  std::vector<AtomId> fixed;
  while (true) {
    std::map<AtomId, int> uses;
    for (const std::vector<AtomId>& product : products)
      if (product.size() > 1)
        for (AtomId id : product) uses[id]++;
    if (uses.empty()) return fixed;
    const auto rank = [&](const std::pair<const AtomId, int>& use) {
      const std::string& name = atom(use.first).name;
      return std::tuple(std::isalpha(static_cast<unsigned char>(name[0])) ? 0 : 1, -use.second, name);
    };
    const AtomId next = std::min_element(uses.begin(), uses.end(), [&](const auto& a, const auto& b) {
                          return rank(a) < rank(b);
                        })->first;
    fixed.push_back(next);
    Monomials left;
    for (std::vector<AtomId> product : products) {
      std::erase(product, next);
      left.insert(std::move(product));
    }
    products = std::move(left);
  }
}

}  // namespace

std::optional<Assignment> point_at_sizes(const Cond& hypothesis, const std::vector<Cond>& alternatives) {
  static constexpr int64_t kPatterns[][3] = {{1, 1, 1}, {2, 2, 2}, {2, 1, 3}, {1, 2, 2}, {3, 2, 1}};
  Monomials products;
  collect_products(hypothesis, products);
  for (const Cond& alternative : alternatives) collect_products(alternative, products);
  const std::vector<AtomId> fixed = symbols_to_fix(std::move(products));
  if (fixed.empty()) return std::nullopt;
  std::set<AtomId> symbols;
  collect_symbols(hypothesis, symbols);
  for (const Cond& alternative : alternatives) collect_symbols(alternative, symbols);
  for (const auto& pattern : kPatterns) {
    Substitution values;
    for (size_t i = 0; i < fixed.size(); i++) values[fixed[i]] = Index(pattern[i % std::size(pattern)]);
    std::vector<Cond> choices;
    for (const Cond& alternative : alternatives) choices.push_back(substitute(alternative, values));
    for (Assignment point : ask_linear(substitute(hypothesis, values), choices).points) {
      for (const auto& [id, value] : values) point[static_cast<uint32_t>(id)] = value.constant();
      for (AtomId symbol : symbols) point.try_emplace(static_cast<uint32_t>(symbol), 1);
      const bool holds = truth_of(hypothesis, point) == true;
      if (holds && std::any_of(alternatives.begin(), alternatives.end(),
                               [&](const Cond& alternative) { return truth_of(alternative, point) == true; }))
        return point;
    }
  }
  return std::nullopt;
}

}  // namespace gopt::verifier
