#include "rule_selection.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace gopt {

const std::vector<std::string>& pass_names() {
  static const std::vector<std::string> names = {"merge-equal-nodes", "drop-identities", "fold-constants",
                                                 "merge-commuted-nodes"};
  return names;
}

}  // namespace gopt

namespace gopt::optimizer {
namespace {

Status check_rule_names(const std::set<std::string>& known, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (!known.count(name))
      return Error{fmt::format("no rule or pass is named `{}`; `gopt rules` lists the rules", name)};
  return Unit{};
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::set<OpKind> operators_of(const Graph& graph) {
  std::set<OpKind> ops;
  for (const NodePtr& node : graph.nodes())
    if (!node->is(OpKind::Input)) ops.insert(node->op);
  return ops;
}

int max_rank(const Graph& graph) {
  size_t rank = 0;
  for (const NodePtr& node : graph.nodes())
    for (const TensorType& type : node->outputs)
      if (type.shape) rank = std::max(rank, type.shape->size());
  return static_cast<int>(rank);
}

// Rules whose left sides hold only operators that the graph has or that other such rules make, in their order.
std::vector<const RewriteRule*> relevant_rules(const std::vector<const RewriteRule*>& rules, const Graph& graph) {
  std::set<OpKind> available = operators_of(graph);
  std::vector<std::set<OpKind>> needed;
  for (const RewriteRule* rule : rules) needed.push_back(operators_of(rule->left));
  std::vector<bool> is_relevant(rules.size());
  for (bool grown = true; grown;) {
    grown = false;
    for (size_t i = 0; i < rules.size(); i++) {
      if (is_relevant[i] || !std::includes(available.begin(), available.end(), needed[i].begin(), needed[i].end()))
        continue;
      is_relevant[i] = grown = true;
      available.merge(operators_of(rules[i]->right));
    }
  }
  std::vector<const RewriteRule*> relevant;
  for (size_t i = 0; i < rules.size(); i++)
    if (is_relevant[i]) relevant.push_back(rules[i]);
  return relevant;
}

}  // namespace

Status check_pass_names(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (!holds(pass_names(), name))
      return Error{fmt::format("no pass is named `{}`; the passes are {}", name, fmt::join(pass_names(), ", "))};
  return Unit{};
}

Result<std::vector<Pattern>> select_patterns(const std::vector<RewriteRule>& rules, const SearchOptions& options,
                                             const Graph& graph) {
  std::set<std::string> known;
  for (const RewriteRule& rule : rules) known.insert(rule.name);
  GOPT_RETURN_IF_ERROR(check_rule_names(known, options.disabled_rules));
  GOPT_RETURN_IF_ERROR(check_rule_names(known, options.enabled_rules));
  std::vector<const RewriteRule*> enabled;
  for (const RewriteRule& rule : rules) {
    if (holds(options.disabled_rules, rule.name)) continue;
    const bool is_named = holds(options.enabled_rules, rule.name);
    if (is_named || (options.enabled_rules.empty() && may_apply(rule.marks, options.allowed_marks)))
      enabled.push_back(&rule);
  }
  std::vector<Pattern> patterns;
  const int max_prefix = max_rank(graph);
  for (const RewriteRule* rule : relevant_rules(enabled, graph)) {
    auto compiled = compile_rule(*rule, max_prefix);
    if (!compiled.ok()) {
      if (options.progress)
        options.progress(fmt::format("rule `{}` is left out: {}", rule->name, compiled.error().message));
      continue;
    }
    for (Pattern pattern : *std::move(compiled)) {
      pattern.keeps_rounding = pattern.keeps_rounding && !options.allowed_marks.drops_rounding;
      patterns.push_back(std::move(pattern));
    }
  }
  return patterns;
}

}  // namespace gopt::optimizer
