#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "commands.h"
#include "gopt/generator.h"
#include "prove.h"
#include "write_file.h"

namespace gopt::cli {
namespace {

struct GenerateOptions {
  GeneratorLimits limits;
  std::string out, report, alphabet;
  bool force = false, verbose = false;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The most that the process has held.
long memory_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
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

// Proves batches of candidates, on several threads; a verdict depends on its rule alone.
class Prover {
 public:
  Prover(int threads, std::function<void(const std::string&)> progress)
      : threads_(threads), progress_(std::move(progress)) {}

  std::vector<bool> prove(std::vector<RewriteRule>& rules) {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<Verification> found(rules.size());
    std::atomic<size_t> next{0}, done{0};
    const auto work = [&](bool shows) {
      for (size_t i = next++; i < rules.size(); i = next++) {
        found[i] = verify_rule(rules[i]);
        done++;
        if (shows) show(done, rules.size(), begin);
      }
    };
    std::vector<std::thread> others;
    for (int thread = 1; thread < std::min(threads_, static_cast<int>(rules.size())); thread++)
      others.emplace_back(work, false);
    work(true);
    for (std::thread& other : others) other.join();
    std::vector<bool> answers;
    for (size_t i = 0; i < rules.size(); i++) answers.push_back(take(rules[i], found[i]));
    seconds_ += seconds_since(begin);
    return answers;
  }

  const VerdictCounts& counts() const { return counts_; }
  double seconds() const { return seconds_; }
  const nlohmann::json& rejected() const { return rejected_; }

 private:
  bool take(RewriteRule& rule, const Verification& v) {
    counts_.add(v.verdict);
    if (v.verdict != Verdict::Proved) {
      rejected_.push_back({{"rule", print_rule(rule)},
                           {"verdict", to_string(v.verdict)},
                           {"reason", v.reason},
                           {"milliseconds", v.milliseconds},
                           {"counterexample", v.counterexample ? to_string(*v.counterexample) : ""}});
      return false;
    }
    rule.condition = v.condition;
    rule.marks = v.marks;
    rule.proof = v.proof;
    return true;
  }
  void show(size_t done, size_t of, std::chrono::steady_clock::time_point begin) const {
    const double so_far = seconds_since(begin);
    progress_(fmt::format("proving {}/{}: {}; {:.0f} s left", done, of, counts_.text(),
                          so_far / static_cast<double>(done) * static_cast<double>(of - done)));
  }

  int threads_;
  std::function<void(const std::string&)> progress_;
  VerdictCounts counts_;
  double seconds_ = 0;
  nlohmann::json rejected_ = nlohmann::json::array();
};

std::string report_json(const GenerateOptions& o, const GeneratedCandidates& found, const Prover& prover,
                        double seconds) {
  const GeneratorStats& s = found.stats;
  return nlohmann::json{{"max_ops", o.limits.max_ops},
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
                        {"proved", prover.counts().proved},
                        {"refuted", prover.counts().refuted},
                        {"unknown", prover.counts().unknown},
                        {"rules", found.rules.size()},
                        {"proving_seconds", prover.seconds()},
                        {"seconds", seconds},
                        {"megabytes", memory_mb()},
                        {"rejected", prover.rejected()}}
             .dump(1) +
         "\n";
}

Result<int> generate(GenerateOptions& o) {
  if (o.out.empty()) return Error{"say where the rules go: --out FILE.rules"};
  for (const std::string& path : {o.out, o.report})
    if (!path.empty()) GOPT_RETURN_IF_ERROR(check_writable(path, o.force));
  GOPT_RETURN_IF_ERROR(read_alphabet(o));
  const auto start = std::chrono::steady_clock::now();
  Prover prover(o.limits.threads, show_progress);
  const auto stage_done = [&](const std::string& line) {
    if (o.verbose)
      fmt::print(stderr, "{:7.1f} s {:5} MB {}\n", seconds_since(start), memory_mb(), line);
    else
      show_progress(line);
  };
  GOPT_ASSIGN_OR_RETURN(
      GeneratedCandidates found,
      generate_rules(
          o.limits, [&](std::vector<RewriteRule>& rules) { return prover.prove(rules); }, stage_done));
  show_progress("");
  const double seconds = seconds_since(start);
  std::string families;
  for (const std::string& f : o.limits.families) families += " --family " + f;
  const std::string header =
      fmt::format("# Made by: rulegen --max-ops {} --seed {}{}{}. Every rule carries its proof.\n\n", o.limits.max_ops,
                  o.limits.seed, families, o.alphabet.empty() ? "" : " --alphabet " + o.alphabet);
  GOPT_RETURN_IF_ERROR(write_text(o.out, header + print_rules(found.rules), o.force));
  if (!o.report.empty()) GOPT_RETURN_IF_ERROR(write_text(o.report, report_json(o, found, prover, seconds), o.force));
  const GeneratorStats& s = found.stats;
  fmt::print(
      "graphs considered      {:>9}\nclasses                {:>9}\nequal pairs            {:>9}\nafter renaming        "
      " {:>9}\n"
      "after derivability     {:>9}\nafter common subgraph  {:>9}\ntold apart afresh      {:>9}\n",
      s.candidates, s.classes, s.equal_pairs, s.after_renaming, s.after_derivable, s.after_subgraph, s.false_pairs);
  fmt::print("{}\n{} rules in {}, {:.1f} s, {:.1f} of them proving, {} MB\n", prover.counts().text(),
             found.rules.size(), o.out, seconds, prover.seconds(), memory_mb());
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
  app.add_option("--threads", o->limits.threads, "threads; the rules do not depend on them")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--prune", o->limits.pruning, "which equal pairs to drop: none, renaming, subgraph or derivable")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Pruning>{{"none", Pruning::None},
                                                                         {"renaming", Pruning::Renaming},
                                                                         {"subgraph", Pruning::Subgraph},
                                                                         {"derivable", Pruning::Derivable}},
                                          CLI::ignore_case));
  app.add_flag("--verbose", o->verbose, "a line for each level and stage");
  app.add_option("--alphabet", o->alphabet, "operators and shapes to enumerate, as text (docs/generator.md)");
  app.add_option("--report", o->report, "write the counts to FILE.json");
  app.add_flag("--force", o->force, "overwrite existing files");
  return [o] { return generate(*o); };
}

}  // namespace gopt::cli
