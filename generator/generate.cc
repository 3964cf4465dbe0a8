#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "finder.h"
#include "gopt/clock.h"
#include "gopt/generator.h"
#include "partial_pairs.h"

namespace gopt {
namespace {

using namespace generator;

using ProgressFunction = std::function<void(const GeneratorProgress&)>;

// Says how far a stage of a level is, a few times a second.
class Steps {
 public:
  explicit Steps(const ProgressFunction& progress) : progress_(progress) {}
  void begin(std::string level) {
    level_ = std::move(level);
    what_ = nullptr;
  }
  void at(const char* what, size_t done, size_t of) {
    const auto now = Clock::now();
    if (what != what_ || done < done_) start_ = said_ = now;
    what_ = what;
    done_ = done;
    if (now - said_ < std::chrono::milliseconds(250)) return;
    said_ = now;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    progress_({fmt::format("{} {} {}/{}, {:.0f} s left", level_, what, done, of,
                           seconds / static_cast<double>(done) * static_cast<double>(of - done)),
               false});
  }

 private:
  const ProgressFunction& progress_;
  std::string level_;
  const char* what_ = nullptr;
  size_t done_ = 0;
  Clock::time_point start_, said_;
};

// One family's space and rules.
class FamilyRun {
 public:
  // `place`: "3/23", among the families.
  FamilyRun(const Family& family, std::string place, const GeneratorLimits& limits, Ranks& ranks,
            const CandidateFunction& accept, const ProgressFunction& progress, std::deque<KeptRule>& kept,
            GeneratedCandidates& result)
      : ops_{std::min(limits.max_ops, family.max_ops), family.max_weight_ops},
        limits_(limits),
        place_(std::move(place)),
        progress_(progress),
        steps_(progress),
        result_(result),
        terms_(std::make_unique<TermStore>(family)),
        kernels_(*terms_),
        space_(*terms_, kernels_, limits.max_variables, limits.seed),
        team_{std::max(limits.threads, 1), ranks, step_function(), end_of_levels()},
        enumerator_(space_, ops_, team_),
        finder_(space_, limits, team_, accept, kept, result) {}

  void run() {
    finder_.take(enumerator_.leaves(), false);
    for (int total = 1; total <= ops_.max_ops + ops_.max_weight_ops; total++)
      for (int activation_ops = 0; activation_ops <= std::min(total, ops_.max_ops); activation_ops++)
        if (total - activation_ops <= ops_.weight_ops_beside(activation_ops) && !team_.must_end())
          run_level(activation_ops, total - activation_ops);
    finder_.drop_instances();
    if (!terms_->family().is_partial) return;
    std::vector<RewriteRule> partial = find_partial_pairs(space_, limits_, end_after(1));
    std::move(partial.begin(), partial.end(), std::back_inserter(result_.partial));
  }

  std::unique_ptr<TermStore> take_terms() { return std::move(terms_); }

 private:
  // Whether this share of the family's time is over. Empty where there is no end.
  std::function<bool()> end_after(double share) const {
    if (limits_.seconds_a_family <= 0 && !limits_.stop) return {};
    return [this, share] {
      const bool has_end = limits_.seconds_a_family > 0;
      return (limits_.stop && *limits_.stop) || (has_end && seconds_since(start_) > share * limits_.seconds_a_family);
    };
  }
  std::function<bool()> end_of_levels() const { return end_after(terms_->family().is_partial ? 2.0 / 3 : 1); }

  std::function<void(const char*, size_t, size_t)> step_function() {
    if (!progress_) return {};
    return [this](const char* what, size_t done, size_t of) { steps_.at(what, done, of); };
  }

  void run_level(int activation_ops, int weight_ops) {
    const std::string name = fmt::format("{} {} {}+{}", place_, terms_->family().name, activation_ops, weight_ops);
    steps_.begin(name);
    const Level level = enumerator_.build(activation_ops, weight_ops);
    report(name + " found", level);
    finder_.take(level, activation_ops == ops_.max_ops);
    report(name + " decided", level);
  }

  void report(const std::string& stage, const Level& level) const {
    if (!progress_) return;
    const GeneratorStats& s = result_.stats;
    progress_(
        {fmt::format("{}: {} candidates, {} classes, {} pairs; in all {} derived away, {} tested, {} offered, {} kept",
                     stage, level.candidates, level.representatives.size(), level.equal.size(),
                     s.after_renaming - s.after_derivable, s.after_subgraph, s.offered, result_.rules.size()),
         true});
  }

  const Clock::time_point start_ = Clock::now();
  const EnumerationLimits ops_;
  const GeneratorLimits& limits_;
  const std::string place_;
  const ProgressFunction& progress_;
  Steps steps_;
  GeneratedCandidates& result_;
  std::unique_ptr<TermStore> terms_;
  Kernels kernels_;
  Space space_;
  const Team team_;
  Enumerator enumerator_;
  RuleFinder finder_;
};

// Two families can give the same rule, as can two pairs once they are made general; its name says what it holds.
void drop_repeated(std::vector<RewriteRule>& rules) {
  std::set<std::string> names;
  std::erase_if(rules, [&](const RewriteRule& rule) { return !names.insert(rule.name).second; });
}

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
                                           const std::function<void(const GeneratorProgress&)>& progress) {
  const bool is_given = !limits.alphabet.empty();
  GOPT_ASSIGN_OR_RETURN(const std::vector<Family> families,
                        parse_alphabet(is_given ? limits.alphabet : built_in_alphabet(),
                                       is_given ? limits.alphabet_name : "alphabet.txt"));
  GOPT_RETURN_IF_ERROR(check_families(families, limits.families));
  std::vector<const Family*> wanted;
  for (const Family& family : families)
    if (is_wanted(family, limits.families)) wanted.push_back(&family);
  Ranks alone;
  GeneratedCandidates result;
  std::vector<std::unique_ptr<TermStore>> stores;  // kept rules point into them
  std::deque<KeptRule> kept;
  for (size_t i = 0; i < wanted.size(); i++) {
    FamilyRun run(*wanted[i], fmt::format("{}/{}", i + 1, wanted.size()), limits, limits.ranks ? *limits.ranks : alone,
                  accept, progress, kept, result);
    run.run();
    stores.push_back(run.take_terms());
  }
  drop_repeated(result.rules);
  drop_repeated(result.partial);
  return result;
}

}  // namespace gopt
