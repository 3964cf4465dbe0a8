#include "prover.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "first_rank.h"
#include "gopt/clock.h"
#include "gopt/definition.h"

namespace gopt::cli {
namespace {}  // namespace

// The text of the file that verdicts are kept in, which can be added to from then on.
Result<std::string> Prover::open_file(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error{folder + " cannot be made: " + error.message()};
  file_ = folder + "/verdicts-" + definitions_hash() + ".jsonl";
  std::ostringstream text;
  text << std::ifstream(file_).rdbuf();
  std::ofstream out(file_, std::ios::app);
  if (!out) return Error{file_ + " cannot be written"};
  // Where the run was stopped while it wrote a line, the next one starts afresh.
  if (const std::string& before = text.str(); !before.empty() && before.back() != '\n') out << '\n' << std::flush;
  return text.str();
}

Status Prover::keep_in(const std::string& folder) {
  GOPT_ASSIGN_OR_RETURN(const std::string text, first_rank_says(ranks_, [&] { return open_file(folder); }));
  std::istringstream lines(text);
  size_t left_out = 0;
  for (std::string line; std::getline(lines, line);) {
    auto known = parse_verdict_line(line, file_);
    if (known)
      take_up(std::move(*known));
    else
      left_out++;
  }
  if (ranks_.rank() == 0 && left_out > 0)
    fmt::print(stderr, "{}: {} no verdict on a candidate; left out\n", file_,
               left_out == 1 ? "1 line is" : fmt::format("{} lines are", left_out));
  return Unit{};
}

void Prover::take_up(KnownVerdict known) {
  const std::string candidate = known.candidate;
  known_[candidate] = std::move(known);
}

void Prover::save(const std::string& line) const {
  if (file_.empty()) return;
  std::ofstream out(file_, std::ios::app);
  out << line + "\n" << std::flush;
  if (!out) throw std::runtime_error(file_ + " cannot be written");
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
  size_t done = 0;
  const auto lines = ranks_.share(
      open.size(), threads_, [&](size_t at) { return to_line(verdict_on(rules[open[at]])); },
      [&](size_t, const std::string& line) {
        save(line);
        hold_.after(++decided_);
        show(++done, open.size(), seconds_since(begin));
      });
  for (const std::string& line : lines) {
    auto known = parse_verdict_line(line, "verdicts");
    GOPT_CHECK(known.has_value(), "a verdict is read as it was written");
    take_up(std::move(*known));
  }
  std::vector<bool> answers;
  for (size_t i = 0; i < rules.size(); i++) {
    const KnownVerdict& own = known_.at(hashes[i]);
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
