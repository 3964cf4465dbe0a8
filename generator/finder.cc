#include "finder.h"

#include <fmt/core.h>

#include <algorithm>

#include "gopt/parallel.h"
#include "orientation.h"
#include "trial.h"

namespace gopt::generator {
namespace {

NameMap same_names() {
  NameMap map;
  map.of_class.fill(0x76543210);
  return map;
}

}  // namespace

RuleFinder::RuleFinder(Space& space, const GeneratorLimits& limits, const CandidateFunction& accept,
                       std::deque<KeptRule>& kept, GeneratedCandidates& result)
    : space_(space),
      terms_(space.terms()),
      limits_(limits),
      accept_(accept),
      kept_(kept),
      result_(result),
      stats_(result.stats),
      equations_(space),
      generalizer_(terms_, space.kernels(), space.seed()) {
  for (const KeptRule& rule : kept_) equations_.add_rule(rule);
}

void RuleFinder::take(const Level& level, bool is_final) {
  stats_.candidates += static_cast<long>(level.candidates);
  stats_.classes += static_cast<long>(level.representatives.size());
  stats_.after_renaming += static_cast<long>(level.equal.size());
  for (const EqualApplication& equal : level.equal)
    stats_.equal_pairs += static_cast<long>(
        space_.signature(space_.intern_signature(space_.classes_of(equal.application))).permutations.size());
  const NodeId first = equations_.add_level(level, is_final), end = equations_.node_count();
  std::vector<Pending> pending = pending_nodes(first, end);
  if (limits_.pruning == Pruning::Derivable) derive_all(pending, 0);
  find_joint_rules(first, end);
  std::vector<Pending> left;
  for (const Pending& own : pending) {
    const EqualApplication& node = equations_.node(own.node);
    if (!equations_.is_joined(own.node) && may_be_left(node.application, node.equal)) left.push_back(own);
  }
  stats_.after_derivable += static_cast<long>(left.size());
  std::sort(left.begin(), left.end(), [](const Pending& a, const Pending& b) {
    return a.generality != b.generality ? a.generality < b.generality : a.node < b.node;
  });
  decide(std::move(left));
  equations_.settle(first, end);
}

// Nodes of a level that are to be derived: all but those that stand for representatives and those on weights alone,
// which folding makes equal.
std::vector<RuleFinder::Pending> RuleFinder::pending_nodes(NodeId first, NodeId end) {
  std::vector<Pending> pending;
  for (NodeId id = first; id < end; id++) {
    const EqualApplication& node = equations_.node(id);
    const Representative& rep = space_.rep(node.equal.rep);
    if (rep.node == id) continue;
    int activation_ops = 1, weight_ops = 0;
    bool is_weight = true;
    for (size_t i = 0; i < node.application.arity; i++) {
      const Representative& arg = space_.rep(node.application.args[i].rep);
      is_weight = is_weight && arg.is_weight;
      activation_ops += arg.activation_ops;
      weight_ops += arg.weight_ops;
    }
    if (is_weight) {
      equations_.join_to_representative(id);
      continue;
    }
    const auto variables = static_cast<int>(space_.classes_of(node.application).size());
    pending.push_back({id, 8 * (activation_ops + rep.activation_ops) + weight_ops + rep.weight_ops - 2 * variables});
  }
  return pending;
}

// Whether the pair can be a rule in some direction, as far as counts tell.
bool RuleFinder::may_be_left(const Application& application, const Named& equal) const {
  const Representative& rep = space_.rep(equal.rep);
  int weight_ops = 0;
  for (size_t i = 0; i < application.arity; i++) weight_ops += space_.rep(application.args[i].rep).weight_ops;
  if (weight_ops == 0) return true;
  return rep.application.op >= 0 && rep.weight_ops == 0 &&
         space_.signature_of(equal.rep).count == space_.classes_of(application).size();
}

void RuleFinder::derive_all(std::vector<Pending>& pending, size_t first_rule) {
  constexpr size_t kAtOnce = 64;
  std::vector<std::vector<Equations::Derived>> derived(pending.size());
  parallel_for(limits_.threads, (pending.size() + kAtOnce - 1) / kAtOnce, [&](int, size_t chunk) {
    for (size_t i = chunk * kAtOnce; i < std::min(pending.size(), (chunk + 1) * kAtOnce); i++)
      equations_.derive(pending[i].node, first_rule, derived[i]);
  });
  for (size_t i = 0; i < pending.size(); i++) equations_.join(pending[i].node, derived[i]);
}

// ---- rules with several outputs ----

// Parts of a term that are equal to other terms each: (r0, r1) => split(e). The most general first; what follows from
// one of them waits for its verdict.
void RuleFinder::find_joint_rules(NodeId first, NodeId end) {
  std::vector<Candidate> pending;
  std::set<TermPair> seen;
  for (NodeId id = first; id < end; id++) {
    const EqualApplication& node = equations_.node(id);
    if (node.application.op < 0 || node.application.output != 0 || terms_.op(node.application.op).outputs < 2) continue;
    auto candidate = joint_candidate(id);
    if (candidate && seen.insert(renamed(terms_, candidate->pair)).second) pending.push_back(*std::move(candidate));
  }
  std::stable_sort(pending.begin(), pending.end(), [](const Candidate& a, const Candidate& b) {
    return a.rules[0].variables.size() > b.rules[0].variables.size();
  });
  while (!pending.empty()) {
    const size_t mark = equations_.rule_count();
    std::vector<Candidate> candidates, deferred;
    for (Candidate& own : pending) {
      const bool follows =
          limits_.pruning == Pruning::Derivable &&
          std::all_of(own.nodes.begin(), own.nodes.end(), [&](NodeId node) { return leads_on(node, mark); });
      if (!follows) equations_.add_rule({&terms_, own.pair.left, own.pair.right, {}});
      (follows ? deferred : candidates).push_back(std::move(own));
    }
    equations_.forget_rules(mark);
    offer(candidates);
    pending.clear();
    for (Candidate& own : deferred)
      if (!std::all_of(own.nodes.begin(), own.nodes.end(), [&](NodeId node) { return leads_on(node, mark); }))
        pending.push_back(std::move(own));
  }
}

// Whether rules number `first_rule` on make anything of the node.
bool RuleFinder::leads_on(NodeId node, size_t first_rule) const {
  std::vector<Equations::Derived> derived;
  equations_.derive(node, first_rule, derived);
  return !derived.empty();
}

std::optional<RuleFinder::Candidate> RuleFinder::joint_candidate(NodeId id) {
  Candidate candidate;
  Application application = equations_.node(id).application;
  bool is_joined = true;
  int left_ops = 0, right_ops = 1;
  for (size_t i = 0; i < application.arity; i++) right_ops += space_.rep(application.args[i].rep).activation_ops;
  for (int output = 0; output < terms_.op(application.op).outputs; output++) {
    application.output = static_cast<uint8_t>(output);
    const auto node = equations_.find_node(application);
    if (!node) return std::nullopt;
    const Named equal = equations_.node(*node).equal;
    const Representative& rep = space_.rep(equal.rep);
    if (rep.application.op < 0 || rep.application.op == application.op || rep.node == *node) return std::nullopt;
    is_joined = is_joined && equations_.is_joined(*node);
    left_ops += rep.activation_ops;
    candidate.nodes.push_back(*node);
    candidate.pair.left.push_back(space_.term_of(equal));
    candidate.pair.right.push_back(space_.term_of(application, same_names()));
  }
  // The split itself is free.
  if (is_joined || right_ops - 1 > left_ops || !can_be_left(terms_, candidate.pair.left, candidate.pair.right))
    return std::nullopt;
  auto rule = rule_of(candidate.pair);
  if (!rule) return std::nullopt;
  candidate.rules.push_back(*std::move(rule));
  return candidate;
}

// ---- rules with one output ----

void RuleFinder::decide(std::vector<Pending> pending) {
  const bool derives = limits_.pruning == Pruning::Derivable;
  while (!pending.empty()) {
    const size_t mark = equations_.rule_count();
    std::vector<Candidate> candidates;
    std::vector<Pending> deferred;
    std::set<NodeId> open;  // roots of what is offered in this round
    for (const Pending& own : pending) {
      if (derives && equations_.is_joined(own.node)) continue;
      if (derives) {
        if (leads_on(own.node, mark) || open.count(equations_.root(own.node))) {
          deferred.push_back(own);
          continue;
        }
      }
      auto candidate = candidate_at(own.node);
      if (!candidate) continue;
      open.insert(equations_.root(own.node));
      if (derives) equations_.add_rule({&terms_, candidate->pair.left, candidate->pair.right, {}});
      candidates.push_back(*std::move(candidate));
    }
    equations_.forget_rules(mark);
    offer(candidates);
    if (derives) derive_all(deferred, mark);
    pending = std::move(deferred);
  }
}

std::optional<RuleFinder::Candidate> RuleFinder::candidate_at(NodeId node) {
  const EqualApplication content = equations_.node(node);
  Candidate candidate;
  candidate.nodes = {node};
  candidate.pair = {{space_.term_of(content.application, same_names())}, {space_.term_of(content.equal)}};
  if (limits_.pruning >= Pruning::Subgraph) candidate.pair = generalizer_.generalised(std::move(candidate.pair));
  const bool is_symmetry = content.application == space_.rep(content.equal.rep).application;
  const auto wanted = directions(terms_, space_.kernels(), candidate.pair, is_symmetry);
  if (wanted.empty()) return std::nullopt;
  const TermPair key = renamed(terms_, wanted.front());
  if (limits_.pruning >= Pruning::Renaming) {
    const auto [known, is_new] = offered_.try_emplace(key, false);
    if (!is_new) {
      if (known->second) equations_.join_to_representative(node);
      return std::nullopt;
    }
  }
  stats_.after_subgraph++;
  const auto rule = rule_of(wanted.front());
  if (!rule) {
    stats_.false_pairs++;
    return std::nullopt;
  }
  const bool with_leading_axes =
      std::any_of(rule->variables.begin(), rule->variables.end(), [](const auto& v) { return v.has_prefix; });
  candidate.rules.push_back(*rule);
  if (wanted.size() > 1)
    if (auto back = tested_rule(wanted[1], with_leading_axes)) candidate.rules.push_back(*std::move(back));
  candidate.starts_at_node = wanted.front() == candidate.pair;
  candidate.pair = wanted.front();
  return candidate;
}

// The most general form first: under any leading axes where the variables allow them. One that is a candidate and is
// rejected would be rejected without them too.
std::optional<RewriteRule> RuleFinder::rule_of(const TermPair& pair) {
  if (has_prefix(terms_, pair.left))
    if (auto rule = tested_rule(pair, true)) return rule;
  return tested_rule(pair, false);
}

std::optional<RewriteRule> RuleFinder::tested_rule(const TermPair& pair, bool with_leading_axes) {
  if (!holds_in_fresh_worlds(terms_, pair, with_leading_axes, mix(limits_.seed + 17))) return std::nullopt;
  const std::string origin =
      fmt::format("generator seed={} max-ops={} family={}", limits_.seed, limits_.max_ops, terms_.family().name);
  auto rule = make_candidate(terms_, pair, with_leading_axes, origin);
  if (!rule.ok() || !with_prefix(*rule, Shape{2}).ok() || !check_rule(*rule).ok()) return std::nullopt;
  if (!survives_trials(*rule, mix(limits_.seed + 18))) return std::nullopt;
  RewriteRule made = *std::move(rule);
  complete_name(made);
  return made;
}

void RuleFinder::offer(std::vector<Candidate>& candidates) {
  std::vector<RewriteRule> rules;
  for (Candidate& candidate : candidates)
    std::move(candidate.rules.begin(), candidate.rules.end(), std::back_inserter(rules));
  if (rules.empty()) return;
  stats_.offered += static_cast<long>(rules.size());
  const std::vector<bool> answers = accept_(rules);
  size_t at = 0;
  for (Candidate& candidate : candidates) {
    Found found{candidate.nodes.front(), candidate.starts_at_node, {}};
    Cond condition;
    for (size_t i = 0; i < candidate.rules.size(); i++, at++) {
      if (!answers[at]) continue;
      if (found.names.empty()) condition = rules[at].condition;
      found.names[i > 0] = rules[at].name;
      result_.rules.push_back(std::move(rules[at]));
    }
    if (found.names.empty()) continue;
    const bool is_single = candidate.pair.left.size() == 1;
    kept_.push_back({&terms_, candidate.pair.left, candidate.pair.right, condition});
    equations_.add_rule(kept_.back(), is_single ? found_.size() : kNoNumber);
    for (NodeId node : candidate.nodes) equations_.join_to_representative(node);
    if (!is_single) continue;
    offered_[renamed(terms_, candidate.pair)] = true;
    found_.push_back(std::move(found));
  }
}

// A rule found among small terms, x + x say, may be an instance of one that needs larger ones, x + y. One step of that
// other rule, in a direction that it was kept in, then does the same.
void RuleFinder::drop_instances() {
  std::set<std::string> dropped;
  for (size_t number = 0; number < found_.size(); number++) {
    const Found& own = found_[number];
    const EqualApplication& node = equations_.node(own.node);
    std::vector<Equations::Derived> derived;
    equations_.derive(own.node, 0, derived, true);
    for (const Equations::Derived& step : derived) {
      if (step.rule == kNoNumber || step.rule <= number || step.node != space_.rep(node.equal.rep).node) continue;
      if (space_.canonical(step.result) != space_.canonical(node.equal)) continue;
      for (const auto& [is_back, name] : own.names) {
        const bool from_node = own.starts_at_node != is_back;
        if (found_[step.rule].names.count(step.is_reversed == from_node)) dropped.insert(name);
      }
    }
  }
  std::erase_if(result_.rules, [&](const RewriteRule& rule) { return dropped.count(rule.name) > 0; });
}

}  // namespace gopt::generator
