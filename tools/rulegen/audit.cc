// The prover against evaluation: right sides are changed at random, partial rules are corrected with wrong regions, and
// whatever is proved must compute the same.
#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <thread>

#include "commands.h"
#include "gopt/clock.h"
#include "gopt/parallel.h"
#include "program.h"
#include "progress.h"
#include "prove.h"
#include "rule_input.h"

namespace gopt::cli {
namespace {

struct AuditOptions {
  std::vector<std::string> files;
  uint64_t mutants = 1000, seed = 1;
  int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  int samples = 200;
  unsigned rlimit = 1'000'000;  // what is hard to decide is rarely proved
  bool prover_alone = false;
};

// Mixes numbers into a seed (splitmix64), so that mutant k is the same whichever thread makes it.
uint64_t mixed(uint64_t seed, uint64_t number) {
  uint64_t z = seed + 0x9e3779b97f4a7c15ULL * (number + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

std::optional<RewriteRule> mutant_of(const std::vector<RewriteRule>& rules, uint64_t seed, uint64_t number) {
  constexpr uint64_t kTries = 200;
  for (uint64_t attempt = 0; attempt < kTries; attempt++) {
    const uint64_t own = mixed(mixed(seed, number), attempt);
    const RewriteRule& rule = rules[own % rules.size()];
    if (auto mutant = (rule.is_partial() ? mutate_correction : mutate_right_side)(rule, mixed(own, 1))) return mutant;
  }
  return std::nullopt;
}

// What was found of one mutant. Rules are few and changes small, so that most mutants come more than once.
struct Judgement {
  Verdict verdict = Verdict::Unknown;
  std::string difference;  // of a mutant that is proved
};

struct AuditResult {
  VerdictCounts counts;
  int not_made = 0;
  std::map<std::string, Judgement> known;  // by the mutant's text
  std::map<uint64_t, std::string> wrong;   // mutants that are proved and differ, by number
};

// A mutant that is proved is evaluated under the condition of its proof, with inputs that the proof has not seen.
Judgement judge(const AuditOptions& o, const RewriteRule& mutant, const std::string& text) {
  VerifyOptions options;
  options.rlimit = o.rlimit;
  if (o.prover_alone) options.samples = 0;
  const Verification v = verify_rule(mutant, options);
  if (v.verdict != Verdict::Proved) return {v.verdict, ""};
  RewriteRule conditional = mutant;
  conditional.condition = v.condition;
  // The seed is the mutant's own, so that what is found does not depend on who comes first.
  const auto found = find_counterexample(conditional, o.samples, mixed(o.seed, std::hash<std::string>()(text)));
  return {v.verdict, found ? print_rule(conditional) + "proved, yet " + to_string(*found) + "\n" : ""};
}

void audit_mutant(const std::vector<RewriteRule>& rules, const AuditOptions& o, uint64_t number, AuditResult& result,
                  std::mutex& mutex) {
  const auto mutant = mutant_of(rules, o.seed, number);
  const std::string text = mutant ? print_rule(*mutant) : "";
  std::unique_lock lock(mutex);
  if (!mutant) {
    result.not_made++;
    return;
  }
  auto known = result.known.find(text);
  if (known == result.known.end()) {
    lock.unlock();
    Judgement found = judge(o, *mutant, text);
    lock.lock();
    known = result.known.try_emplace(text, std::move(found)).first;
  }
  result.counts.add(known->second.verdict);
  if (!known->second.difference.empty()) result.wrong[number] = known->second.difference;
}

AuditResult audit_rules(const std::vector<RewriteRule>& rules, const AuditOptions& o) {
  AuditResult result;
  std::mutex mutex;
  Progress progress(o.mutants);
  parallel_for(o.threads, o.mutants, [&](int, size_t k) {
    audit_mutant(rules, o, k, result, mutex);
    const std::lock_guard lock(mutex);
    progress.step(result.counts.text());
  });
  return result;
}

// Rules of all files. What cannot be read is named, counted in `unread` and left out.
std::vector<RewriteRule> rules_of(const std::vector<std::string>& files, size_t& unread) {
  std::vector<RewriteRule> rules;
  for (const std::string& path : files) {
    auto read = read_good_rules(path, RuleFormat::Rules, unread);
    if (!read) {
      fmt::print(stderr, "{}\n", read.error().message);
      unread++;
      continue;
    }
    std::vector<RewriteRule> own = *std::move(read);
    for (RewriteRule& rule : own) rules.push_back(std::move(rule));
  }
  return rules;
}

Result<int> audit(const AuditOptions& o) {
  size_t unread = 0;
  const std::vector<RewriteRule> rules = rules_of(o.files, unread);
  if (rules.empty()) return Error{"there are no rules to change"};
  const auto start = std::chrono::steady_clock::now();
  const AuditResult result = audit_rules(rules, o);
  const double seconds = seconds_since(start);
  for (const auto& [number, text] : result.wrong) fmt::print("mutant {}:\n{}\n", number, text);
  const VerdictCounts& c = result.counts;
  fmt::print(
      "{} mutants ({} distinct) of {} rules, seed {}: {} refuted, {} unknown, {} proved and equal, {} proved and "
      "different\n",
      c.proved + c.refuted + c.unknown, result.known.size(), rules.size(), o.seed, c.refuted, c.unknown,
      static_cast<size_t>(c.proved) - result.wrong.size(), result.wrong.size());
  if (result.not_made > 0) fmt::print("{} mutants could not be made\n", result.not_made);
  fmt::print(stderr, "{:.1f} s, {:.0f} mutants a second on {} threads\n", seconds,
             static_cast<double>(o.mutants) / std::max(seconds, 1e-9), o.threads);
  if (unread > 0) fmt::print("{} rules or files could not be read and were left out\n", unread);
  return result.wrong.empty() && unread == 0 ? 0 : 1;
}

}  // namespace

Command add_audit(CLI::App& app) {
  auto o = std::make_shared<AuditOptions>();
  app.add_option("files", o->files, "rules files whose rules are changed")->required();
  app.add_option("--mutants", o->mutants, "how many changed rules")
      ->check(CLI::Range(1, 100'000'000))
      ->capture_default_str();
  add_seed(app, o->seed, "seed of the changes and of the inputs");
  app.add_option("--samples", o->samples, "samples by which a mutant that is proved is evaluated")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--rlimit", o->rlimit, "Z3's resource units for one question")->capture_default_str();
  app.add_option("--threads", o->threads, "worker threads; what is found does not depend on them")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_flag("--prover-alone", o->prover_alone, "do not let samples refute a mutant before the prover sees it");
  return [o] { return audit(*o); };
}

}  // namespace gopt::cli
