#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <numeric>

#include "derive.h"
#include "derive_report.h"
#include "progress.h"
#include "write_file.h"

namespace gopt::cli {
namespace {

// Rules derived at the same time, whatever the number of threads: who is left to derive from depends on it.
constexpr size_t kBatch = 16;

// What makes a rule dispensable, most of all first: many applications, then few variables, then closed leading axes
// and variables that match weights alone.
std::vector<int> speciality(const RewriteRule& rule) {
  const auto applications = static_cast<int>(rule.left.nodes().size() + rule.right.nodes().size());
  int closed = 0, weights = 0;
  for (const RuleVariable& variable : rule.variables) {
    closed += variable.has_prefix ? 0 : 1;
    weights += variable.kind == VariableKind::Weight ? 1 : 0;
  }
  return {applications, -static_cast<int>(rule.variables.size()), closed, weights};
}

std::vector<size_t> by_speciality(const std::vector<RewriteRule>& rules) {
  std::vector<size_t> order(rules.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return speciality(rules[a]) > speciality(rules[b]); });
  return order;
}

struct Minimal {
  std::vector<bool> is_core;
  std::vector<Derivation> derivations;  // by rule; of shortcuts those from the core where they were found
  std::vector<size_t> shortcuts;        // in the order in which they were found: each by rules that were left then
  int passes = 0;

  // Of the core: not derived within the limits, so that they may follow.
  long limited() const {
    long count = 0;
    for (size_t rule = 0; rule < is_core.size(); rule++)
      count += is_core[rule] && derivations[rule].verdict == Derivation::Verdict::LimitReached ? 1 : 0;
    return count;
  }
};

// Whether the derivation needs nothing that was taken out since it was made.
bool still_holds(const Derivation& derivation, const std::vector<bool>& is_core) {
  return derivation.verdict == Derivation::Verdict::Follows &&
         std::all_of(derivation.used.begin(), derivation.used.end(), [&](size_t rule) { return is_core[rule]; });
}

std::vector<bool> without(std::vector<bool> rules, size_t rule) {
  rules[rule] = false;
  return rules;
}

// A first core, from the most general rule on: what does not follow from those before it.
void grow(const DerivationRules& rules, const DeriveOptions& o, const std::vector<size_t>& order, Minimal& found) {
  Progress progress(order.size());
  for (size_t first = 0; first < order.size(); first += kBatch) {
    std::vector<DerivationTask> tasks;
    for (size_t i = first; i < std::min(first + kBatch, order.size()); i++)
      tasks.push_back({&rules.rules()[order[i]], found.is_core});
    std::vector<Derivation> derived = derive_on_threads(tasks, rules, o.limits, o.threads);
    bool grown = false;
    for (size_t i = 0; i < derived.size(); i++) {
      const size_t rule = order[first + i];
      if (grown && derived[i].verdict != Derivation::Verdict::Follows)
        derived[i] = derive_rule(rules.rules()[rule], rules, found.is_core, o.limits);
      if (derived[i].verdict == Derivation::Verdict::Follows)
        found.shortcuts.push_back(rule);
      else
        found.is_core[rule] = grown = true;
      found.derivations[rule] = std::move(derived[i]);
      progress.step(rules.rules()[rule].name);
    }
  }
}

// Looks at these rules of the core in their order, batch by batch: whether they follow from its others. Whether some
// became a shortcut.
bool pass(const DerivationRules& rules, const DeriveOptions& o, const std::vector<size_t>& order, Minimal& found) {
  const size_t before = std::count(found.is_core.begin(), found.is_core.end(), true);
  Progress progress(order.size());
  for (size_t first = 0; first < order.size(); first += kBatch) {
    std::vector<DerivationTask> tasks;
    for (size_t i = first; i < std::min(first + kBatch, order.size()); i++)
      tasks.push_back({&rules.rules()[order[i]], without(found.is_core, order[i])});
    std::vector<Derivation> derived = derive_on_threads(tasks, rules, o.limits, o.threads);
    for (size_t i = 0; i < derived.size(); i++) {
      const size_t rule = order[first + i];
      Derivation& derivation = derived[i];
      if (derivation.verdict == Derivation::Verdict::Follows && !still_holds(derivation, found.is_core))
        derivation = derive_rule(rules.rules()[rule], rules, without(found.is_core, rule), o.limits);
      found.is_core[rule] = derivation.verdict != Derivation::Verdict::Follows;
      if (!found.is_core[rule]) found.shortcuts.push_back(rule);
      found.derivations[rule] = std::move(derivation);
      progress.step(rules.rules()[rule].name);
    }
  }
  found.passes++;
  return before != static_cast<size_t>(std::count(found.is_core.begin(), found.is_core.end(), true));
}

// From the most general to the most special, so that what is kept is general; then back, since what was kept early may
// follow from what came later. A rule that came to a limit is looked at again once others are gone.
Minimal find_minimal(const DerivationRules& rules, const DeriveOptions& o) {
  const size_t count = rules.rules().size();
  Minimal found{std::vector<bool>(count, false), std::vector<Derivation>(count), {}, 0};
  std::vector<size_t> order = by_speciality(rules.rules());
  grow(rules, o, {order.rbegin(), order.rend()}, found);
  std::erase_if(order, [&](size_t rule) { return !found.is_core[rule]; });
  while (found.passes < o.passes && pass(rules, o, order, found)) {
    std::erase_if(order, [&](size_t rule) {
      return !found.is_core[rule] || found.derivations[rule].verdict != Derivation::Verdict::LimitReached;
    });
  }
  return found;
}

// Derivations of shortcuts from the core alone, where those that were found used what became a shortcut later.
void derive_from_core(const DerivationRules& rules, const DeriveOptions& o, Minimal& found) {
  std::vector<DerivationTask> tasks;
  std::vector<size_t> wanted;
  for (size_t rule = 0; rule < found.is_core.size(); rule++) {
    if (found.is_core[rule] || still_holds(found.derivations[rule], found.is_core)) continue;
    tasks.push_back({&rules.rules()[rule], found.is_core});
    wanted.push_back(rule);
  }
  std::vector<Derivation> derived = derive_on_threads(tasks, rules, o.limits, o.threads);
  for (size_t i = 0; i < wanted.size(); i++)
    if (derived[i].verdict == Derivation::Verdict::Follows) found.derivations[wanted[i]] = std::move(derived[i]);
}

std::string shortcut_text(const RewriteRule& rule, const Derivation& derivation) {
  const std::string by = rules_text(derivation);
  return fmt::format("# follows in {} step{}{}\n{}", derivation.step_count, derivation.step_count == 1 ? "" : "s",
                     by.empty() ? "" : " by " + by, print_rule(rule));
}

Status write_parts(const DerivationRules& rules, const DeriveOptions& o, const Minimal& found) {
  std::string core = "# Made by: rulegen derive --minimal. No rule was derived from the others of this file.\n\n",
              shortcut =
                  "# Made by: rulegen derive --minimal. Each rule follows from the core and from those above it.\n\n";
  for (size_t i = 0; i < rules.rules().size(); i++)
    if (found.is_core[i]) core += print_rule(rules.rules()[i]) + "\n";
  // What was found last needs none of those found before it.
  for (size_t i = found.shortcuts.size(); i-- > 0;)
    shortcut += shortcut_text(rules.rules()[found.shortcuts[i]], found.derivations[found.shortcuts[i]]) + "\n";
  if (!o.core.empty()) GOPT_RETURN_IF_ERROR(write_text(o.core, core, o.force));
  if (!o.shortcut.empty()) GOPT_RETURN_IF_ERROR(write_text(o.shortcut, shortcut, o.force));
  return Unit{};
}

}  // namespace

Result<int> derive_minimal(const DeriveOptions& o) {
  if (!o.file.empty()) return Error{"--minimal is about the database; it takes no FILE"};
  GOPT_RETURN_IF_ERROR(check_distinct({o.json, o.core, o.shortcut}, o.rules));
  for (const std::string& path : {o.json, o.core, o.shortcut})
    if (!path.empty()) GOPT_RETURN_IF_ERROR(check_writable(path, o.force));
  GOPT_ASSIGN_OR_RETURN(std::vector<RewriteRule> database, load_equations(o.rules));
  const std::clock_t start = std::clock();
  const DerivationRules rules(std::move(database));
  Minimal found = find_minimal(rules, o);
  derive_from_core(rules, o, found);
  nlohmann::json rows = nlohmann::json::array();
  for (size_t i = 0; i < rules.rules().size(); i++) {
    const std::string& name = rules.rules()[i].name;
    if (!o.brief) {
      fmt::print("{}: {}\n{}", name, verdict_text(found.derivations[i]), derivation_text(found.derivations[i]));
    }
    if (!o.json.empty()) rows.push_back(derivation_json(name, found.derivations[i]));
  }
  const auto core = std::count(found.is_core.begin(), found.is_core.end(), true);
  fmt::print("{} rules, proved by their records: {} core ({} of them not derived within the limits), {} shortcuts\n",
             rules.rules().size(), core, found.limited(), rules.rules().size() - static_cast<size_t>(core));
  fmt::print(stderr, "{:.1f} CPU seconds\n", static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  if (!o.json.empty()) GOPT_RETURN_IF_ERROR(write_text(o.json, rows.dump(1) + "\n", o.force));
  GOPT_RETURN_IF_ERROR(write_parts(rules, o, found));
  return 0;
}

}  // namespace gopt::cli
