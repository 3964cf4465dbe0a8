#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <sstream>

#include "commands.h"
#include "gopt/verifier.h"

namespace gopt::cli {
namespace {

struct ShowOptions {
  std::string name, file;
};

Result<int> show(const ShowOptions& o) {
  std::ifstream file(o.file);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return Error{o.file + ": cannot be read"};
  GOPT_ASSIGN_OR_RETURN(std::vector<RewriteRule> rules, parse_rules(text.str(), o.file));
  for (const RewriteRule& rule : rules) {
    if (rule.name != o.name) continue;
    fmt::print("{}", print_rule(rule));
    const Verification v = verify_rule(rule);
    fmt::print("\n{}{}\n", to_string(v.verdict), v.reason.empty() ? "" : ": " + v.reason);
    if (v.verdict == Verdict::Proved)
      fmt::print("condition: {}\n{} obligations, {}, {:.0f} ms\n", to_string(v.condition), v.proof->obligations,
                 v.proof->solver, v.milliseconds);
    if (v.counterexample) fmt::print("counterexample: {}\n", to_string(*v.counterexample));
    return 0;
  }
  return Error{o.file + " has no rule " + o.name};
}

}  // namespace

Command add_show(CLI::App& app) {
  auto o = std::make_shared<ShowOptions>();
  app.add_option("name", o->name, "a rule's name")->required();
  app.add_option("--rules", o->file, "the file it is in")->required();
  return [o] { return show(*o); };
}

}  // namespace gopt::cli
