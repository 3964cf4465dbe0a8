#include "output_position.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "normal_form/normal_form.h"

namespace gopt::verifier {
namespace {

Index monomial_of(const Index::Term& term) {
  Index product(term.coefficient);
  for (AtomId id : term.atoms) product = product * Index::from_atom(id);
  return product;
}

// What all terms of a sum have in common: o of g*o + f*o.
Index::Term common_factor(const Index& extent) {
  Index::Term common = extent.terms()[0];
  for (const Index::Term& term : extent.terms()) {
    common.coefficient = std::gcd(common.coefficient, term.coefficient);
    std::vector<AtomId> rest = term.atoms, shared;
    for (AtomId id : common.atoms) {
      const auto it = std::find(rest.begin(), rest.end(), id);
      if (it == rest.end()) continue;
      shared.push_back(id);
      rest.erase(it);
    }
    common.atoms = std::move(shared);
  }
  return common;
}

// The factors of an extent that is a product, by name; a number comes first, a sum before it: it is the outer one
// first.
std::vector<Index> factors_of(const Index& extent) {
  if (extent.constant() != 0 || extent.terms().empty()) return {};
  if (std::any_of(extent.terms().begin(), extent.terms().end(), [](const auto& term) { return term.coefficient < 1; }))
    return {};
  const Index::Term common = common_factor(extent);
  std::vector<Index> factors;
  if (common.coefficient > 1) factors.emplace_back(common.coefficient);
  for (AtomId id : sorted_by_name(common.atoms)) factors.push_back(Index::from_atom(id));
  if (extent.terms().size() > 1) {
    const Index rest = floor_div(extent, monomial_of(common));
    if (rest * monomial_of(common) == extent) factors.insert(factors.begin(), rest);
  }
  return factors.size() >= 2 ? factors : std::vector<Index>{};
}

}  // namespace

OutputPosition position_of(const Shape& shape, size_t output, int choice) {
  OutputPosition p;
  for (size_t axis = 0; axis < shape.size(); axis++) {
    const std::string name = "%o" + std::to_string(output) + "_" + std::to_string(axis);
    const Index& extent = shape[axis];
    const std::vector<Index> factors = factors_of(extent);
    if (extent == Index(1)) {
      p.subscripts.emplace_back(0);
      continue;
    }
    if (factors.empty() || choice < 0) {
      p.subscripts.push_back(symbol(name));
      p.range = p.range && within(p.subscripts.back(), Index(0), extent);
      continue;
    }
    const size_t chosen = static_cast<size_t>(choice) % factors.size();
    const Index& inner = factors[chosen];
    Index outer(1);
    for (size_t k = 0; k < factors.size(); k++)
      if (k != chosen) outer = outer * factors[k];
    p.factors.insert(p.factors.end(), factors.begin(), factors.end());
    const Index q = symbol(name + "q"), r = symbol(name + "r");
    p.subscripts.push_back(q * inner + r);
    p.range = p.range && within(q, Index(0), outer) && within(r, Index(0), inner);
  }
  return p;
}

int factor_choices(const Shape& shape) {
  size_t choices = 0;
  for (const Index& extent : shape) choices = std::max(choices, factors_of(extent).size());
  return static_cast<int>(choices);
}

}  // namespace gopt::verifier
