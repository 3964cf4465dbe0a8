#include "maximum_parts.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "equality/binder_change.h"
#include "equality/positivity.h"

namespace gopt::verifier {
namespace {

bool is_plain(const Branch& b) { return b.binders.empty() && b.guard.is_true(); }

bool is_single_product(const NormalForm& value) { return value.size() == 1 && !value[0].factors.empty(); }

bool holds_any(const std::set<AtomId>& symbols, const std::vector<AtomId>& binders) {
  return std::any_of(binders.begin(), binders.end(), [&](AtomId b) { return symbols.count(b) > 0; });
}

// ---- powers ----

using Powers = std::vector<std::pair<Factor, int>>;

// Factors of the value and how often each occurs; nothing where it is no plain product with a coefficient of 1.
std::optional<Powers> powers_of(const NormalForm& value) {
  if (!is_single_product(value)) return std::nullopt;
  const Summand& term = value[0];
  if (!(term.coefficient == Rational(1)) || !term.binders.empty() || !term.guard.is_true()) return std::nullopt;
  Powers powers;
  std::map<std::string, size_t> places;
  for (const Factor& f : term.factors) {
    const auto [it, is_new] = places.try_emplace(key(f), powers.size());
    if (is_new)
      powers.emplace_back(f, 1);
    else
      powers[it->second].second++;
  }
  return powers;
}

NormalForm root_of(const Powers& powers, int n) {
  NormalForm root = one();
  for (const auto& [factor, count] : powers) root[0].factors.insert(root[0].factors.end(), count / n, factor);
  return root;
}

}  // namespace

std::optional<RootedMaximum> rooted(const std::vector<Branch>& branches, ProofState& state) {
  std::vector<Powers> all;
  int common = 0;
  for (const Branch& b : branches) {
    if (b.value.empty()) {
      all.emplace_back();
      continue;
    }
    auto powers = powers_of(b.value);
    if (!powers) return std::nullopt;
    for (const auto& [factor, count] : *powers) common = std::gcd(common, count);
    all.push_back(*std::move(powers));
  }
  for (int n = common; n >= 2; n--) {
    if (common % n != 0) continue;
    RootedMaximum result{branches, n};
    bool is_root = true;
    for (size_t i = 0; i < branches.size() && is_root; i++) {
      if (all[i].empty()) continue;
      result.branches[i].value = root_of(all[i], n);
      is_root = n % 2 == 1 || is_nonnegative(result.branches[i].value, state.always && branches[i].guard, state);
    }
    if (is_root) return result;
  }
  return std::nullopt;
}

// ---- sums ----

namespace {

// The part of the term that is a sum by itself: binders, factors and literals of the guard that nothing else holds.
struct SplitTerm {
  Summand sum, rest;
};

// The sum over those of the term's binders that meet no outer one; nothing where all do.
std::optional<SplitTerm> without_outer(const Summand& term, const std::vector<AtomId>& outer) {
  const std::vector<Cond> literals = conjuncts(term.guard);
  std::vector<std::set<AtomId>> groups;  // symbols that occur together
  for (const Factor& f : term.factors) collect_symbols(f, groups.emplace_back());
  for (const Cond& literal : literals) collect_symbols(literal, groups.emplace_back());
  std::set<AtomId> tied(outer.begin(), outer.end());
  for (bool has_grown = true; has_grown;) {
    has_grown = false;
    for (const std::set<AtomId>& group : groups) {
      if (std::none_of(group.begin(), group.end(), [&](AtomId s) { return tied.count(s) > 0; })) continue;
      for (AtomId b : term.binders)
        if (group.count(b)) has_grown = tied.insert(b).second || has_grown;
    }
  }
  SplitTerm parts;
  parts.rest.coefficient = term.coefficient;
  for (AtomId b : term.binders) (tied.count(b) ? parts.rest : parts.sum).binders.push_back(b);
  if (parts.sum.binders.empty()) return std::nullopt;
  for (size_t i = 0; i < term.factors.size(); i++)
    (holds_any(groups[i], parts.sum.binders) ? parts.sum : parts.rest).factors.push_back(term.factors[i]);
  for (size_t i = 0; i < literals.size(); i++) {
    Cond& guard = (holds_any(groups[term.factors.size() + i], parts.sum.binders) ? parts.sum : parts.rest).guard;
    guard = guard && literals[i];
  }
  return parts;
}

}  // namespace

std::optional<CommonSum> shared_sum_of(const std::vector<Branch>& branches, ProofState& state) {
  CommonSum result{{}, branches};
  std::string text;
  for (size_t i = 0; i < branches.size(); i++) {
    const NormalForm& value = branches[i].value;
    if (value.empty()) continue;
    if (!is_single_product(value)) return std::nullopt;
    auto parts = without_outer(value[0], branches[i].binders);
    if (!parts) return std::nullopt;
    const std::string own = key(NormalForm{parts->sum});
    if (!text.empty() && own != text) return std::nullopt;
    if (text.empty()) {
      text = own;
      result.sum = {parts->sum};
      if (!is_nonnegative(result.sum, state.always, state)) return std::nullopt;
    }
    result.branches[i].value = {std::move(parts->rest)};
  }
  return text.empty() ? std::nullopt : std::optional(std::move(result));
}

// ---- branches that do not count ----

void drop_exceeded(std::vector<Branch>& branches, ProofState& state) {
  constexpr size_t kMaxBranches = 4;
  if (branches.size() < 2 || branches.size() > kMaxBranches) return;
  for (size_t i = 0; i < branches.size(); i++) {
    Branch& largest = branches[i];
    std::set<AtomId> symbols;
    collect_symbols(largest.value, symbols);
    if (largest.value.empty() || holds_any(symbols, largest.binders)) continue;
    const bool exceeds_others = std::all_of(branches.begin(), branches.end(), [&](const Branch& other) {
      return &other == &largest || is_at_least(largest.value, other.value, state.always && other.guard, state);
    });
    if (!exceeds_others) continue;
    Cond some = largest.guard;
    for (AtomId binder : largest.binders) some = where_some(some, binder);
    if (!is_plain(largest) && (some.is_false() || !state.solver.entails(state.always, some))) continue;
    branches = {Branch{{}, Cond(), NormalForm(largest.value)}};
    return;
  }
}

}  // namespace gopt::verifier
