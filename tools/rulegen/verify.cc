#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "commands.h"
#include "prove.h"
#include "write_file.h"

namespace gopt::cli {
namespace {

struct VerifyCommandOptions {
  std::vector<std::string> files;
  std::string json, smt2;
  bool write = false, force = false;
};

Result<std::string> read_text(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return Error{path + " is a folder, not a rules file"};
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return Error{path + ": cannot be read"};
  return text.str();
}

nlohmann::json row(const RewriteRule& rule, const Verification& v) {
  nlohmann::json r = {{"name", rule.name},
                      {"verdict", to_string(v.verdict)},
                      {"conditions", to_string(v.condition)},
                      {"milliseconds", v.milliseconds}};
  if (!v.reason.empty()) r["reason"] = v.reason;
  if (v.counterexample) r["counterexample"] = to_string(*v.counterexample);
  if (v.proof) r["obligations"] = v.proof->obligations;
  return r;
}

Result<VerdictCounts> verify_file(const std::string& path, const VerifyCommandOptions& o, nlohmann::json& rows) {
  GOPT_ASSIGN_OR_RETURN(const std::string text, read_text(path));
  GOPT_ASSIGN_OR_RETURN(std::vector<RewriteRule> rules, parse_rules(text, path));
  VerdictCounts counts;
  Status written = Unit{};
  VerifyOptions options;
  options.keep_obligations = !o.smt2.empty();
  size_t done = 0;
  prove_rules(rules, options, [&](const RewriteRule& rule, const Verification& v) {
    counts.add(v.verdict);
    rows.push_back(row(rule, v));
    if (isatty(2)) fmt::print(stderr, "\r\033[K[{}/{}] {}", ++done, rules.size(), rule.name);
    if (v.verdict != Verdict::Proved) {
      if (isatty(2)) fmt::print(stderr, "\r\033[K");
      fmt::print("{}: {}: {}: {}{}\n", path, rule.name, to_string(v.verdict), v.reason,
                 v.counterexample ? ": " + to_string(*v.counterexample) : "");
    }
    if (!o.smt2.empty() && written.ok()) written = write_obligations(o.smt2, rule, v);
  });
  if (isatty(2)) fmt::print(stderr, "\r\033[K");
  GOPT_RETURN_IF_ERROR(written);
  fmt::print("{}: {}\n", path, counts.text());
  if (o.write) GOPT_RETURN_IF_ERROR(write_text(path, update_rules_text(text, rules), true));
  return counts;
}

Result<int> verify(const VerifyCommandOptions& o) {
  if (!o.json.empty()) GOPT_RETURN_IF_ERROR(check_writable(o.json, o.force));
  nlohmann::json rows = nlohmann::json::array();
  bool refuted = false;
  for (const std::string& path : o.files) {
    GOPT_ASSIGN_OR_RETURN(const VerdictCounts counts, verify_file(path, o, rows));
    refuted |= counts.refuted > 0;
  }
  if (!o.json.empty()) GOPT_RETURN_IF_ERROR(write_text(o.json, rows.dump(1) + "\n", o.force));
  return refuted ? 1 : 0;
}

}  // namespace

Command add_verify(CLI::App& app) {
  auto o = std::make_shared<VerifyCommandOptions>();
  app.add_option("files", o->files, "rules files; their proofs are made again from nothing")->required();
  app.add_option("--json", o->json, "write name, verdict, conditions and milliseconds of each rule to FILE");
  app.add_option("--smt2", o->smt2, "write every obligation to DIR, for other solvers");
  app.add_flag("--write", o->write, "write the rules back with their new conditions and proofs");
  app.add_flag("--force", o->force, "overwrite an existing --json file");
  return [o] { return verify(*o); };
}

}  // namespace gopt::cli
