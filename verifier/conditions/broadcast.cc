#include "broadcast.h"

#include <algorithm>

#include "normal_form/normal_form.h"

namespace gopt::verifier {
namespace {

struct Pair {
  AtomId first, second;
};

bool includes(const std::vector<Cond>& all, const std::vector<Cond>& some) {
  return std::all_of(some.begin(), some.end(),
                     [&](const Cond& c) { return std::find(all.begin(), all.end(), c) != all.end(); });
}

// a and b, where the condition is a == b.
std::optional<Pair> equal_symbols(const Cond& condition) {
  const std::vector<Cond> literals = conjuncts(condition);
  if (literals.size() != 2 || literals[0].kind() != CondKind::NonNegative || literals[0].index().constant() != 0)
    return std::nullopt;
  const auto& terms = literals[0].index().terms();
  if (terms.size() != 2 || terms[0].atoms.size() != 1 || terms[1].atoms.size() != 1) return std::nullopt;
  const Pair pair{terms[0].atoms[0], terms[1].atoms[0]};
  const bool is_equality = condition == equal(Index::from_atom(pair.first), Index::from_atom(pair.second)) ||
                           condition == equal(Index::from_atom(pair.second), Index::from_atom(pair.first));
  return is_equality ? std::optional(pair) : std::nullopt;
}

}  // namespace

std::vector<BroadcastCase> broadcast_cases(const RewriteRule& rule, const Cond& condition) {
  constexpr size_t kMaxPairs = 2;
  std::vector<BroadcastCase> cases;
  const auto left = meaning_of(rule.left);
  if (!left) return cases;
  std::vector<Pair> pairs;
  for (const Requirement& r : left->requirements) {
    const auto pair = r.from_broadcast ? equal_symbols(r.cond) : std::nullopt;
    if (!pair || includes(conjuncts(rule.condition), conjuncts(r.cond)) ||
        !includes(conjuncts(condition), conjuncts(r.cond)))
      continue;
    const bool is_known = std::any_of(
        pairs.begin(), pairs.end(), [&](const Pair& p) { return p.first == pair->first && p.second == pair->second; });
    if (!is_known) pairs.push_back(*pair);
  }
  if (pairs.size() > kMaxPairs) return cases;
  size_t choices = 1;
  for (size_t k = 0; k < pairs.size(); k++) choices *= 3;
  for (size_t choice = 1; choice < choices; choice++) {
    Substitution ones;
    std::vector<AtomId> symbols;
    Cond where;
    size_t rest = choice;
    for (const Pair& pair : pairs) {
      if (rest % 3 != 0) {
        const AtomId one = rest % 3 == 1 ? pair.first : pair.second;
        if (ones.emplace(one, Index(1)).second) symbols.push_back(one);
        where = where && equal(Index::from_atom(one), Index(1));
      }
      rest /= 3;
    }
    if (auto own = with_sizes(rule, ones)) cases.push_back({symbols, where, *std::move(own)});
  }
  return cases;
}

}  // namespace gopt::verifier
