#include "first_rank.h"

namespace gopt::cli {

Result<std::string> first_rank_says(Ranks& ranks, const std::function<Result<std::string>()>& ask) {
  std::string said;
  if (ranks.rank() == 0) {
    const Result<std::string> answer = ask();
    said = answer.ok() ? "+" + *answer : "-" + answer.error().message;
  }
  said = std::move(ranks.gather(std::move(said)).front());
  if (said.empty() || said.front() == '-') return Error{said.substr(said.empty() ? 0 : 1)};
  return said.substr(1);
}

}  // namespace gopt::cli
