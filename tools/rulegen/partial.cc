#include "partial.h"

#include <fmt/format.h>

#include <atomic>

#include "gopt/parallel.h"
#include "gopt/verifier.h"

namespace gopt::cli {

PartialRules prove_partial_rules(const std::vector<RewriteRule>& candidates, int threads,
                                 const std::function<void(const std::string&)>& progress) {
  std::vector<std::optional<Result<PartialVerification>>> found(candidates.size());
  std::atomic<size_t> done{0};
  parallel_for(threads, candidates.size(), [&](int thread, size_t item) {
    found[item] = prove_partial(candidates[item]);
    done++;
    if (thread == 0) progress(fmt::format("proving regions {}/{}", done.load(), candidates.size()));
  });
  PartialRules result;
  for (size_t i = 0; i < found.size(); i++) {
    if (*found[i])
      result.rules.push_back(std::move((**found[i]).rule));
    else
      result.rejected.emplace_back(candidates[i].name, found[i]->error().message);
  }
  return result;
}

}  // namespace gopt::cli
