#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "commands.h"
#include "gopt/log_binding.h"
#include "gopt/proof_check.h"
#include "obligations.h"
#include "progress.h"
#include "rule_input.h"

namespace gopt::cli {
namespace {

struct CheckLogOptions {
  std::vector<std::string> files, rules;
  std::string smt2;
  unsigned cross_check_rlimit = kCrossCheckRlimit;
  bool cross_check = false, verbose = false;
};

// Rules of the files by name, each of which may have a log.
struct LoggedRules {
  std::map<std::string, RewriteRule> by_name;
  std::set<std::string> without_log;
};

struct Totals {
  int accepted = 0, rejected = 0, in_cases = 0, by_algebra = 0, by_evaluation = 0;
  size_t obligations = 0;
  CrossCheck cross_check;
};

Result<LoggedRules> read_rules(const std::vector<std::string>& files) {
  LoggedRules rules;
  for (const std::string& path : files) {
    GOPT_ASSIGN_OR_RETURN(RuleFile file, read_rule_file(path, RuleFormat::Rules));
    if (!file.malformed.empty()) return Error{file.malformed[0].message};
    for (RewriteRule& rule : file.rules) {
      const auto [entry, is_new] = rules.by_name.try_emplace(rule.name, rule);
      if (!is_new && print_rule(entry->second) != print_rule(rule))
        return Error{path + ": another rule is named `" + rule.name + "`"};
      rules.without_log.insert(rule.name);
    }
  }
  return rules;
}

// What the log is not: the proof of the rule that it names, and that its file is named after.
std::vector<std::string> binding_faults(const std::string& path, const std::string& text, LoggedRules& rules,
                                        Totals& totals) {
  const auto name = rule_of_log(text);
  if (!name) return {name.error().message};
  const auto rule = rules.by_name.find(*name);
  if (rule == rules.by_name.end()) return {"no rule of the files given is named `" + *name + "`"};
  if (std::filesystem::path(path).stem() != *name)
    return {"the file is named after another rule; verify --log writes " + *name + ".log"};
  const auto binding = bind_proof_log(text, rule->second);
  if (!binding) return {binding.error().message};
  if (binding->faults.empty()) rules.without_log.erase(*name);
  totals.in_cases += binding->sizes_tried > 0 ? 1 : 0;
  return binding->faults;
}

Status check_file(const std::string& path, const CheckLogOptions& o, LoggedRules& rules, Progress& progress,
                  Totals& totals) {
  GOPT_ASSIGN_OR_RETURN(const std::string text, read_text(path));
  GOPT_ASSIGN_OR_RETURN(LogReport report, check_proof_log(text).with_context(path));
  const std::vector<std::string> unbound = binding_faults(path, text, rules, totals);
  report.faults.insert(report.faults.end(), unbound.begin(), unbound.end());
  (report.faults.empty() ? totals.accepted : totals.rejected)++;
  totals.by_algebra += report.by_algebra;
  totals.by_evaluation += report.by_evaluation;
  totals.obligations += report.obligations.size();
  if (!report.faults.empty() || o.verbose) progress.clear();
  for (const std::string& fault : report.faults) fmt::print("{}: {}: rejected: {}\n", path, report.rule, fault);
  if (report.faults.empty() && o.verbose)
    fmt::print("{}: {}: accepted: {} steps by algebra, {} by evaluation, {} obligations\n", path, report.rule,
               report.by_algebra, report.by_evaluation, report.obligations.size());
  std::vector<Obligation> obligations;
  for (const LoggedObligation& l : report.obligations) obligations.push_back({l.what, l.smtlib});
  if (!o.smt2.empty()) GOPT_RETURN_IF_ERROR(write_obligations(o.smt2, report.rule, obligations));
  if (!o.cross_check) return Unit{};
  auto checked = cross_check(report.rule, obligations, o.cross_check_rlimit);
  if (!checked) return checked.error();
  totals.cross_check.add(*checked);
  return Unit{};
}

Result<int> check_logs(const CheckLogOptions& o) {
  if (o.cross_check) GOPT_RETURN_IF_ERROR(check_cvc5());
  std::vector<std::string> logs, rule_files = o.rules;
  for (const std::string& path : o.files)
    (std::filesystem::path(path).extension() == ".rules" ? rule_files : logs).push_back(path);
  if (rule_files.empty())
    return Error{"say which rules the logs are to prove: --rules FILE.rules; a log by itself proves nothing of a rule"};
  if (logs.empty()) return Error{"there is no log to be checked"};
  GOPT_ASSIGN_OR_RETURN(LoggedRules rules, read_rules(rule_files));
  Totals totals;
  Progress progress(logs.size());
  for (const std::string& path : logs) {
    GOPT_RETURN_IF_ERROR(check_file(path, o, rules, progress, totals));
    progress.step(path);
  }
  progress.clear();
  fmt::print("{} logs accepted, {} rejected: {} steps by algebra, {} by evaluation, {} obligations\n", totals.accepted,
             totals.rejected, totals.by_algebra, totals.by_evaluation, totals.obligations);
  fmt::print("{} of them prove their rule in cases of sizes; {} of {} rules have no log that proves them\n",
             totals.in_cases, rules.without_log.size(), rules.by_name.size());
  if (o.cross_check) {
    for (const std::string& what : totals.cross_check.disagreed) fmt::print("cvc5 disagrees: {}\n", what);
    for (const std::string& what : totals.cross_check.undecided) fmt::print("cvc5 undecided: {}\n", what);
    fmt::print("{}\n", totals.cross_check.text());
  }
  return totals.rejected > 0 || !totals.cross_check.disagreed.empty() ? 1 : 0;
}

}  // namespace

Command add_check_log(CLI::App& app) {
  auto o = std::make_shared<CheckLogOptions>();
  app.add_option("files", o->files, "logs that verify --log wrote, and further rules files (.rules)")->required();
  app.add_option("--rules", o->rules, "the rules file that the logs prove, with its records; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_flag("--verbose", o->verbose, "a line for each log that is accepted, too");
  app.add_option("--smt2", o->smt2, "write the obligations that the steps rest on to DIR, as the checker says them");
  app.add_flag("--cross-check", o->cross_check, "ask cvc5 about these obligations");
  app.add_option("--cross-check-rlimit", o->cross_check_rlimit, "cvc5's resource units for one obligation")
      ->capture_default_str();
  return [o] { return check_logs(*o); };
}

}  // namespace gopt::cli
