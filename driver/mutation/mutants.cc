#include "gopt/mutants.h"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>

#include "gopt/clock.h"
#include "gopt/excerpt.h"
#include "gopt/generator.h"
#include "gopt/near_misses.h"
#include "gopt/parallel.h"
#include "gopt/turned_rule.h"
#include "mutation/heavy_subgraphs.h"
#include "mutation/mutant_alphabet.h"

namespace gopt {
namespace {

class MutantSearch {
 public:
  MutantSearch(const Plan& plan, const std::vector<RewriteRule>& known, const MutantOptions& options)
      : plan_(plan), options_(options) {
    for (const RewriteRule& rule : known) known_.insert(rule.content_hash());
  }

  FoundMutants run() {
    const std::vector<Subject> subjects = choose();
    for (size_t k = 0; k < subjects.size() && !is_over(); k++) {
      // What the others leave goes to those after them.
      const double share = (options_.seconds - seconds_since(start_)) / static_cast<double>(subjects.size() - k);
      end_ = seconds_since(start_) + share;
      place_ = fmt::format("mutants {}/{}", k + 1, subjects.size());
      look_at(subjects[k], share);
    }
    found_.seconds = seconds_since(start_);
    return std::move(found_);
  }

 private:
  struct Subject {
    Graph part;
    std::string alphabet;
  };

  // Subgraphs of one alphabet have the same mutants.
  std::vector<Subject> choose() {
    std::vector<Subject> subjects;
    std::set<std::string> alphabets;
    for (const std::set<NodeId>& nodes : driver::heavy_subgraphs(plan_, options_.nodes)) {
      if (subjects.size() == options_.most_subgraphs) break;
      auto alphabet = driver::mutant_alphabet(plan_.graph, nodes);
      if (!alphabet) {
        found_.left_out++;
        continue;
      }
      if (alphabets.insert(*alphabet).second)
        subjects.push_back({excerpt_of(plan_.graph, nodes).graph, *std::move(alphabet)});
    }
    return subjects;
  }

  bool is_over() const { return (options_.stop && *options_.stop) || seconds_since(start_) > options_.seconds; }

  void look_at(const Subject& subject, double seconds) {
    constexpr double kForEnumeration = 0.7;  // the rest is for proofs of what agrees in part
    GeneratorLimits limits;
    limits.max_ops = options_.max_ops;
    limits.threads = options_.threads;
    limits.alphabet = subject.alphabet;
    limits.alphabet_name = "the alphabet of a subgraph";
    limits.seconds_a_family = kForEnumeration * seconds;
    limits.stop = options_.stop;
    const auto decide = [&](std::vector<RewriteRule>& rules) { return prove_those_in(subject.part, rules); };
    const auto found = generate_rules(limits, decide, [&](const GeneratorProgress& at) { tell(at.line); });
    if (!found) {  // sizes that are too large to enumerate over
      found_.left_out++;
      return;
    }
    found_.subgraphs++;
    found_.alphabets.push_back(subject.alphabet);
    prove_those_in(subject.part, found->partial);
  }

  // Which of the candidates are rules as they stand; those that do not occur in the part are none that is asked for.
  // What is there may be the side that looked cheaper: those are turned round, too.
  std::vector<bool> prove_those_in(const Graph& part, const std::vector<RewriteRule>& offered) {
    found_.candidates += static_cast<long>(offered.size());
    std::vector<bool> are_rules(offered.size(), false);
    if (is_over()) return are_rules;
    std::vector<RewriteRule> candidates = offered;
    for (const RewriteRule& rule : offered)
      if (auto other = turned_round(rule)) candidates.push_back(*std::move(other));
    const std::vector<size_t> matched = occurring_in(part, candidates);
    found_.matched += static_cast<long>(matched.size());
    std::vector<Result<FullRule>> proofs(matched.size(), Error{"there was no time for a proof"});
    parallel_for(options_.threads, matched.size(), [&](int thread, size_t k) {
      if (is_over() || seconds_since(start_) > end_) return;
      proofs[k] = options_.prove(candidates[matched[k]]);
      if (thread == 0) tell(fmt::format("proving {}/{}", k + 1, matched.size()));
    });
    for (size_t k = 0; k < matched.size(); k++) {
      if (!proofs[k]) continue;
      FullRule proved = *std::move(proofs[k]);
      GOPT_CHECK(proved.rule.proof, "a mutant is taken for a rule without a proof");
      if (matched[k] < offered.size()) are_rules[matched[k]] = proved.is_whole;
      found_.proved++;
      if (known_.insert(proved.rule.content_hash()).second) found_.rules.push_back(std::move(proved.rule));
    }
    return are_rules;
  }

  static std::vector<size_t> occurring_in(const Graph& part, const std::vector<RewriteRule>& candidates) {
    constexpr int kNoNearMiss = 1000;  // nodes that one would have to have
    const auto near = find_near_misses(part, candidates, {.least_nodes = kNoNearMiss, .node = ""});
    std::vector<size_t> found;
    for (size_t k = 0; near && k < candidates.size(); k++)
      if (near->matches.contains(candidates[k].name)) found.push_back(k);
    return found;
  }

  void tell(const std::string& line) const {
    if (options_.progress)
      options_.progress(
          fmt::format("{}: {}; {} candidates, {} proved", place_, line, found_.candidates, found_.proved));
  }

  const Plan& plan_;
  const MutantOptions& options_;
  const Clock::time_point start_ = Clock::now();
  double end_ = 0;  // of the subgraph under way, in seconds
  std::string place_;
  std::set<std::string> known_;  // content hashes
  FoundMutants found_;
};

}  // namespace

FoundMutants find_mutants(const Plan& plan, const std::vector<RewriteRule>& known, const MutantOptions& options) {
  return MutantSearch(plan, known, options).run();
}

std::string print_mutants(const FoundMutants& found) {
  std::string text;
  for (const std::string& alphabet : found.alphabets) {
    std::istringstream lines(alphabet);
    for (std::string line; std::getline(lines, line);) text += "# " + line + "\n";
    text += "\n";
  }
  return text + print_rules(found.rules);
}

}  // namespace gopt
