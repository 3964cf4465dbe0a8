#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands.h"
#include "further.h"
#include "gopt/clock.h"
#include "interruption.h"
#include "obligations.h"
#include "progress.h"
#include "prove.h"
#include "rule_input.h"
#include "write_file.h"

namespace gopt::cli {
namespace {

struct VerifyCommandOptions {
  std::vector<std::string> files;
  std::string json, smt2, log, format = "rules";
  int threads = 1;
  unsigned cross_check_rlimit = kCrossCheckRlimit;
  bool write = false, force = false, cross_check = false, partial = false, generalise = false;
  Hold hold;
};

nlohmann::json row(const RewriteRule& rule, const Verification& v) {
  nlohmann::json r = {{"name", rule.name},
                      {"verdict", to_string(v.verdict)},
                      {"conditions", condition_texts(v.condition)},
                      {"milliseconds", v.milliseconds}};
  if (!v.reason.empty()) r["reason"] = v.reason;
  if (v.counterexample) r["counterexample"] = to_string(*v.counterexample);
  if (v.proof) r["obligations"] = v.proof->obligations;
  return r;
}

nlohmann::json row(const MalformedRule& rule) {
  return {{"name", rule.name},
          {"verdict", "invalid"},
          {"conditions", nlohmann::json::array()},
          {"milliseconds", 0.0},
          {"reason", rule.message}};
}

nlohmann::json undecided_row(const RewriteRule& rule) {
  return {{"name", rule.name},
          {"verdict", to_string(Verdict::Unknown)},
          {"conditions", nlohmann::json::array()},
          {"milliseconds", 0.0},
          {"reason", "interrupted"}};
}

// What a run over several files found.
struct Findings {
  VerdictCounts counts;
  // Of all files' rules; those that are not decided yet say so.
  nlohmann::json rows = nlohmann::json::array();
  size_t decided = 0;
  std::mutex mutex;  // of the rows and of standard output, which are also written when the run is interrupted
  std::vector<double> milliseconds;
  CrossCheck cross_check;
  size_t malformed = 0;
  Status status = Unit{};  // the first error in writing or in cvc5
};

// A file with the places of its rules among the rows.
struct InputFile {
  std::optional<RuleFile> file{};  // where it could be read
  Status status = Unit{};
  std::vector<size_t> places{};
};

InputFile read_input(const std::string& path, const std::string& format, nlohmann::json& rows) {
  InputFile input;
  auto file = read_rule_file(path, format == "rules" ? RuleFormat::Rules : RuleFormat::TasoJson);
  if (!file) {
    input.status = file.error();
    return input;
  }
  input.file = *std::move(file);
  const std::vector<MalformedRule>& malformed = input.file->malformed;
  size_t next = 0;
  const auto add_malformed = [&](size_t place) {
    for (; next < malformed.size() && malformed[next].next == place; next++) rows.push_back(row(malformed[next]));
  };
  for (size_t i = 0; i < input.file->rules.size(); i++) {
    add_malformed(i);
    input.places.push_back(rows.size());
    rows.push_back(undecided_row(input.file->rules[i]));
  }
  add_malformed(input.file->rules.size());
  return input;
}

void keep_first(Status& status, Status next) {
  if (status && !next) status = std::move(next);
}

Status write_log(const std::string& folder, const std::string& rule, const std::string& log) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error{folder + " cannot be made: " + error.message()};
  return write_text(folder + "/" + rule + ".log", log, true);
}

void note(const RewriteRule& rule, const Verification& v, const VerifyCommandOptions& o, Findings& findings) {
  findings.milliseconds.push_back(v.milliseconds);
  if (!findings.status) return;
  if (!o.smt2.empty()) keep_first(findings.status, write_obligations(o.smt2, rule.name, v.obligations));
  if (!o.log.empty() && v.verdict == Verdict::Proved) keep_first(findings.status, write_log(o.log, rule.name, v.log));
  if (!o.cross_check || v.verdict != Verdict::Proved) return;
  auto checked = cross_check(rule.name, v.obligations, o.cross_check_rlimit);
  if (checked)
    findings.cross_check.add(*checked);
  else
    keep_first(findings.status, checked.error());
}

// Proves a file's rules one after another, those that are malformed at their places among them.
class FileRun {
 public:
  FileRun(InputFile& input, const VerifyCommandOptions& options, Findings& findings)
      : file_(*input.file),
        places_(input.places),
        options_(options),
        findings_(findings),
        progress_(file_.rules.size()) {}

  void prove() {
    VerifyOptions options;
    options.keep_log = !options_.log.empty();
    options.keep_obligations = !options_.smt2.empty() || options_.cross_check;
    const auto start = std::chrono::steady_clock::now();
    size_t done = 0;
    prove_on_threads(file_.rules, options, options_.threads, [&](const RewriteRule& rule, const Verification& v) {
      options_.hold.after(note_decided(rule, v, done++));
    });
    const std::lock_guard lock(findings_.mutex);
    report_malformed(done);
    progress_.clear();
    const double seconds = seconds_since(start);
    const std::string invalid = file_.malformed.empty() ? "" : fmt::format(", {} invalid", file_.malformed.size());
    fmt::print("{}: {}{} ({})\n", file_.path, counts_.text(), invalid, times_text(seconds, milliseconds_));
    findings_.counts.add(counts_);
    findings_.malformed += file_.malformed.size();
  }

 private:
  // How many rules are decided now.
  size_t note_decided(const RewriteRule& rule, const Verification& v, size_t position) {
    const std::lock_guard lock(findings_.mutex);
    report_malformed(position);
    findings_.rows[places_[position]] = row(rule, v);
    report(rule, v);
    std::fflush(stdout);
    return ++findings_.decided;
  }

  void report_malformed(size_t next) {
    for (; malformed_ < file_.malformed.size() && file_.malformed[malformed_].next == next; malformed_++) {
      progress_.clear();
      fmt::print("{}\n", file_.malformed[malformed_].message);
    }
  }

  void report(const RewriteRule& rule, const Verification& v) {
    counts_.add(v.verdict);
    milliseconds_.push_back(v.milliseconds);
    note(rule, v, options_, findings_);
    if (v.verdict != Verdict::Proved) {
      progress_.clear();
      fmt::print("{}: {}: {}: {}{}\n", file_.path, rule.name, to_string(v.verdict), v.reason,
                 v.counterexample ? ": " + to_string(*v.counterexample) : "");
      if (options_.partial && v.verdict == Verdict::Refuted)
        fmt::print("{}: {}: {}\n", file_.path, rule.name, partial_text(rule));
    }
    progress_.step(rule.name);
  }

  RuleFile& file_;
  const std::vector<size_t>& places_;
  const VerifyCommandOptions& options_;
  Findings& findings_;
  Progress progress_;
  VerdictCounts counts_;
  std::vector<double> milliseconds_;
  size_t malformed_ = 0;  // that were reported
};

Status verify_file(const std::string& path, InputFile& input, const VerifyCommandOptions& o, Findings& findings) {
  GOPT_RETURN_IF_ERROR(input.status);
  FileRun(input, o, findings).prove();
  GOPT_RETURN_IF_ERROR(findings.status);
  RuleFile& file = *input.file;
  if (!o.generalise) return o.write ? write_text(path, update_rules_text(file.text, file.rules), true) : Status(Unit{});
  const std::string forms = print_rules(generalised(file.rules));
  if (!o.write) {
    fmt::print("{}", forms);
    return Unit{};
  }
  if (!file.malformed.empty()) return Error{path + " is left as it is: it holds rules that are malformed"};
  return write_text(path, forms, true);
}

void print_cross_check(const CrossCheck& found) {
  for (const std::string& what : found.disagreed) fmt::print("cvc5 disagrees: {}\n", what);
  for (const std::string& what : found.undecided) fmt::print("cvc5 undecided: {}\n", what);
  fmt::print("{}\n", found.text());
}

Status write_rows(const VerifyCommandOptions& o, const Findings& findings) {
  return o.json.empty() ? Status(Unit{}) : write_text(o.json, findings.rows.dump(1) + "\n", o.force);
}

// What is decided is not lost with what is not.
void say_interrupted(const VerifyCommandOptions& o, Findings& findings) {
  const std::lock_guard lock(findings.mutex);
  std::fflush(stdout);
  fmt::print(stderr, "\ninterrupted: {} rules were decided{}\n", findings.decided,
             o.json.empty() ? "" : "; " + o.json + " says which");
  if (const Status status = write_rows(o, findings); !status) fmt::print(stderr, "{}\n", status.error().message);
}

// Every file, one after another; the first error.
Status verify_files(const VerifyCommandOptions& o, Findings& findings) {
  std::vector<InputFile> inputs;
  for (const std::string& path : o.files) inputs.push_back(read_input(path, o.format, findings.rows));
  const Interruption interruption([&] { say_interrupted(o, findings); });
  Status status = Unit{};  // a file that cannot be read does not keep others from being proved
  for (size_t i = 0; i < inputs.size(); i++) {
    Status own = verify_file(o.files[i], inputs[i], o, findings);
    if (!status && !own) fmt::print(stderr, "{}\n", own.error().message);
    keep_first(status, std::move(own));
  }
  return status;
}

Result<int> verify(const VerifyCommandOptions& o) {
  if (o.write && o.format != "rules") return Error{"--write is for files in this project's own form"};
  GOPT_RETURN_IF_ERROR(check_distinct({o.json}, o.files));
  if (!o.json.empty()) GOPT_RETURN_IF_ERROR(check_writable(o.json, o.force));
  if (o.cross_check) GOPT_RETURN_IF_ERROR(check_cvc5());
  Findings findings;
  const Status status = verify_files(o, findings);
  if (o.files.size() > 1) fmt::print("together: {}\n", findings.counts.text());
  if (o.cross_check) print_cross_check(findings.cross_check);
  GOPT_RETURN_IF_ERROR(write_rows(o, findings));
  GOPT_RETURN_IF_ERROR(status);
  return findings.counts.refuted > 0 || findings.malformed > 0 || !findings.cross_check.disagreed.empty() ? 1 : 0;
}

}  // namespace

Command add_verify(CLI::App& app, const Hold& hold) {
  auto o = std::make_shared<VerifyCommandOptions>();
  o->hold = hold;
  app.add_option("files", o->files, "rules files; their proofs are made again from nothing")->required();
  app.add_option("--format", o->format, "the files' form: rules, or taso-json (TASO's rules as JSON)")
      ->check(CLI::IsMember({"rules", "taso-json"}))
      ->capture_default_str();
  app.add_option("--json", o->json, "write name, verdict, conditions and milliseconds of each rule to FILE");
  app.add_option("--smt2", o->smt2, "write every obligation to DIR as RULE.K.smt2, for other solvers");
  app.add_option("--log", o->log, "write the steps of each proof to DIR as RULE.log, for check-log");
  app.add_flag("--cross-check", o->cross_check, "ask cvc5 about every obligation of the rules that are proved");
  app.add_option("--cross-check-rlimit", o->cross_check_rlimit, "cvc5's resource units for one obligation")
      ->capture_default_str();
  app.add_option("--threads", o->threads, "rules proved at the same time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_flag("--write", o->write, "write the rules back with their new conditions and proofs");
  app.add_flag("--partial", o->partial, "say of each refuted rule where its sides agree");
  app.add_flag("--generalise", o->generalise,
               "print the rules in their most general forms; with --write, the file holds these, without its comments");
  app.add_flag("--force", o->force, "overwrite an existing --json file");
  return [o] { return verify(*o); };
}

}  // namespace gopt::cli
