// Which condition to propose for a rule that holds for some sizes only, and whether it is worth having.
#include <algorithm>

#include "condition_search.h"

namespace gopt::verifier {
namespace {

// Whether the rule says something where it holds: on rows without an empty tensor, with every extent 2 at least (but
// for extents that the sides' definitions never let be 2), each symbol takes two values or more, as far as it does so
// where the right side is defined. A condition that pins a symbol makes another rule of it, or a trivial one.
bool is_telling(const std::vector<SizeRow>& rows, const std::vector<AtomId>& symbols, const std::set<AtomId>& extents,
                const std::set<AtomId>& small) {
  std::map<AtomId, std::set<int64_t>> values;
  for (const SizeRow& row : rows) {
    const bool large = std::all_of(symbols.begin(), symbols.end(), [&](AtomId s) {
      return !extents.count(s) || small.count(s) || row.sizes.at(s) >= 2;
    });
    if (!row.holds || !row.is_full || !large) continue;
    for (AtomId s : symbols) values[s].insert(row.sizes.at(s));
  }
  return !values.empty() &&
         std::all_of(symbols.begin(), symbols.end(), [&](AtomId s) { return small.count(s) || values[s].size() >= 2; });
}

// Symbols that take one value on all rows, or, as extents, none above 1: the left side's requirements do that.
std::set<AtomId> pinned_symbols(const std::vector<SizeRow>& rows, const std::vector<AtomId>& symbols,
                                const std::set<AtomId>& extents) {
  std::set<AtomId> pinned;
  for (AtomId s : symbols) {
    std::set<int64_t> values;
    for (const SizeRow& row : rows) values.insert(row.sizes.at(s));
    if (values.size() <= 1 || (extents.count(s) && *values.rbegin() <= 1)) pinned.insert(s);
  }
  return pinned;
}

// Symbols of which some pair of full rows differs in that symbol alone and in whether the rule holds; all symbols
// where there is no such pair.
std::set<AtomId> relevant_symbols(const std::vector<SizeRow>& rows, const std::vector<AtomId>& symbols) {
  std::set<AtomId> relevant;
  for (AtomId s : symbols) {
    std::map<Environment, bool> seen;
    for (const SizeRow& row : rows) {
      if (!row.is_full || relevant.count(s)) continue;
      Environment others = row.sizes;
      others.erase(s);
      const auto [it, fresh] = seen.emplace(others, row.holds);
      if (!fresh && it->second != row.holds) relevant.insert(s);
    }
  }
  return relevant.empty() ? std::set<AtomId>(symbols.begin(), symbols.end()) : relevant;
}

// Rows at which one symbol at a time is changed, so that what matters shows in a sample too.
std::vector<SizeRow> neighbours(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right,
                                const std::vector<SizeRow>& rows, const std::vector<AtomId>& symbols) {
  constexpr size_t kRows = 12;
  std::vector<Environment> changed;
  size_t holding = 0, failing = 0;
  for (const SizeRow& row : rows) {
    if (!row.is_full || (row.holds ? holding : failing)++ >= kRows) continue;
    for (AtomId s : symbols)
      for (int64_t value : {-2, -1, 0, 1, 2, 3, 4}) {
        Environment other = row.sizes;
        other[s] = value;
        changed.push_back(std::move(other));
      }
  }
  return rows_at(rule, left, right, changed);
}

}  // namespace

std::optional<DerivedCondition> derive_condition(const RewriteRule& rule, const SideMeaning& left,
                                                 const SideMeaning& right, const std::vector<SizeRow>& wrong,
                                                 uint64_t seed, bool* telling) {
  constexpr size_t kProbes = 80, kLargerRows = 200;
  const std::vector<AtomId> symbols = rule_symbols(rule);
  const std::set<AtomId> extents = extent_symbols(rule);
  if (symbols.empty()) return std::nullopt;
  // A residue shows where sizes have it that differ.
  const std::set<int64_t> moduli = moduli_of(inner_extents(rule));
  const int64_t largest_modulus = moduli.empty() ? 2 : *moduli.rbegin();
  // Most rules that do not hold for all sizes hold for none that matters: a few rows show it.
  std::vector<SizeRow> probes =
      sample_sizes(rule, left, right, 2, std::max<int64_t>(5, largest_modulus + 2), kProbes, seed);
  if (probes.empty()) probes = sample_sizes(rule, left, right, 1, 4, kProbes, seed);
  if (std::none_of(probes.begin(), probes.end(), [](const SizeRow& r) { return r.holds && r.is_full; }))
    return std::nullopt;

  SizeTable table = tabulate_sizes(rule, left, right, {.seed = seed});
  std::vector<SizeRow> rows = std::move(table.rows);
  auto append = [&rows](const std::vector<SizeRow>& more) { rows.insert(rows.end(), more.begin(), more.end()); };
  append(probes);
  append(sample_sizes(rule, left, right, 1, std::max<int64_t>(6, 2 * largest_modulus + 1), kLargerRows, seed + 1));
  if (!table.is_exhaustive) append(neighbours(rule, left, right, rows, symbols));
  append(wrong);
  const std::set<AtomId> small = pinned_symbols(rows, symbols, extents);
  if (!is_telling(rows, symbols, extents, small)) return std::nullopt;
  if (telling) *telling = true;

  std::set<AtomId> divisors;
  for (AtomId s : symbols)
    if (std::all_of(rows.begin(), rows.end(), [s](const SizeRow& r) { return r.sizes.at(s) >= 1; })) divisors.insert(s);
  std::vector<Requirement> requirements = right.requirements;
  requirements.insert(requirements.end(), left.requirements.begin(), left.requirements.end());
  const auto atoms =
      condition_atoms(relevant_symbols(rows, symbols), divisors, inner_extents(rule), requirements, moduli);
  const auto emptiness = emptiness_atoms(rule, left, right);
  if (auto exact = find_condition(rows, atoms, emptiness)) return exact;
  auto sufficient = find_sufficient_condition(rows, atoms, emptiness);
  if (!sufficient) return std::nullopt;
  for (SizeRow& row : rows) row.holds = row.holds && evaluate(sufficient->clauses, row.sizes) == true;
  return is_telling(rows, symbols, extents, small) ? sufficient : std::nullopt;
}

}  // namespace gopt::verifier
