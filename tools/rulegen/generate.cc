#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <sstream>

#include "commands.h"
#include "first_rank.h"
#include "gopt/clock.h"
#include "gopt/generator.h"
#include "partial.h"
#include "program.h"
#include "prover.h"
#include "write_file.h"

namespace gopt::cli {
namespace {

struct GenerateOptions {
  GeneratorLimits limits;
  std::string out, partial, report, alphabet, checkpoint;
  bool unproved = false, force = false, verbose = false;
  Hold hold;
};

// The most that the process has held.
long memory_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

// Rank 0 has the files: whether they can be written, and the alphabet's text (empty: the built-in one).
Status prepare_files(GenerateOptions& o, Ranks& ranks) {
  const auto prepare = [&]() -> Result<std::string> {
    GOPT_RETURN_IF_ERROR(check_distinct({o.out, o.partial, o.report}, {o.alphabet}));
    for (const std::string& path : {o.out, o.partial, o.report})
      if (!path.empty()) GOPT_RETURN_IF_ERROR(check_writable(path, o.force));
    if (o.alphabet.empty()) return std::string();
    std::ifstream file(o.alphabet);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) return Error{o.alphabet + ": cannot be read"};
    std::string alphabet = text.str();
    if (alphabet.empty()) return Error{o.alphabet + ": the alphabet has no family; begin one: family NAME"};
    return alphabet;
  };
  GOPT_ASSIGN_OR_RETURN(o.limits.alphabet, first_rank_says(ranks, prepare));
  o.limits.alphabet_name = o.alphabet;
  return Unit{};
}

// A line that is drawn over on a terminal, and left out elsewhere.
void show_progress(const std::string& line) {
  if (isatty(2)) fmt::print(stderr, "\r\033[K{}", line);
}

// Every verdict is in the checkpoint as soon as it is known, so that nothing is left to write. Other ranks than the
// first end silently: their standard error leads nowhere.
void say_interrupted(int signal) {
  constexpr char kText[] = "\ninterrupted: the same command goes on from the checkpoint\n";
  if (write(2, kText, sizeof kText - 1) < 0) _exit(1);
  _exit(128 + signal);
}

struct Run {
  GeneratedCandidates found;
  VerdictCounts counts;
  PartialRules partial;
  nlohmann::json rejected;
  double proving = 0, seconds = 0;
  long megabytes = 0;
};

Result<Run> run_generator(const GenerateOptions& o) {
  const auto start = std::chrono::steady_clock::now();
  Prover prover(*o.limits.ranks, o.limits.threads, show_progress);
  prover.hold_at(o.hold);
  if (!o.checkpoint.empty()) {
    GOPT_RETURN_IF_ERROR(prover.keep_in(o.checkpoint));
    for (int ending : {SIGINT, SIGTERM}) signal(ending, say_interrupted);
  }
  const auto progress = [&](const GeneratorProgress& at) {
    const std::string text =
        fmt::format("{:.1f} s, {} MB, {}; {}", seconds_since(start), memory_mb(), at.line, prover.counts().text());
    if (o.verbose && at.is_stage_done)
      fmt::print(stderr, "{}{}\n", isatty(2) ? "\r\033[K" : "", text);
    else
      show_progress(text);
  };
  Run run;
  const auto accept = [&](std::vector<RewriteRule>& rules) {
    return o.unproved ? std::vector<bool>(rules.size(), true) : prover.prove(rules);
  };
  GOPT_ASSIGN_OR_RETURN(run.found, generate_rules(o.limits, accept, progress));
  show_progress("");
  run.counts = prover.counts();
  run.rejected = prover.rejected();
  run.proving = prover.seconds();
  run.seconds = seconds_since(start);
  run.megabytes = memory_mb();
  return run;
}

nlohmann::json report_of(const GenerateOptions& o, const Run& run) {
  const GeneratorStats& s = run.found.stats;
  auto without_region = nlohmann::json::array();
  for (const auto& [name, reason] : run.partial.rejected)
    without_region.push_back({{"rule", name}, {"reason", reason}});
  return {{"max_ops", o.limits.max_ops},
          {"families", o.limits.families},
          {"seed", o.limits.seed},
          {"candidates", s.candidates},
          {"classes", s.classes},
          {"equal_pairs", s.equal_pairs},
          {"after_renaming", s.after_renaming},
          {"after_derivability", s.after_derivable},
          {"after_common_subgraph", s.after_subgraph},
          {"told_apart_afresh", s.false_pairs},
          {"offered", s.offered},
          {"proved", run.counts.proved},
          {"refuted", run.counts.refuted},
          {"unknown", run.counts.unknown},
          {"rules", run.found.rules.size()},
          {"proving_seconds", run.proving},
          {"seconds", run.seconds},
          {"megabytes", run.megabytes},
          {"partial_candidates", run.found.partial.size()},
          {"partial_rules", run.partial.rules.size()},
          {"without_region", without_region},
          {"rejected", run.rejected}};
}

// The funnel, a column a run.
void print_funnel(const std::vector<Run>& runs) {
  const auto row = [&](const char* name, auto value) {
    fmt::print("{:<22}", name);
    for (const Run& run : runs) fmt::print(" {:>11}", value(run));
    fmt::print("\n");
  };
  row("graphs considered", [](const Run& r) { return r.found.stats.candidates; });
  row("classes", [](const Run& r) { return r.found.stats.classes; });
  row("equal pairs", [](const Run& r) { return r.found.stats.equal_pairs; });
  row("after renaming", [](const Run& r) { return r.found.stats.after_renaming; });
  row("after derivability", [](const Run& r) { return r.found.stats.after_derivable; });
  row("after common subgraph", [](const Run& r) { return r.found.stats.after_subgraph; });
  row("told apart afresh", [](const Run& r) { return r.found.stats.false_pairs; });
  row("candidate rules", [](const Run& r) { return r.found.stats.offered; });
  row("proved", [](const Run& r) { return r.counts.proved; });
  row("refuted", [](const Run& r) { return r.counts.refuted; });
  row("unknown", [](const Run& r) { return r.counts.unknown; });
  row("seconds", [](const Run& r) { return fmt::format("{:.1f}", r.seconds); });
  row("of them proving", [](const Run& r) { return fmt::format("{:.1f}", r.proving); });
  row("megabytes", [](const Run& r) { return r.megabytes; });
}

Result<int> generate(GenerateOptions& o, Ranks& ranks) {
  if (o.out.empty()) return Error{"say where the rules go: --out FILE.rules"};
  GOPT_RETURN_IF_ERROR(prepare_files(o, ranks));
  std::vector<Run> runs(1);
  GOPT_ASSIGN_OR_RETURN(runs[0], run_generator(o));
  if (ranks.rank() > 0) return 0;
  if (!o.partial.empty()) runs[0].partial = prove_partial_rules(runs[0].found.partial, o.limits.threads, show_progress);
  show_progress("");
  std::string families;
  for (const std::string& f : o.limits.families) families += " --family " + f;
  const std::string header = fmt::format("# Made by: rulegen --max-ops {} --seed {}{}{}. {}\n\n", o.limits.max_ops,
                                         o.limits.seed, families, o.alphabet.empty() ? "" : " --alphabet " + o.alphabet,
                                         o.unproved ? "Nothing here is proved." : "Every rule carries its proof.");
  GOPT_RETURN_IF_ERROR(write_text(o.out, header + print_rules(runs[0].found.rules), o.force));
  if (!o.partial.empty())
    GOPT_RETURN_IF_ERROR(write_text(o.partial, header + print_rules(runs[0].partial.rules), o.force));
  if (!o.report.empty()) GOPT_RETURN_IF_ERROR(write_text(o.report, report_of(o, runs[0]).dump(1) + "\n", o.force));
  print_funnel(runs);
  if (!o.partial.empty())
    fmt::print("{} of {} pairs that agree in part have a proved region: {}\n", runs[0].partial.rules.size(),
               runs[0].found.partial.size(), o.partial);
  fmt::print("{} rules in {}\n", runs[0].found.rules.size(), o.out);
  return 0;
}

// The funnel for 1 to max-ops applications.
Result<int> stats(GenerateOptions& o, Ranks& ranks) {
  GOPT_RETURN_IF_ERROR(prepare_files(o, ranks));
  std::vector<Run> runs;
  nlohmann::json reports = nlohmann::json::array();
  for (int max_ops = 1, last = o.limits.max_ops; max_ops <= last; max_ops++) {
    o.limits.max_ops = max_ops;
    GOPT_ASSIGN_OR_RETURN(Run run, run_generator(o));
    reports.push_back(report_of(o, run));
    runs.push_back(std::move(run));
  }
  if (ranks.rank() > 0) return 0;
  fmt::print("{:<22}", "max-ops");
  for (size_t i = 0; i < runs.size(); i++) fmt::print(" {:>11}", i + 1);
  fmt::print("\n");
  print_funnel(runs);
  if (!o.report.empty()) GOPT_RETURN_IF_ERROR(write_text(o.report, reports.dump(1) + "\n", o.force));
  return 0;
}

void add_limits(CLI::App& app, GenerateOptions& o) {
  app.add_option("--max-ops", o.limits.max_ops, "applications that depend on an activation, on each side")
      ->check(CLI::Range(1, 8))
      ->capture_default_str();
  app.add_option("--family", o.limits.families, "only these families of operators")->delimiter(',');
  app.add_option("--max-vars", o.limits.max_variables, "variables of a rule at most")
      ->check(CLI::Range(1, 8))
      ->capture_default_str();
  add_seed(app, o.limits.seed, "seed of the random values");
  app.add_option("--threads", o.limits.threads, "threads of each process; the rules do not depend on them")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--prune", o.limits.pruning, "which equal pairs to drop: none, renaming, subgraph or derivable")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Pruning>{{"none", Pruning::None},
                                                                         {"renaming", Pruning::Renaming},
                                                                         {"subgraph", Pruning::Subgraph},
                                                                         {"derivable", Pruning::Derivable}},
                                          CLI::ignore_case));
  app.add_flag("--unproved", o.unproved, "take candidates for rules, and prove none: for audits and timing");
  app.add_option("--alphabet", o.alphabet, "operators and shapes to enumerate, as text (docs/generator.md)");
  app.add_option("--report", o.report, "write the counts, and what is not proved, to FILE.json");
  app.add_option("--checkpoint", o.checkpoint, "keep verdicts in DIR: a command that was stopped goes on from there");
  app.add_flag("--verbose", o.verbose, "a line for each level and stage");
  app.add_flag("--force", o.force, "overwrite existing files");
}

// What a rank cannot go on with ends all of them.
Result<int> on_all(Ranks& ranks, const std::function<Result<int>()>& command) {
  try {
    return command();
  } catch (const std::exception& e) {
    ranks.fail(e.what());
    throw;
  }
}

}  // namespace

Command add_generate(CLI::App& app, Ranks& ranks, const Hold& hold) {
  auto o = std::make_shared<GenerateOptions>(), counted = std::make_shared<GenerateOptions>();
  app.add_option("--out", o->out, "write the proved rules to FILE.rules");
  app.add_option("--partial", o->partial,
                 "write what is proved equal on a part of the output, each with its region, to FILE.rules");
  add_limits(app, *o);
  CLI::App* stats_app = app.add_subcommand("stats", "print how many pairs each stage leaves, for 1 to --max-ops");
  add_limits(*stats_app, *counted);
  o->limits.ranks = counted->limits.ranks = &ranks;
  o->hold = counted->hold = hold;
  return [o, counted, stats_app, &ranks] {
    return on_all(ranks, [&] { return stats_app->parsed() ? stats(*counted, ranks) : generate(*o, ranks); });
  };
}

}  // namespace gopt::cli
