#include "obligations.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "gopt/temporary.h"
#include "write_file.h"

namespace gopt::cli {
namespace {

std::string on_one_line(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\r') c = ' ';
  return text;
}

// The query with a comment that says what it is about, and what a solver should answer.
std::string script_of(const std::string& rule, const Obligation& obligation) {
  const std::string::size_type logic_end = obligation.smtlib.find('\n') + 1;
  const std::string status =
      obligation.smtlib.find("(set-info :status") == std::string::npos ? "(set-info :status unsat)\n" : "";
  return "; rule " + on_one_line(rule) + ": " + on_one_line(obligation.what) + "\n" +
         obligation.smtlib.substr(0, logic_end) + status + obligation.smtlib.substr(logic_end);
}

struct Answer {
  int status = -1;
  std::string text;
};
Answer run_command(const std::string& command) {
  Answer answer;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return answer;
  std::array<char, 4096> buffer;
  for (size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) answer.text.append(buffer.data(), n);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) answer.status = WEXITSTATUS(status);
  return answer;
}

}  // namespace

Status write_obligations(const std::string& folder, const std::string& rule,
                         const std::vector<Obligation>& obligations) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error{folder + " cannot be made: " + error.message()};
  int number = 0;
  for (const Obligation& o : obligations)
    GOPT_RETURN_IF_ERROR(write_text(fmt::format("{}/{}.{}.smt2", folder, rule, number++), script_of(rule, o), true));
  return Unit{};
}

void CrossCheck::add(const CrossCheck& other) {
  agreed += other.agreed;
  undecided.insert(undecided.end(), other.undecided.begin(), other.undecided.end());
  disagreed.insert(disagreed.end(), other.disagreed.begin(), other.disagreed.end());
}
std::string CrossCheck::text() const {
  return fmt::format("cvc5 agrees on {} of {} obligations, {} undecided within its limit, {} disagree", agreed,
                     static_cast<size_t>(agreed) + undecided.size() + disagreed.size(), undecided.size(),
                     disagreed.size());
}

Status check_cvc5() {
  if (run_command("cvc5 --version 2>/dev/null").status == 0) return Unit{};
  return Error{"--cross-check needs cvc5 on the PATH (Debian's package cvc5), and it is not there"};
}

Result<CrossCheck> cross_check(const std::string& rule, const std::vector<Obligation>& obligations, unsigned rlimit) {
  CrossCheck result;
  if (obligations.empty()) return result;
  // One process a rule; each question starts from nothing.
  std::string script;
  for (const Obligation& o : obligations) script += script_of(rule, o) + "(reset)\n";
  GOPT_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::create());
  const std::string file = folder.path() / "obligations.smt2";
  GOPT_RETURN_IF_ERROR(write_whole(file, script));
  const Answer answer = run_command(fmt::format("cvc5 --lang=smt2 --rlimit-per={} {} 2>&1", rlimit, file));
  std::istringstream lines(answer.text);
  std::string line;
  size_t k = 0;
  while (k < obligations.size() && std::getline(lines, line)) {
    const std::string what = fmt::format("{}.{}: {}", rule, k, obligations[k].what);
    if (line == "unsat") {
      result.agreed++;
    } else if (line == "sat") {
      result.disagreed.push_back(what);
    } else if (line == "unknown") {
      result.undecided.push_back(what);
    } else if (line.find("interrupted") == std::string::npos) {
      return Error{"cvc5 says of " + what + ": " + line};
    } else {
      result.undecided.push_back(what);
    }
    k++;
  }
  // A solver that ran out of its limit may end altogether.
  for (; k < obligations.size(); k++)
    result.undecided.push_back(fmt::format("{}.{}: {}", rule, k, obligations[k].what));
  return result;
}

}  // namespace gopt::cli
