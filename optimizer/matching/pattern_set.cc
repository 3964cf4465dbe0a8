#include "matching/pattern_set.h"

#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "matching/rule_selection.h"

namespace gopt::optimizer {
namespace {

// Operators of the left side with the rank of their first output, below `prefix` leading axes.
std::vector<RankedOperator> operators_below(const RewriteRule& rule, int prefix) {
  std::vector<RankedOperator> operators;
  std::unordered_map<const Node*, bool> has_prefix;
  for (size_t i = 0; i < rule.variables.size(); i++)
    has_prefix[rule.left.inputs()[i].node.get()] = rule.variables[i].has_prefix;
  for (const NodePtr& node : rule.left.nodes()) {
    if (node->is(OpKind::Input)) continue;
    bool& own = has_prefix[node.get()];
    for (const Value& input : node->inputs) own = own || (input && has_prefix.at(input.node.get()));
    const TensorType& type = node->outputs.front();
    operators.emplace_back(node->op, type.shape ? static_cast<int>(type.shape->size()) + (own ? prefix : 0) : -1);
  }
  std::sort(operators.begin(), operators.end());
  operators.erase(std::unique(operators.begin(), operators.end()), operators.end());
  return operators;
}

OperatorSet operators_of(const Graph& side) {
  OperatorSet operators;
  for (const NodePtr& node : side.nodes())
    if (!node->is(OpKind::Input)) operators.insert(node->op);
  return operators;
}

int depth_of(const Graph& side) {
  std::unordered_map<const Node*, int> depths;
  int deepest = 1;
  for (const NodePtr& node : side.nodes()) {
    if (node->is(OpKind::Input)) continue;
    int& depth = depths[node.get()] = 1;
    for (const Value& input : node->inputs)
      if (input && !input.node->is(OpKind::Input)) depth = std::max(depth, depths.at(input.node.get()) + 1);
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

}  // namespace

// One rule's patterns: one for each number of leading axes, or for each of its ranks.
class RulePatterns {
 public:
  RulePatterns(const EnabledRule& enabled, const RuleMarks& allowed, int max_rank)
      : rule_(*enabled.rule), is_named_(enabled.is_named), allowed_(allowed), max_rank_(max_rank) {}

  void add_for(const RankedOperators& there, std::vector<const Pattern*>& found) {
    std::call_once(expanded_, [this] { expand(); });
    for (const std::unique_ptr<AtRank>& at : ranks_) {
      const auto is_there = [&](const RankedOperator& op) { return there.has(op.first, op.second); };
      if (!std::all_of(at->needed.begin(), at->needed.end(), is_there)) continue;
      std::call_once(at->compiled, [&] { compile(*at); });
      if (at->pattern) found.push_back(&*at->pattern);
    }
  }

  std::string note() const {
    const std::lock_guard lock(mutex_);
    return why_not_;
  }

 private:
  struct AtRank {
    std::vector<RankedOperator> needed;
    int prefix = 0;
    RankAssignment ranks = {};
    std::once_flag compiled = {};
    std::optional<Pattern> pattern = {};
  };

  void expand() {
    if (rule_.scheme) {
      for (RankAssignment& ranks : ranks_to_match(*rule_.scheme, max_rank_)) {
        add_rank(ranked_operators(*rule_.scheme, rule_.scheme->left, ranks));
        ranks_.back()->ranks = std::move(ranks);
      }
    } else {
      for (int prefix = 0; prefix <= (is_open(rule_) ? max_rank_ : 0); prefix++)
        add_rank(operators_below(rule_, prefix)).prefix = prefix;
    }
    hash_ = rule_.content_hash();
  }

  AtRank& add_rank(std::vector<RankedOperator> needed) {
    ranks_.push_back(std::make_unique<AtRank>());
    ranks_.back()->needed = std::move(needed);
    return *ranks_.back();
  }

  void compile(AtRank& at) {
    auto compiled =
        rule_.scheme ? compile_at_ranks(rule_, hash_, at.ranks) : compile_below_axes(rule_, hash_, at.prefix);
    if (!compiled.ok()) {
      const std::lock_guard lock(mutex_);
      why_not_ = fmt::format("rule `{}` is left out: {}", rule_.name, compiled.error().message);
      return;
    }
    at.pattern = *std::move(compiled);
    limit(*at.pattern, allowed_, is_named_);
  }

  const RewriteRule& rule_;
  const bool is_named_;
  const RuleMarks& allowed_;
  const int max_rank_;
  std::once_flag expanded_;
  std::string hash_;
  std::vector<std::unique_ptr<AtRank>> ranks_;
  mutable std::mutex mutex_;
  std::string why_not_;
};

PatternSet::PatternSet() = default;
PatternSet::PatternSet(PatternSet&&) noexcept = default;
PatternSet& PatternSet::operator=(PatternSet&&) noexcept = default;
PatternSet::~PatternSet() = default;

Result<PatternSet> PatternSet::make(const std::vector<RewriteRule>& rules, const SearchOptions& options, int max_rank) {
  GOPT_ASSIGN_OR_RETURN(const std::vector<EnabledRule> enabled, enabled_rules(rules, options));
  PatternSet set;
  for (const EnabledRule& rule : enabled) {
    set.rules_.push_back(
        {operators_of(rule.rule->left), std::make_unique<RulePatterns>(rule, options.allowed_marks, max_rank)});
    set.depth_ = std::max(set.depth_, depth_of(rule.rule->left));
  }
  return set;
}

std::vector<const Pattern*> PatternSet::patterns_for(const RankedOperators& there) const {
  std::vector<const Pattern*> found;
  for (const Rule& rule : rules_)
    if (there.operators.includes(rule.operators)) rule.patterns->add_for(there, found);
  return found;
}

std::vector<const Pattern*> PatternSet::patterns_for(const MatchIndex& index) const {
  return patterns_for({index.operators(), [&](OpKind op, int rank) { return !index.nodes_of(op, rank).empty(); }});
}

std::vector<std::string> PatternSet::notes() const {
  std::vector<std::string> all;
  for (const Rule& rule : rules_)
    if (std::string note = rule.patterns->note(); !note.empty()) all.push_back(std::move(note));
  return all;
}

int max_rank(const Graph& graph) {
  size_t rank = 0;
  for (const NodePtr& node : graph.nodes())
    for (const TensorType& type : node->outputs)
      if (type.shape) rank = std::max(rank, type.shape->size());
  return static_cast<int>(rank);
}

}  // namespace gopt::optimizer
