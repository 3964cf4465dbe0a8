#include "output_position.h"

#include <algorithm>
#include <string>

#include "normal_form.h"

namespace gopt {
namespace {

// The factors of an extent that is a product, by name; a number comes first.
std::vector<Index> factors_of(const Index& extent) {
  if (extent.constant() != 0 || extent.terms().size() != 1 || extent.terms()[0].coefficient < 1) return {};
  const Index::Term& monomial = extent.terms()[0];
  std::vector<Index> factors;
  if (monomial.coefficient > 1) factors.emplace_back(monomial.coefficient);
  for (AtomId id : sorted_by_name(monomial.atoms)) factors.push_back(Index::from_atom(id));
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

}  // namespace gopt
