// rulegen correct: rules that hold on a part of the output become ordinary ones, which compute the rest as before.
#include <fmt/format.h>

#include <memory>

#include "commands.h"
#include "gopt/parallel.h"
#include "gopt/turned_rule.h"
#include "gopt/verifier.h"
#include "rule_input.h"
#include "write_file.h"

namespace gopt::cli {
namespace {

struct CorrectOptions {
  std::vector<std::string> files;
  std::string out;
  int threads = 1;
  bool both_ways = false;
  bool force = false;
};

void add_turned(std::vector<RewriteRule>& rules) {
  const size_t count = rules.size();
  for (size_t i = 0; i < count; i++)
    if (auto other = turned_round(rules[i])) rules.push_back(*std::move(other));
}

Result<int> run(const CorrectOptions& o) {
  GOPT_RETURN_IF_ERROR(check_distinct({o.out}, o.files));
  GOPT_RETURN_IF_ERROR(check_writable(o.out, o.force));
  std::vector<RewriteRule> rules;
  size_t malformed = 0;
  for (const std::string& path : o.files) {
    GOPT_ASSIGN_OR_RETURN(std::vector<RewriteRule> own, read_good_rules(path, RuleFormat::Rules, malformed));
    std::move(own.begin(), own.end(), std::back_inserter(rules));
  }
  if (o.both_ways) add_turned(rules);
  std::vector<Result<FullRule>> found(rules.size(), Error{});
  parallel_for(o.threads, rules.size(), [&](int, size_t i) { found[i] = prove_full(rules[i]); });
  std::vector<RewriteRule> kept;
  size_t whole = 0;
  for (size_t i = 0; i < rules.size(); i++) {
    if (!found[i]) {
      fmt::print("{:<46} left out: {}\n", rules[i].name, found[i].error().message);
      continue;
    }
    whole += found[i]->is_whole;
    kept.push_back((*std::move(found[i])).rule);
  }
  GOPT_RETURN_IF_ERROR(write_text(o.out, print_rules(kept), o.force));
  const size_t left_out = rules.size() - kept.size();
  fmt::print("{} of {} rules are corrected and proved{}{}: {}\n", kept.size() - whole, rules.size(),
             whole ? fmt::format(", {} hold as they stand", whole) : "",
             left_out ? fmt::format(", {} left out", left_out) : "", o.out);
  return malformed > 0 ? 1 : 0;  // to be left out is no error: for most rules that may be partial no region is found
}

}  // namespace

Command add_correct(CLI::App& app) {
  auto o = std::make_shared<CorrectOptions>();
  app.add_option("files", o->files, "rules that hold on a part of the output: with regions, or to find them for")
      ->required();
  app.add_option("-o,--out", o->out, "write the full rules, each with its proof, to FILE.rules")->required();
  app.add_option("--threads", o->threads, "threads; the rules do not depend on them")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_flag("--both-ways", o->both_ways,
               "each also from its right side to its left, where that binds all that is needed and does not only add "
               "operators");
  app.add_flag("--force", o->force, "overwrite existing files");
  return [o] { return run(*o); };
}

}  // namespace gopt::cli
