#include <fmt/core.h>

#include <algorithm>

#include "finder.h"
#include "gopt/generator.h"
#include "partial_pairs.h"

namespace gopt {
namespace {

using namespace generator;

// One family's space and rules.
class FamilyRun {
 public:
  FamilyRun(const Family& family, const GeneratorLimits& limits, const Team& team, const CandidateFunction& accept,
            std::deque<KeptRule>& kept, GeneratedCandidates& result)
      : ops_{std::min(limits.max_ops, family.max_ops), family.max_weight_ops},
        limits_(limits),
        result_(result),
        terms_(std::make_unique<TermStore>(family)),
        kernels_(*terms_),
        space_(*terms_, kernels_, limits.max_variables, limits.seed),
        enumerator_(space_, ops_, team),
        finder_(space_, limits, team, accept, kept, result) {}

  void run(const std::function<void(const std::string&)>& progress) {
    finder_.take(enumerator_.leaves(), false);
    for (int total = 1; total <= ops_.max_ops + ops_.max_weight_ops; total++)
      for (int activation_ops = 0; activation_ops <= std::min(total, ops_.max_ops); activation_ops++) {
        const int weight_ops = total - activation_ops;
        if (weight_ops > ops_.weight_ops_beside(activation_ops)) continue;
        const Level level = enumerator_.build(activation_ops, weight_ops);
        if (progress) report("found", activation_ops, weight_ops, level, progress);
        finder_.take(level, activation_ops == ops_.max_ops);
        if (progress) report("decided", activation_ops, weight_ops, level, progress);
      }
    finder_.drop_instances();
    if (!terms_->family().is_partial) return;
    std::vector<RewriteRule> partial = find_partial_pairs(space_, limits_);
    std::move(partial.begin(), partial.end(), std::back_inserter(result_.partial));
  }

  std::unique_ptr<TermStore> take_terms() { return std::move(terms_); }

 private:
  void report(const std::string& stage, int activation_ops, int weight_ops, const Level& level,
              const std::function<void(const std::string&)>& progress) const {
    const GeneratorStats& s = result_.stats;
    progress(fmt::format(
        "{} {}+{} {}: {} candidates, {} classes, {} pairs; in all {} derived away, {} tested, "
        "{} offered, {} kept",
        terms_->family().name, activation_ops, weight_ops, stage, level.candidates, level.representatives.size(),
        level.equal.size(), s.after_renaming - s.after_derivable, s.after_subgraph, s.offered, result_.rules.size()));
  }

  const EnumerationLimits ops_;
  const GeneratorLimits& limits_;
  GeneratedCandidates& result_;
  std::unique_ptr<TermStore> terms_;
  Kernels kernels_;
  Space space_;
  Enumerator enumerator_;
  RuleFinder finder_;
};

bool is_wanted(const Family& family, const std::vector<std::string>& names) {
  return names.empty() || std::find(names.begin(), names.end(), family.name) != names.end();
}

Status check_families(const std::vector<Family>& families, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (std::any_of(families.begin(), families.end(), [&](const Family& family) { return family.name == name; }))
      continue;
    std::string known;
    for (const Family& family : families) known += (known.empty() ? "" : ", ") + family.name;
    return Error{fmt::format("no family is named `{}`; there are {}", name, known)};
  }
  return Unit{};
}

}  // namespace

Result<GeneratedCandidates> generate_rules(const GeneratorLimits& limits, const CandidateFunction& accept,
                                           const std::function<void(const std::string&)>& progress) {
  const bool is_given = !limits.alphabet.empty();
  GOPT_ASSIGN_OR_RETURN(const std::vector<Family> families,
                        parse_alphabet(is_given ? limits.alphabet : built_in_alphabet(),
                                       is_given ? limits.alphabet_name : "alphabet.txt"));
  GOPT_RETURN_IF_ERROR(check_families(families, limits.families));
  Ranks alone;
  const Team team{std::max(limits.threads, 1), limits.ranks ? *limits.ranks : alone};
  GeneratedCandidates result;
  std::vector<std::unique_ptr<TermStore>> stores;  // kept rules point into them
  std::deque<KeptRule> kept;
  for (const Family& family : families) {
    if (!is_wanted(family, limits.families)) continue;
    FamilyRun run(family, limits, team, accept, kept, result);
    run.run(progress);
    stores.push_back(run.take_terms());
  }
  return result;
}

}  // namespace gopt
