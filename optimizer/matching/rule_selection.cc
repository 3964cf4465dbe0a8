#include "matching/rule_selection.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "gopt/contains.h"
#include "matching/pattern_set.h"

namespace gopt::optimizer {
namespace {

Status check_rule_names(const std::set<std::string>& known, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (!known.count(name))
      return Error{fmt::format("no rule or pass is named `{}`; `gopt rules` lists the rules", name)};
  return Unit{};
}

std::set<OpKind> operators_of(const Graph& graph) {
  std::set<OpKind> ops;
  for (const NodePtr& node : graph.nodes())
    if (!node->is(OpKind::Input)) ops.insert(node->op);
  return ops;
}

// The operators that matching may meet: with a rank, those of a graph, and those that rules make.
class Available {
 public:
  Available(const Graph& graph, int max_rank) : max_rank_(max_rank) { add(graph, false); }

  bool contains(const std::set<OpKind>& needed) const {
    return std::includes(ops_.begin(), ops_.end(), needed.begin(), needed.end());
  }
  bool contains(const std::vector<RankedOperator>& needed) const {
    return std::all_of(needed.begin(), needed.end(), [&](const RankedOperator& op) { return ranked_.count(op) > 0; });
  }
  // Under leading axes, operators are made with more of them.
  void add(const Graph& side, bool has_prefix) {
    for (const NodePtr& node : side.nodes()) {
      const TensorType& type = node->outputs.front();
      if (node->is(OpKind::Input)) continue;
      ops_.insert(node->op);
      const int rank = type.shape ? static_cast<int>(type.shape->size()) : 0;
      const int most = has_prefix || !type.shape ? max_rank_ + rank : rank;
      for (int own = rank; own <= most; own++) ranked_.emplace(node->op, own);
    }
  }
  void add(const std::vector<RankedOperator>& made) {
    for (const RankedOperator& op : made) ops_.insert(op.first);
    ranked_.insert(made.begin(), made.end());
  }

 private:
  int max_rank_;
  std::set<OpKind> ops_;
  std::set<RankedOperator> ranked_;
};

// One of a rule's ranks, where it speaks of lists of axes.
struct RankChoice {
  RankAssignment ranks;
  std::vector<RankedOperator> needed, made;
  bool is_relevant = false;
};

struct Candidate {
  EnabledRule enabled;
  std::set<OpKind> needed;
  bool is_relevant = false;
  std::vector<RankChoice> choices = {};

  Result<std::vector<Pattern>> compile(int max_rank) const {
    if (!enabled.rule->scheme) return compile_rule(*enabled.rule, max_rank);
    std::vector<Pattern> patterns;
    const std::string hash = enabled.rule->content_hash();
    for (const RankChoice& choice : choices) {
      if (!choice.is_relevant) continue;
      GOPT_ASSIGN_OR_RETURN(Pattern pattern, compile_at_ranks(*enabled.rule, hash, choice.ranks));
      patterns.push_back(std::move(pattern));
    }
    return patterns;
  }
};

std::vector<RankChoice> choices_of(const Scheme& scheme, int max_rank) {
  std::vector<RankChoice> choices;
  for (RankAssignment& ranks : ranks_to_match(scheme, max_rank)) {
    const auto needed = ranked_operators(scheme, scheme.left, ranks),
               made = ranked_operators(scheme, scheme.right, ranks);
    choices.push_back({std::move(ranks), needed, made, false});
  }
  return choices;
}

// Whether something is now relevant that was not.
bool extend(Candidate& candidate, Available& available, int max_rank) {
  const RewriteRule& rule = *candidate.enabled.rule;
  if (!candidate.is_relevant) {
    if (!available.contains(candidate.needed)) return false;
    candidate.is_relevant = true;
    if (rule.scheme)
      candidate.choices = choices_of(*rule.scheme, max_rank);
    else
      available.add(rule.right, is_open(rule));
    if (!rule.scheme) return true;
  }
  bool grown = false;
  for (RankChoice& choice : candidate.choices) {
    if (choice.is_relevant || !available.contains(choice.needed)) continue;
    choice.is_relevant = grown = true;
    available.add(choice.made);
  }
  return grown;
}

// Rules whose left sides hold only operators that the graph has or that other such rules make, in their order.
std::vector<Candidate> relevant_rules(const std::vector<EnabledRule>& rules, const Graph& graph, int max_rank) {
  Available available(graph, max_rank);
  std::vector<Candidate> candidates;
  for (const EnabledRule& rule : rules) candidates.push_back({rule, operators_of(rule.rule->left)});
  for (bool grown = true; grown;) {
    grown = false;
    for (Candidate& candidate : candidates) grown = extend(candidate, available, max_rank) || grown;
  }
  std::erase_if(candidates, [](const Candidate& candidate) { return !candidate.is_relevant; });
  return candidates;
}

}  // namespace

Status check_pass_names(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (!contains(pass_names(), name))
      return Error{fmt::format("no pass is named `{}`; the passes are {}", name, fmt::join(pass_names(), ", "))};
  return Unit{};
}

Result<std::vector<EnabledRule>> enabled_rules(const std::vector<RewriteRule>& rules, const SearchOptions& options) {
  std::set<std::string> known;
  for (const RewriteRule& rule : rules) known.insert(rule.name);
  GOPT_RETURN_IF_ERROR(check_rule_names(known, options.disabled_rules));
  GOPT_RETURN_IF_ERROR(check_rule_names(known, options.enabled_rules));
  const std::set<std::string> disabled(options.disabled_rules.begin(), options.disabled_rules.end()),
      named(options.enabled_rules.begin(), options.enabled_rules.end());
  std::vector<EnabledRule> enabled;
  for (const RewriteRule& rule : rules) {
    if (disabled.contains(rule.name)) continue;
    const bool is_named = named.contains(rule.name);
    if (is_named || (named.empty() && may_apply(rule.marks, options.allowed_marks)))
      enabled.push_back({&rule, is_named});
  }
  return enabled;
}

void limit(Pattern& pattern, const RuleMarks& allowed, bool is_named) {
  pattern.keeps_rounding = pattern.keeps_rounding && !allowed.drops_rounding;
  pattern.keeps_compensation = !allowed.drops_rounding && !is_named;
  pattern.keeps_constants = !allowed.drops_rounding;
}

Result<std::vector<Pattern>> select_patterns(const std::vector<RewriteRule>& rules, const SearchOptions& options,
                                             const Graph& graph) {
  GOPT_ASSIGN_OR_RETURN(const std::vector<EnabledRule> enabled, enabled_rules(rules, options));
  std::vector<Pattern> patterns;
  const int rank = max_rank(graph);
  for (const Candidate& candidate : relevant_rules(enabled, graph, rank)) {
    auto compiled = candidate.compile(rank);
    if (!compiled.ok()) {
      if (options.progress)
        options.progress(
            fmt::format("rule `{}` is left out: {}", candidate.enabled.rule->name, compiled.error().message));
      continue;
    }
    for (Pattern pattern : *std::move(compiled)) {
      limit(pattern, options.allowed_marks, candidate.enabled.is_named);
      patterns.push_back(std::move(pattern));
    }
  }
  return patterns;
}

}  // namespace gopt::optimizer
