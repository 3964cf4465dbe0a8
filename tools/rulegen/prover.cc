#include "prover.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "gopt/definition.h"

namespace gopt::cli {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Verdict verdict_from(const std::string& text) {
  for (Verdict verdict : {Verdict::Proved, Verdict::Refuted})
    if (to_string(verdict) == text) return verdict;
  return Verdict::Unknown;
}

}  // namespace

Status Prover::keep_in(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error{folder + " cannot be made: " + error.message()};
  file_ = folder + "/verdicts-" + definitions_hash() + ".jsonl";
  std::ifstream file(file_);
  for (std::string line; std::getline(file, line);) {
    // The last line may be cut short where the run was stopped.
    const auto row = nlohmann::json::parse(line, nullptr, false);
    if (!row.is_object()) continue;
    Found found;
    found.verdict = verdict_from(row.value("verdict", ""));
    found.reason = row.value("reason", "");
    found.counterexample = row.value("counterexample", "");
    found.milliseconds = row.value("milliseconds", 0.0);
    if (found.verdict == Verdict::Proved) {
      auto rules = parse_rules(row.value("rule", ""), file_);
      if (!rules.ok() || rules->size() != 1) continue;
      found.rule = std::move(rules->front());
    }
    known_[row.value("candidate", "")] = std::move(found);
  }
  if (std::ofstream out(file_, std::ios::app); !out) return Error{file_ + " cannot be written"};
  return Unit{};
}

Prover::Found Prover::found_now(const RewriteRule& rule) const {
  RewriteRule proved = rule;
  const Verification v = prove_rule(proved);
  Found found{v.verdict, v.reason, v.counterexample ? to_string(*v.counterexample) : "", {}, v.milliseconds};
  if (v.verdict == Verdict::Proved) found.rule = std::move(proved);
  return found;
}

void Prover::save(const std::string& hash, const Found& found) {
  if (file_.empty()) return;
  std::ofstream out(file_, std::ios::app);
  out << nlohmann::json{{"candidate", hash},
                        {"verdict", to_string(found.verdict)},
                        {"reason", found.reason},
                        {"counterexample", found.counterexample},
                        {"milliseconds", found.milliseconds},
                        {"rule", found.rule ? print_rule(*found.rule) : ""}}
             .dump()
      << "\n";
}

void Prover::show(size_t done, size_t of, double seconds) const {
  progress_(fmt::format("proving {}/{}: {}; {:.0f} s left", done, of, counts_.text(),
                        seconds / static_cast<double>(done) * static_cast<double>(of - done)));
}

std::vector<bool> Prover::prove(std::vector<RewriteRule>& rules) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::string> hashes;
  std::vector<size_t> open;
  for (size_t i = 0; i < rules.size(); i++) {
    hashes.push_back(rules[i].content_hash());
    if (!known_.count(hashes.back())) open.push_back(i);
  }
  std::vector<Found> found(rules.size());
  std::atomic<size_t> next{0}, done{0};
  std::mutex saving;
  const auto work = [&](bool shows) {
    for (size_t at = next++; at < open.size(); at = next++) {
      found[open[at]] = found_now(rules[open[at]]);
      const std::lock_guard lock(saving);
      save(hashes[open[at]], found[open[at]]);
      done++;
      if (shows) show(done, open.size(), seconds_since(begin));
    }
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < std::min(threads_, static_cast<int>(open.size())); thread++)
    others.emplace_back(work, false);
  work(true);
  for (std::thread& other : others) other.join();
  std::vector<bool> answers;
  for (size_t i = 0; i < rules.size(); i++) {
    const auto known = known_.find(hashes[i]);
    const Found& own = known == known_.end() ? found[i] : known->second;
    counts_.add(own.verdict);
    answers.push_back(own.rule.has_value());
    if (own.rule) {
      const std::string name = rules[i].name, origin = rules[i].origin;
      rules[i] = *own.rule;
      rules[i].name = name;
      rules[i].origin = origin;
      continue;
    }
    rejected_.push_back({{"rule", print_rule(rules[i])},
                         {"verdict", to_string(own.verdict)},
                         {"reason", own.reason},
                         {"milliseconds", own.milliseconds},
                         {"counterexample", own.counterexample}});
  }
  seconds_ += seconds_since(begin);
  return answers;
}

}  // namespace gopt::cli
