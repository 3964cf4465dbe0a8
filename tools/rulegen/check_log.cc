#include <fmt/format.h>

#include <memory>

#include "commands.h"
#include "gopt/proof_check.h"
#include "obligations.h"
#include "progress.h"
#include "rule_input.h"

namespace gopt::cli {
namespace {

struct CheckLogOptions {
  std::vector<std::string> files;
  std::string smt2;
  unsigned cross_check_rlimit = kCrossCheckRlimit;
  bool cross_check = false, verbose = false;
};

struct Totals {
  int accepted = 0, rejected = 0, by_algebra = 0, by_evaluation = 0;
  size_t obligations = 0;
  CrossCheck cross_check;
};

Status check_file(const std::string& path, const CheckLogOptions& o, Progress& progress, Totals& totals) {
  GOPT_ASSIGN_OR_RETURN(const std::string text, read_text(path));
  auto report = check_proof_log(text).with_context(path);
  if (!report) return report.error();
  (report->faults.empty() ? totals.accepted : totals.rejected)++;
  totals.by_algebra += report->by_algebra;
  totals.by_evaluation += report->by_evaluation;
  totals.obligations += report->obligations.size();
  if (!report->faults.empty() || o.verbose) progress.clear();
  for (const std::string& fault : report->faults) fmt::print("{}: {}: rejected: {}\n", path, report->rule, fault);
  if (report->faults.empty() && o.verbose)
    fmt::print("{}: {}: accepted: {} steps by algebra, {} by evaluation, {} obligations\n", path, report->rule,
               report->by_algebra, report->by_evaluation, report->obligations.size());
  std::vector<Obligation> obligations;
  for (const LoggedObligation& l : report->obligations) obligations.push_back({l.what, l.smtlib});
  if (!o.smt2.empty()) GOPT_RETURN_IF_ERROR(write_obligations(o.smt2, report->rule, obligations));
  if (!o.cross_check) return Unit{};
  auto checked = cross_check(report->rule, obligations, o.cross_check_rlimit);
  if (!checked) return checked.error();
  totals.cross_check.add(*checked);
  return Unit{};
}

Result<int> check_logs(const CheckLogOptions& o) {
  if (o.cross_check) GOPT_RETURN_IF_ERROR(check_cvc5());
  Totals totals;
  Progress progress(o.files.size());
  for (const std::string& path : o.files) {
    GOPT_RETURN_IF_ERROR(check_file(path, o, progress, totals));
    progress.step(path);
  }
  progress.clear();
  fmt::print("{} logs accepted, {} rejected: {} steps by algebra, {} by evaluation, {} obligations\n", totals.accepted,
             totals.rejected, totals.by_algebra, totals.by_evaluation, totals.obligations);
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
  app.add_option("files", o->files, "logs that verify --log wrote")->required();
  app.add_flag("--verbose", o->verbose, "a line for each log that is accepted, too");
  app.add_option("--smt2", o->smt2, "write the obligations that the steps rest on to DIR, as the checker says them");
  app.add_flag("--cross-check", o->cross_check, "ask cvc5 about these obligations");
  app.add_option("--cross-check-rlimit", o->cross_check_rlimit, "cvc5's resource units for one obligation")
      ->capture_default_str();
  return [o] { return check_logs(*o); };
}

}  // namespace gopt::cli
