#include <fmt/format.h>

#include <memory>

#include "algebra.h"
#include "commands.h"
#include "gopt/verifier.h"
#include "rule_input.h"
#include "shipped_rules.h"

namespace gopt::cli {
namespace {

struct ShowOptions {
  std::string name, format = "rules";
  std::vector<std::string> files;
};

// The condition that is shown is the one under which the rule was proved.
void show_rule(RewriteRule rule) {
  const std::optional<ProofRecord> record = rule.proof;
  const Verification v = prove_rule(rule);
  fmt::print("rule {}{}\n{}", rule.name, rule.origin.empty() ? "" : " (" + rule.origin + ")", algebra_text(rule));
  fmt::print("{}{}", to_string(v.verdict), v.reason.empty() ? "" : ": " + v.reason);
  if (v.proof)
    fmt::print(": {} obligations, {}, digest {}, definitions {}{}", v.proof->obligations, v.proof->solver,
               v.proof->digest, v.proof->definitions, v.marks == RuleMarks{} ? "" : ", marks" + to_string(v.marks));
  fmt::print(", {:.0f} ms\n", v.milliseconds);
  if (record && !(v.proof && *v.proof == *record))
    fmt::print("the record in its file is not of this proof: {} obligations, {}, digest {}, definitions {}\n",
               record->obligations, record->solver, record->digest, record->definitions);
  if (v.counterexample) fmt::print("counterexample: {}\n", to_string(*v.counterexample));
}

Result<int> show(const ShowOptions& o) {
  std::vector<std::string> files = o.files;
  if (files.empty()) {
    GOPT_ASSIGN_OR_RETURN(files, shipped_rule_files());
  }
  const RuleFormat format = o.format == "rules" ? RuleFormat::Rules : RuleFormat::TasoJson;
  std::string looked_in;
  for (const std::string& path : files) {
    GOPT_ASSIGN_OR_RETURN(RuleFile file, read_rule_file(path, format));
    looked_in += (looked_in.empty() ? "" : ", ") + path;
    for (RewriteRule& rule : file.rules) {
      if (rule.name != o.name) continue;
      show_rule(std::move(rule));
      return 0;
    }
    for (const MalformedRule& rule : file.malformed)
      if (rule.name == o.name) return Error{rule.message};
  }
  return Error{"no rule " + o.name + " in " + looked_in};
}

}  // namespace

Command add_show(CLI::App& app) {
  auto o = std::make_shared<ShowOptions>();
  app.add_option("name", o->name, "a rule's name")->required();
  app.add_option("--rules", o->files, "the files it may be in; those that are shipped where none is given");
  app.add_option("--format", o->format, "the files' form: rules, or taso-json")
      ->check(CLI::IsMember({"rules", "taso-json"}))
      ->capture_default_str();
  return [o] { return show(*o); };
}

}  // namespace gopt::cli
