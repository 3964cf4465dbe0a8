// Proves batches of candidates on several threads, and keeps what was found in a folder, so that a run that was stopped
// goes on where it was. A verdict depends on its rule alone.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "prove.h"

namespace gopt::cli {

class Prover {
 public:
  // `progress` is called with a line now and then.
  Prover(int threads, std::function<void(const std::string&)> progress)
      : threads_(threads), progress_(std::move(progress)) {}

  // Takes up what was found before under today's definitions, and adds to it from here on. Errors: the folder's.
  Status keep_in(const std::string& folder);

  // Which candidates are proved; these get their condition, marks and proof.
  std::vector<bool> prove(std::vector<RewriteRule>& rules);

  const VerdictCounts& counts() const { return counts_; }
  double seconds() const { return seconds_; }
  // What was not proved, with reasons.
  const nlohmann::json& rejected() const { return rejected_; }

 private:
  // One line of the file that verdicts are kept in.
  struct Found {
    Verdict verdict = Verdict::Unknown;
    std::string reason, counterexample;
    std::optional<RewriteRule> rule;  // as proved
    double milliseconds = 0;
  };
  Found found_now(const RewriteRule& rule) const;
  void save(const std::string& hash, const Found& found);
  void show(size_t done, size_t of, double seconds) const;

  int threads_;
  std::function<void(const std::string&)> progress_;
  std::string file_;
  std::map<std::string, Found> known_;  // by the candidate's content
  VerdictCounts counts_;
  double seconds_ = 0;
  nlohmann::json rejected_ = nlohmann::json::array();
};

}  // namespace gopt::cli
