// Proves batches of candidates on several threads of several ranks, and keeps what was found in a folder, so that a run
// that was stopped goes on where it was. A verdict depends on its rule alone.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "gopt/ranks.h"
#include "hold.h"
#include "prove.h"
#include "verdict_line.h"

namespace gopt::cli {

class Prover {
 public:
  // `progress` is called with a line now and then.
  Prover(Ranks& ranks, int threads, std::function<void(const std::string&)> progress)
      : ranks_(ranks), threads_(threads), progress_(std::move(progress)) {}

  // Takes up what was found before under today's definitions, and adds to it from here on. The folder is rank 0's.
  // What is no verdict in it is left out, with a note; errors: it cannot be written.
  Status keep_in(const std::string& folder);
  void hold_at(const Hold& hold) { hold_ = hold; }  // after so many verdicts of this run

  // Which candidates are proved; these get their condition, marks and proof.
  std::vector<bool> prove(std::vector<RewriteRule>& rules);

  const VerdictCounts& counts() const { return counts_; }
  double seconds() const { return seconds_; }
  // What was not proved, with reasons.
  const nlohmann::json& rejected() const { return rejected_; }

 private:
  Result<std::string> open_file(const std::string& folder);
  void take_up(KnownVerdict known);
  void save(const std::string& line) const;
  void show(size_t done, size_t of, double seconds) const;

  Ranks& ranks_;
  int threads_;
  Hold hold_;
  size_t decided_ = 0;  // in this run
  std::function<void(const std::string&)> progress_;
  std::string file_;
  std::map<std::string, KnownVerdict> known_;  // by the candidate's content
  VerdictCounts counts_;
  double seconds_ = 0;
  nlohmann::json rejected_ = nlohmann::json::array();
};

}  // namespace gopt::cli
