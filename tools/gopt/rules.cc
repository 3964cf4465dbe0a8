#include <fmt/format.h>

#include "commands.h"
#include "gopt/confirm_rule.h"
#include "model.h"
#include "nearly.h"
#include "rule_files.h"
#include "write_file.h"

namespace gopt::cli {
namespace {

struct RulesOptions {
  std::vector<std::string> files;
  std::string show, containing;
  NearlyOptions nearly;
};

bool uses(const RewriteRule& rule, const std::string& text) {
  if (text.empty() || rule.name.find(text) != std::string::npos || rule.origin.find(text) != std::string::npos)
    return true;
  for (const NodePtr& node : rule.left.nodes())
    if (op_info(node->op).name == text) return true;
  return to_string(rule.marks).find(text) != std::string::npos;
}

// A rule as its file has it, and what a proof that is made now says of it.
Status show_rule(const RewriteRule& rule) {
  fmt::print("{}", print_rule(rule));
  std::fflush(stdout);
  const Confirmation found = confirm_rule(rule);
  if (!found.proof)
    return Error{fmt::format("rule `{}` is not proved, although its record says so: {}", rule.name, found.why_not)};
  fmt::print("proved again: {} obligations, {}, digest {}{}\n", found.proof->obligations, found.proof->solver,
             found.proof->digest, record_differs(rule, *found.proof) ? "; its record is of another proof" : "");
  return Unit{};
}

Status list_rules(const RulesOptions& o) {
  GOPT_ASSIGN_OR_RETURN(const std::vector<std::string> files, rule_files(o.files));
  GOPT_RETURN_IF_ERROR(check_distinct({o.nearly.json}, files));
  GOPT_ASSIGN_OR_RETURN(std::vector<RewriteRule> rules, load_rule_files(files));
  if (!o.show.empty()) {
    for (const RewriteRule& rule : rules)
      if (rule.name == o.show) return show_rule(rule);
    return Error{"there is no rule " + o.show + "; `gopt rules` lists them"};
  }
  if (!o.nearly.model.empty()) {
    std::erase_if(rules, [&](const RewriteRule& rule) { return !uses(rule, o.containing); });
    return print_near_misses(rules, o.nearly);
  }
  int shown = 0;
  for (const RewriteRule& rule : rules) {
    if (!uses(rule, o.containing)) continue;
    shown++;
    fmt::print("{:<44} {}{}\n", rule.name, rule.content_hash().substr(0, 12), to_string(rule.marks));
  }
  fmt::print("{} of {} rules, proved by their records; --show NAME proves a rule again, `rulegen verify FILE` all\n",
             shown, rules.size());
  return Unit{};
}

}  // namespace

Action add_rules(CLI::App& app) {
  auto o = std::make_shared<RulesOptions>();
  app.add_option("--rules", o->files, "rules files; those that gopt ships where none is given");
  app.add_option("--show", o->show, "print one rule with its condition and proof record, and prove it again");
  app.add_option("--filter", o->containing,
                 "only rules with this in their name, origin or marks, or with this operator on the left");
  NearlyOptions& nearly = o->nearly;
  auto* model = app.add_option("--nearly", nearly.model,
                               "an ONNX file: which rules match it but for one thing, and what that is");
  app.add_option("--least", nearly.least_nodes, "with --nearly: nodes of the rule that have to be there")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->needs(model);
  app.add_option("--shape", nearly.shapes, std::string("with --nearly: ") + kShapeHelp)->needs(model);
  app.add_option("--json", nearly.json, "with --nearly: write each of them to FILE")->needs(model);
  app.add_flag("--all", nearly.lists_all, "with --nearly: print each of them")->needs(model);
  app.add_flag("--force", nearly.force, "overwrite an existing file");
  return [o] { return list_rules(*o); };
}

}  // namespace gopt::cli
