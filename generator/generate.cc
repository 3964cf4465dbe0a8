#include <fmt/core.h>

#include <algorithm>

#include "classes.h"
#include "enumerate.h"
#include "gopt/generator.h"

namespace gopt {
namespace {

using namespace generator;

// Names unique by the content that they stand for, so that they do not depend on what else is found.
void complete_name(RewriteRule& rule) { rule.name += "-" + rule.content_hash().substr(0, 6); }

class FamilyRun {
 public:
  FamilyRun(const Family& family, const GeneratorLimits& limits, const CandidateFunction& accept,
            std::vector<KeptRule>& kept, GeneratedCandidates& result)
      : family_(family),
        limits_(limits),
        accept_(accept),
        result_(result),
        terms_(std::make_unique<TermStore>(family)),
        classes_(*terms_, limits.seed, kept, result.stats, [this](const TermPair& pair) { return offer(pair); }) {}

  void run(const std::function<void(const std::string&)>& progress) {
    const EnumerationLimits limits{std::min(limits_.max_ops, family_.max_ops), family_.max_weight_ops,
                                   limits_.max_variables};
    enumerate_terms(
        *terms_, limits, [this](TermId id) { return classes_.take(id); },
        [&](int activation_ops, int weight_ops, size_t representatives) {
          classes_.decide_pairs();
          if (!progress) return;
          progress(fmt::format(
              "{} {}+{} ops: {} representatives; {} candidates, {} classes, {} pairs, {} offered, {} kept",
              family_.name, activation_ops, weight_ops, representatives, result_.stats.candidates,
              result_.stats.classes, result_.stats.equal_pairs, result_.stats.after_derivable, result_.rules.size()));
        });
  }

  std::unique_ptr<TermStore> take_terms() { return std::move(terms_); }

 private:
  enum class Answer { NoCandidate, Rejected, Kept };

  // The most general form first: under any leading axes where the variables allow them. One that is a candidate and is
  // rejected would be rejected without them too.
  bool offer(const TermPair& pair) {
    bool has_prefix = false;
    for (const auto& [variable_class, number] : terms_->variables_of(pair.left))
      has_prefix = has_prefix || family_.classes[static_cast<size_t>(variable_class)].has_prefix;
    Answer answer = has_prefix ? offer(pair, true) : Answer::NoCandidate;
    if (answer == Answer::NoCandidate) answer = offer(pair, false);
    return answer == Answer::Kept;
  }

  Answer offer(const TermPair& pair, bool with_leading_axes) {
    if (!holds_in_fresh_worlds(*terms_, pair, with_leading_axes, mix(limits_.seed + 17))) return Answer::NoCandidate;
    const std::string origin =
        fmt::format("generator seed={} max-ops={} family={}", limits_.seed, limits_.max_ops, family_.name);
    auto rule = make_candidate(*terms_, pair, with_leading_axes, origin);
    if (!rule.ok() || !with_prefix(*rule, Shape{2}).ok()) return Answer::NoCandidate;
    RewriteRule candidate = *std::move(rule);
    complete_name(candidate);
    if (!accept_(candidate)) return Answer::Rejected;
    result_.rules.push_back(std::move(candidate));
    return Answer::Kept;
  }

  const Family& family_;
  const GeneratorLimits& limits_;
  const CandidateFunction& accept_;
  GeneratedCandidates& result_;
  std::unique_ptr<TermStore> terms_;
  Classes classes_;
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
  GeneratedCandidates result;
  std::vector<std::unique_ptr<TermStore>> stores;  // kept rules point into them
  std::vector<KeptRule> kept;
  for (const Family& family : families) {
    if (!is_wanted(family, limits.families)) continue;
    FamilyRun run(family, limits, accept, kept, result);
    run.run(progress);
    stores.push_back(run.take_terms());
  }
  return result;
}

}  // namespace gopt
