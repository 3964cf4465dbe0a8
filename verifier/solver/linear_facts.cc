#include "linear_facts.h"

#include <optional>
#include <stdexcept>

namespace gopt::verifier {
namespace {

// What is not negative of q = n // d, where a literal bounds n by multiples of d: n < m d is q < m, n >= m d is
// q >= m. It follows by a product only, which linear arithmetic does not find.
void append_quotient_bounds(AtomId division, const std::vector<Cond>& literals, std::vector<Index>& facts) {
  const Atom& a = atom(division);
  auto multiple = [&](const Index& index) -> std::optional<Index> {
    const Index quotient = floor_div(index, a.denominator);
    return quotient * a.denominator == index ? std::optional(quotient) : std::nullopt;
  };
  for (const Cond& literal : literals) {
    if (literal.kind() != CondKind::NonNegative) continue;
    if (const auto above = multiple(a.numerator - literal.index()))
      facts.push_back(Index::from_atom(division) - *above);
    if (const auto below = multiple(a.numerator + literal.index() + Index(1)))
      facts.push_back(*below - Index(1) - Index::from_atom(division));
  }
}

}  // namespace

std::vector<Index> division_facts(AtomId division, const std::vector<Cond>& literals) {
  const Atom& a = atom(division);
  const Index remainder = a.numerator - a.denominator * Index::from_atom(division);
  std::vector<Index> facts{remainder, a.denominator - Index(1) - remainder};
  append_quotient_bounds(division, literals, facts);
  return facts;
}

std::vector<Index> product_facts(const std::vector<Index>& facts, const std::set<std::vector<AtomId>>& known,
                                 size_t at_most) {
  constexpr size_t kMostTerms = 24;
  std::vector<Index> products;
  for (size_t i = 0; i < facts.size(); i++) {
    for (size_t j = i; j < facts.size() && products.size() < at_most; j++) {
      if ((facts[i].terms().size() + 1) * (facts[j].terms().size() + 1) > kMostTerms) continue;
      Index product;
      try {
        product = facts[i] * facts[j];
      } catch (const std::overflow_error&) {
        continue;
      }
      bool useful = false, closed = true;
      for (const Index::Term& term : product.terms()) {
        if (term.atoms.size() < 2) continue;
        useful = true;
        closed &= known.count(term.atoms) > 0;
      }
      if (useful && closed) products.push_back(std::move(product));
    }
  }
  return products;
}

}  // namespace gopt::verifier
