// What floats make of rules: every rule is proved again and run on inputs that overflow, vanish and cancel, and what
// its stanza does not say is reported.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <thread>

#include "commands.h"
#include "program.h"
#include "progress.h"
#include "prove.h"
#include "rule_input.h"
#include "shipped_rules.h"
#include "write_file.h"

namespace gopt::cli {
namespace {

struct ScanOptions {
  std::vector<std::string> files;
  uint64_t seed = 1;
  int samples = 200;
  int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  bool list = false, markdown = false, write = false;
};

struct Scan {
  size_t rules = 0, applied = 0, not_proved = 0;
  std::map<std::string_view, size_t> marked;  // by mark
  size_t unmarked = 0;                        // applied by default, although they should not be
};

// A cell of a table: as text has it, without what Markdown would read.
std::string cell(const std::string& text) {
  std::string escaped;
  for (char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

// Each mark that is not safe, with the inputs that show it; other inputs than those drawn here may have.
void print_marks(const RewriteRule& rule, const Verification& v, bool markdown) {
  for (const MarkInfo& mark : all_marks()) {
    if (mark.is_safe || !(v.marks.*(mark.flag))) continue;
    std::string shown = "stated";
    for (const MarkExample& example : v.mark_examples)
      if (example.mark == &mark) shown = to_string(example);
    if (markdown)
      fmt::print("| `{}` | {} | {} |\n", rule.name, mark.name, cell(shown));
    else
      fmt::print("{}: {}: {}\n", rule.name, mark.name, shown);
  }
}

void note(const RewriteRule& stated, const Verification& v, const ScanOptions& o, Scan& scan) {
  scan.rules++;
  if (v.verdict != Verdict::Proved) {
    scan.not_proved++;
    fmt::print("rule {} is not proved: {}\n", stated.name, v.reason);
    return;
  }
  scan.applied += may_apply(stated.marks, {}) ? 1 : 0;
  for (const MarkInfo& mark : all_marks())
    if (v.marks.*(mark.flag)) scan.marked[mark.name]++;
  if (o.list || o.markdown) print_marks(stated, v, o.markdown);
  if (!may_apply(stated.marks, {}) || may_apply(v.marks, {})) return;
  scan.unmarked++;
  for (const MarkExample& shown : v.mark_examples)
    fmt::print("rule {} is applied by default, and should not be: {}\n", stated.name, to_string(shown));
}

// Rules that lack a mark get it, and are proved again as they then stand, as anybody else will prove them.
void take_marks(std::vector<RewriteRule>& rules, const std::vector<Verification>& found) {
  for (size_t i = 0; i < rules.size(); i++) {
    if (may_apply(found[i].marks, rules[i].marks)) continue;
    rules[i].marks = rules[i].marks | found[i].marks;
    prove_rule(rules[i]);
  }
}

Result<int> scan_rules(const ScanOptions& o) {
  std::vector<std::string> files = o.files;
  if (files.empty()) {
    GOPT_ASSIGN_OR_RETURN(files, shipped_rule_files());
  }
  VerifyOptions options;
  options.seed = o.seed;
  options.mark_samples = o.samples;
  Scan scan;
  if (o.markdown) fmt::print("| rule | mark | inputs that show it |\n|---|---|---|\n");
  for (const std::string& path : files) {
    GOPT_ASSIGN_OR_RETURN(RuleFile file, read_rule_file(path, RuleFormat::Rules));
    if (!file.malformed.empty()) return Error{file.malformed.front().message};
    std::erase_if(file.rules, [](const RewriteRule& rule) { return rule.is_partial(); });
    std::vector<RewriteRule> proved = file.rules;
    size_t at = 0;
    const std::vector<Verification> found =
        prove_on_threads(proved, options, o.threads,
                         [&](const RewriteRule&, const Verification& v) { note(file.rules[at++], v, o, scan); });
    if (!o.write) continue;
    take_marks(file.rules, found);
    GOPT_RETURN_IF_ERROR(write_text(path, update_rules_text(file.text, file.rules), true));
  }
  if (o.markdown) fmt::print("\n");
  fmt::print("{} rules, {} applied by default, {} not proved\n", scan.rules, scan.applied, scan.not_proved);
  for (const MarkInfo& mark : all_marks())
    fmt::print("  {:<18} {:>6}   {}{}\n", mark.name, scan.marked[mark.name],
               mark.is_safe ? "" : "not applied unasked: ", mark.meaning);
  fmt::print("{} rules are applied by default and lose range, digits or finite values\n", scan.unmarked);
  return scan.unmarked == 0 && scan.not_proved == 0 ? 0 : 1;
}

}  // namespace

Command add_scan(CLI::App& app) {
  auto o = std::make_shared<ScanOptions>();
  app.add_option("files", o->files, "rules files; those that are shipped where none is given");
  add_seed(app, o->seed, "seed of the inputs");
  app.add_option("--samples", o->samples, "inputs drawn for each rule and type")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--threads", o->threads, "worker threads; what is found does not depend on them")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_flag("--list", o->list, "print every mark with the inputs that show it");
  app.add_flag("--write", o->write, "write marks and proofs into the files");
  app.add_flag("--markdown", o->markdown, "the same as a table");
  return [o] { return scan_rules(*o); };
}

}  // namespace gopt::cli
