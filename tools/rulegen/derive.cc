#include "derive.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "derive_confirm.h"
#include "derive_report.h"
#include "prove.h"
#include "rule_input.h"
#include "write_file.h"

namespace gopt::cli {
namespace {

// A rule of FILE of which nothing is derived, and why.
nlohmann::json left_out_row(const std::string& name, const std::string& why) {
  return {{"name", name}, {"verdict", "left out"}, {"reason", why}};
}

// Rules that carry no proof are proved, for the condition under which they hold; what does not hold is left out. What
// the prover does not decide may still follow: a derivation is a proof, wherever both sides are defined.
std::vector<RewriteRule> goals_of(std::vector<RewriteRule> rules, int threads, nlohmann::json& left_out) {
  std::vector<RewriteRule> unproved, goals;
  for (RewriteRule& rule : rules) (rule.proof ? goals : unproved).push_back(std::move(rule));
  prove_on_threads(unproved, {}, threads, [&](const RewriteRule& rule, const Verification& v) {
    if (v.verdict != Verdict::Refuted) {
      if (v.verdict == Verdict::Unknown) fmt::print("{}: not decided by the prover: {}\n", rule.name, v.reason);
      goals.push_back(rule);
      return;
    }
    fmt::print("{}: left out, it is {}: {}\n", rule.name, to_string(v.verdict), v.reason);
    left_out.push_back(left_out_row(rule.name, "it is " + to_string(v.verdict) + ": " + v.reason));
  });
  return goals;
}

struct Counts {
  int follow = 0, saturated = 0, limited = 0, unread = 0;
  size_t longest = 0;

  void add(const Derivation& derivation) {
    switch (derivation.verdict) {
      case Derivation::Verdict::Follows:
        follow++;
        longest = std::max(longest, derivation.step_count);
        return;
      case Derivation::Verdict::Saturated: saturated++; return;
      case Derivation::Verdict::LimitReached: limited++; return;
      case Derivation::Verdict::NotRead: unread++; return;
    }
  }
};

struct Derived {
  std::vector<Derivation> found;
  std::string rests_on;
};

// Again without the rules that turn out not to be proved, as long as something rests on one.
Derived derive_each(const std::vector<RewriteRule>& database, const std::vector<RewriteRule>& goals,
                    const DeriveOptions& o) {
  const DerivationRules rules(database);
  DerivationRulesConfirmed confirmed(rules, o.threads);
  std::vector<Derivation> found(goals.size());
  std::vector<size_t> open(goals.size());
  for (size_t i = 0; i < goals.size(); i++) open[i] = i;
  while (!open.empty()) {
    const std::vector<bool> allowed = confirmed.without_refused(std::vector<bool>(database.size(), true));
    std::vector<DerivationTask> tasks;
    for (const size_t goal : open) tasks.push_back({&goals[goal], allowed});
    std::vector<Derivation> derived = derive_on_threads(tasks, rules, o.limits, o.threads);
    confirmed.confirm_rules_of(derived);
    std::vector<size_t> again;
    for (size_t i = 0; i < open.size(); i++) {
      if (!confirmed.is_confirmed(derived[i])) again.push_back(open[i]);
      found[open[i]] = std::move(derived[i]);
    }
    open = std::move(again);
  }
  return {std::move(found), confirmed.text()};
}

// One after another: what follows may be used from there on, when it is proved as what it was derived from is: a
// derivation does not say that the right side has a value wherever the left has one.
Derived derive_learning(std::vector<RewriteRule> database, const std::vector<RewriteRule>& goals,
                        const DeriveOptions& o) {
  std::vector<bool> allowed(database.size() + goals.size());
  std::fill_n(allowed.begin(), database.size(), true);
  const size_t first = database.size();
  database.insert(database.end(), goals.begin(), goals.end());
  const DerivationRules rules(std::move(database));
  DerivationRulesConfirmed confirmed(rules, o.threads);
  std::vector<Derivation> found;
  for (size_t i = 0; i < goals.size(); i++) {
    do {
      allowed = confirmed.without_refused(std::move(allowed));
      if (found.size() > i) found.pop_back();
      found.push_back(derive_rule(goals[i], rules, allowed, o.limits));
      confirmed.confirm_rules_of({found.back()});
    } while (!confirmed.is_confirmed(found.back()));
    allowed[first + i] = found.back().verdict == Derivation::Verdict::Follows && goals[i].proof;
  }
  return {std::move(found), confirmed.text()};
}

Result<int> derive(const DeriveOptions& o) {
  if (o.minimal) return derive_minimal(o);
  if (o.file.empty()) return Error{"derive needs a FILE of rules, or --minimal"};
  std::vector<std::string> read = o.rules;
  read.push_back(o.file);
  GOPT_RETURN_IF_ERROR(check_distinct({o.json}, read));
  if (!o.json.empty()) GOPT_RETURN_IF_ERROR(check_writable(o.json, o.force));
  GOPT_ASSIGN_OR_RETURN(const std::vector<RewriteRule> database, load_equations(o.rules));
  GOPT_ASSIGN_OR_RETURN(RuleFile file,
                        read_rule_file(o.file, o.format == "rules" ? RuleFormat::Rules : RuleFormat::TasoJson));
  nlohmann::json left_out = nlohmann::json::array();
  for (const MalformedRule& rule : file.malformed) {
    fmt::print("{}\n", rule.message);
    left_out.push_back(left_out_row(rule.name, "it is malformed: " + rule.message));
  }
  const std::vector<RewriteRule> goals = goals_of(std::move(file.rules), o.threads, left_out);
  const std::clock_t start = std::clock();
  const Derived derived = o.learn ? derive_learning(database, goals, o) : derive_each(database, goals, o);
  const std::vector<Derivation>& found = derived.found;
  Counts counts;
  nlohmann::json rows = nlohmann::json::array();
  for (size_t i = 0; i < goals.size(); i++) {
    counts.add(found[i]);
    fmt::print("{}: {}\n", goals[i].name, verdict_text(found[i]));
    if (!o.brief) fmt::print("{}", derivation_text(found[i]));
    if (!o.json.empty()) rows.push_back(derivation_json(goals[i].name, found[i]));
  }
  fmt::print("{} rules by {}: {} follow (at most {} steps), {} do not (saturated), {} not derived within the limits",
             goals.size(), database.size(), counts.follow, counts.longest, counts.saturated, counts.limited);
  fmt::print("{}\n", counts.unread ? fmt::format(", {} cannot be read", counts.unread) : "");
  fmt::print("{}\n", derived.rests_on);
  fmt::print(stderr, "{:.1f} CPU seconds\n", static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  rows.insert(rows.end(), left_out.begin(), left_out.end());
  if (!o.json.empty()) GOPT_RETURN_IF_ERROR(write_text(o.json, rows.dump(1) + "\n", o.force));
  return file.malformed.empty() ? 0 : 1;
}

void add_limits(CLI::App& app, DerivationLimits& limits) {
  app.add_option("--iterations", limits.iterations, "rounds of matching and joining")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--nodes", limits.nodes, "applications in the e-graph")
      ->check(CLI::Range(10, 10'000'000))
      ->capture_default_str();
  app.add_option("--matches", limits.matches, "of one rule in a round; one that has more rests for some rounds")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--joined-iterations", limits.joined_iterations, "rounds with rules of several roots")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  app.add_option("--steps", limits.steps, "steps of the longest derivation that is written out")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str();
}

void add_kinds(CLI::App& app, DeriveOptions& o) {
  auto* any = app.add_flag("--any-kind", o.limits.any_kind,
                           "weight variables of the database match activations too: a kind says where a rule pays, not "
                           "where it holds; so for taso-json, which knows no kinds");
  app.add_flag("--respect-kinds", o.respect_kinds, "weight variables match weights alone, for taso-json too")
      ->excludes(any);
}

// How many files stand before the first --rules. (An option that took all the words after it would take FILE too.)
size_t words_before(const CLI::App& app, const CLI::Option* file, const CLI::Option* database) {
  size_t count = 0;
  for (const CLI::Option* next : app.parse_order()) {
    if (next == database) break;
    if (next == file) count++;
  }
  return count;
}

// Which of the files that are no option's value is FILE; the others are the database's.
Status share_out(std::vector<std::string> files, size_t before, DeriveOptions& o) {
  if (before > 1)
    return Error{
        fmt::format("derive takes one FILE, not {} and {}; the database's files go after --rules", files[0], files[1])};
  if (before == 1 || (!o.minimal && !files.empty())) {
    const auto own = before == 1 ? files.begin() : files.end() - 1;
    o.file = *own;
    files.erase(own);
  }
  o.rules.insert(o.rules.end(), files.begin(), files.end());
  return Unit{};
}

}  // namespace

Command add_derive(CLI::App& app) {
  auto o = std::make_shared<DeriveOptions>();
  auto files = std::make_shared<std::vector<std::string>>();
  auto* file = app.add_option("file", *files,
                              "rules to be derived, before --rules or after all of its files; those without a proof "
                              "are proved first")
                   ->type_name("FILE");
  auto* database =
      app.add_option("--rules", o->rules, "rules files of the database, of which proved rules count; may be repeated")
          ->required()
          ->type_name("DB")
          ->allow_extra_args(false);
  app.add_option("--format", o->format, "FILE's form: rules, or taso-json (TASO's rules as JSON)")
      ->check(CLI::IsMember({"rules", "taso-json"}))
      ->capture_default_str();
  app.add_option("--json", o->json, "write verdicts and derivations to FILE");
  app.add_flag("--minimal", o->minimal, "instead: which rules of the database follow from its others");
  app.add_option("--core", o->core, "with --minimal: write the rules that do not to FILE");
  app.add_option("--shortcut", o->shortcut, "with --minimal: write those that do to FILE, each with its derivation");
  app.add_option("--passes", o->passes, "with --minimal: rounds over the core, while rules drop out")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  app.add_option("--threads", o->threads, "rules derived at the same time; the answers do not depend on it")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_flag("--learn", o->learn, "a rule of FILE that follows may be used for those after it; on one thread");
  app.add_flag("--brief", o->brief, "verdicts without derivations");
  app.add_flag("--force", o->force, "overwrite existing files");
  add_limits(app, o->limits);
  add_kinds(app, *o);
  return [o, files, file, database, &app]() -> Result<int> {
    GOPT_RETURN_IF_ERROR(share_out(*files, words_before(app, file, database), *o));
    if (o->format == "taso-json" && !o->respect_kinds) o->limits.any_kind = true;
    return derive(*o);
  };
}

}  // namespace gopt::cli
