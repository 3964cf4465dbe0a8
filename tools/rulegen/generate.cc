#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "commands.h"
#include "gopt/generator.h"
#include "prove.h"
#include "write_file.h"

namespace gopt::cli {
namespace {

struct GenerateOptions {
  GeneratorLimits limits;
  std::string out, report, alphabet;
  bool force = false;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Status read_alphabet(GenerateOptions& o) {
  if (o.alphabet.empty()) return Unit{};
  std::ifstream file(o.alphabet);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return Error{o.alphabet + ": cannot be read"};
  o.limits.alphabet = text.str();
  o.limits.alphabet_name = o.alphabet;
  return Unit{};
}

// A line that is drawn over on a terminal, and left out elsewhere.
void show_progress(const std::string& line) {
  if (isatty(2)) fmt::print(stderr, "\r\033[K{}", line);
}

std::string report_json(const GenerateOptions& o, const GeneratedCandidates& found, const VerdictCounts& counts,
                        double proving, double seconds) {
  const GeneratorStats& s = found.stats;
  return nlohmann::json{{"max_ops", o.limits.max_ops},
                        {"families", o.limits.families},
                        {"seed", o.limits.seed},
                        {"candidates", s.candidates},
                        {"classes", s.classes},
                        {"equal_pairs", s.equal_pairs},
                        {"after_renaming", s.after_renaming},
                        {"after_common_subgraph", s.after_subgraph},
                        {"after_derivability", s.after_derivable},
                        {"proved", counts.proved},
                        {"refuted", counts.refuted},
                        {"unknown", counts.unknown},
                        {"rules", found.rules.size()},
                        {"proving_seconds", proving},
                        {"seconds", seconds}}
             .dump(1) +
         "\n";
}

Result<int> generate(GenerateOptions& o) {
  if (o.out.empty()) return Error{"say where the rules go: --out FILE.rules"};
  for (const std::string& path : {o.out, o.report})
    if (!path.empty()) GOPT_RETURN_IF_ERROR(check_writable(path, o.force));
  GOPT_RETURN_IF_ERROR(read_alphabet(o));
  const auto start = std::chrono::steady_clock::now();
  VerdictCounts counts;
  double proving = 0;
  auto accept = [&](RewriteRule& rule) {
    const auto begin = std::chrono::steady_clock::now();
    const Verification v = verify_rule(rule);
    proving += seconds_since(begin);
    counts.add(v.verdict);
    if (v.verdict != Verdict::Proved) return false;
    rule.condition = v.condition;
    rule.marks = v.marks;
    rule.proof = v.proof;
    return true;
  };
  GOPT_ASSIGN_OR_RETURN(GeneratedCandidates found, generate_rules(o.limits, accept, show_progress));
  show_progress("");
  const double seconds = seconds_since(start);
  std::string families;
  for (const std::string& f : o.limits.families) families += " --family " + f;
  const std::string header =
      fmt::format("# Made by: rulegen --max-ops {} --seed {}{}{}. Every rule carries its proof.\n\n", o.limits.max_ops,
                  o.limits.seed, families, o.alphabet.empty() ? "" : " --alphabet " + o.alphabet);
  GOPT_RETURN_IF_ERROR(write_text(o.out, header + print_rules(found.rules), o.force));
  if (!o.report.empty())
    GOPT_RETURN_IF_ERROR(write_text(o.report, report_json(o, found, counts, proving, seconds), o.force));
  const GeneratorStats& s = found.stats;
  fmt::print(
      "graphs considered      {:>9}\nclasses                {:>9}\nequal pairs            {:>9}\nafter renaming        "
      " {:>9}\n"
      "after common subgraph  {:>9}\nafter derivability     {:>9}\n",
      s.candidates, s.classes, s.equal_pairs, s.after_renaming, s.after_subgraph, s.after_derivable);
  fmt::print("{}\n{} rules in {}, {:.1f} s, {:.1f} of them proving\n", counts.text(), found.rules.size(), o.out,
             seconds, proving);
  return 0;
}

}  // namespace

Command add_generate(CLI::App& app) {
  auto o = std::make_shared<GenerateOptions>();
  app.add_option("--max-ops", o->limits.max_ops, "applications that depend on an activation, on each side")
      ->check(CLI::Range(1, 8))
      ->capture_default_str();
  app.add_option("--out", o->out, "write the proved rules to FILE.rules");
  app.add_option("--family", o->limits.families, "only these families of operators")->delimiter(',');
  app.add_option("--max-vars", o->limits.max_variables, "variables of a rule at most")
      ->check(CLI::Range(1, 8))
      ->capture_default_str();
  app.add_option("--seed", o->limits.seed, "seed of the random values")->capture_default_str();
  app.add_option("--alphabet", o->alphabet, "operators and shapes to enumerate, as text (docs/generator.md)");
  app.add_option("--report", o->report, "write the counts to FILE.json");
  app.add_flag("--force", o->force, "overwrite existing files");
  return [o] { return generate(*o); };
}

}  // namespace gopt::cli
