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

// Pairs that are tested at a time. Part of what is found (what is tested in vain can make sizes known that later draws
// use), so it depends on nothing.
constexpr size_t kAtOnce = 32;

}  // namespace

RuleFinder::RuleFinder(Space& space, const GeneratorLimits& limits, const Team& team, const CandidateFunction& accept,
                       std::deque<KeptRule>& kept, GeneratedCandidates& result)
    : space_(space),
      terms_(space.terms()),
      limits_(limits),
      team_(team),
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
  constexpr size_t kNodesAtOnce = 64;
  struct Step {
    size_t item;
    Equations::Derived derived;
  };
  std::vector<std::vector<Step>> by_thread(static_cast<size_t>(team_.threads));
  team_.for_own((pending.size() + kNodesAtOnce - 1) / kNodesAtOnce,
                [&](int thread, size_t chunk) {
                  std::vector<Equations::Derived> derived;
                  for (size_t i = chunk * kNodesAtOnce; i < std::min(pending.size(), (chunk + 1) * kNodesAtOnce); i++) {
                    derived.clear();
                    equations_.derive(pending[i].node, first_rule, derived);
                    for (const auto& own : derived) by_thread[static_cast<size_t>(thread)].push_back({i, own});
                  }
                },
                "matching");
  std::vector<Step> own;
  for (std::vector<Step>& steps : by_thread) own.insert(own.end(), steps.begin(), steps.end());
  std::vector<std::vector<Equations::Derived>> derived(pending.size());
  for (const Step& step : gathered(team_.ranks, std::move(own))) derived[step.item].push_back(step.derived);
  for (size_t i = 0; i < pending.size(); i++) equations_.join(pending[i].node, derived[i]);
}

// ---- rules with several outputs ----

// Parts of a term that are equal to other terms each: (r0, r1) => split(e). The most general first; what follows from
// one of them waits for its verdict.
void RuleFinder::find_joint_rules(NodeId first, NodeId end) {
  std::vector<Candidate> pending = joint_candidates(first, end);
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

std::vector<RuleFinder::Candidate> RuleFinder::joint_candidates(NodeId first, NodeId end) {
  std::vector<Proposal> proposals;
  std::set<TermPair> seen;
  for (NodeId id = first; id < end; id++) {
    const EqualApplication& node = equations_.node(id);
    if (node.application.op < 0 || node.application.output != 0 || terms_.op(node.application.op).outputs < 2) continue;
    auto proposal = joint_proposal(id);
    if (proposal && seen.insert(proposal->key).second) proposals.push_back(*std::move(proposal));
  }
  std::vector<Proposal*> tested;
  for (Proposal& own : proposals) tested.push_back(&own);
  test(std::move(tested));
  std::vector<Candidate> candidates;
  for (const Proposal& own : proposals)
    if (auto rule = written_rule(own.pair, own.form))
      candidates.push_back({own.nodes, own.pair, true, {*std::move(rule)}});
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.rules[0].variables.size() > b.rules[0].variables.size();
  });
  return candidates;
}

std::optional<RuleFinder::Proposal> RuleFinder::joint_proposal(NodeId id) {
  Proposal proposal;
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
    proposal.nodes.push_back(*node);
    proposal.pair.left.push_back(space_.term_of(equal));
    proposal.pair.right.push_back(space_.term_of(application, same_names()));
  }
  // The split itself is free.
  if (is_joined || right_ops - 1 > left_ops || !can_be_left(terms_, proposal.pair.left, proposal.pair.right))
    return std::nullopt;
  proposal.wanted = {proposal.pair};
  proposal.key = renamed(terms_, proposal.pair);
  return proposal;
}

// ---- rules with one output ----

void RuleFinder::decide(std::vector<Pending> pending) {
  while (!pending.empty()) {
    Round round{equations_.rule_count(), {}, {}, {}};
    for (size_t start = 0; start < pending.size(); start += kAtOnce) {
      decide_some(std::span(pending).subspan(start, std::min(kAtOnce, pending.size() - start)), round);
      if (team_.must_end()) break;
      if (team_.step) team_.step("testing", std::min(start + kAtOnce, pending.size()), pending.size());
    }
    equations_.forget_rules(round.mark);
    offer(round.candidates);
    if (team_.must_end()) return;
    if (limits_.pruning == Pruning::Derivable) derive_all(round.deferred, round.mark);
    pending = std::move(round.deferred);
  }
}

// What candidates of the round so far leave is tested side by side; then, in order, what candidates that are new by
// then leave becomes one.
void RuleFinder::decide_some(std::span<const Pending> pending, Round& round) {
  const bool derives = limits_.pruning == Pruning::Derivable;
  std::vector<char> follows(pending.size(), 0);
  if (derives)
    parallel_for(team_.threads, pending.size(), [&](int, size_t i) {
      const NodeId node = pending[i].node;
      follows[i] = equations_.is_joined(node) || round.open.count(equations_.root(node)) || leads_on(node, round.mark);
    });
  std::vector<std::optional<Proposal>> proposals(pending.size());
  std::vector<Proposal*> tested;
  std::set<TermPair> keys;
  for (size_t i = 0; i < pending.size(); i++) {
    if (follows[i]) continue;
    proposals[i] = proposal_at(pending[i].node);
    if (!proposals[i]) continue;
    const bool is_known = offered_.count(proposals[i]->key) > 0 || !keys.insert(proposals[i]->key).second;
    if (limits_.pruning < Pruning::Renaming || !is_known) tested.push_back(&*proposals[i]);
  }
  test(std::move(tested));
  if (team_.must_end()) return;  // some were not tested
  size_t first_new = equations_.rule_count();
  for (size_t i = 0; i < pending.size(); i++) {
    const NodeId node = pending[i].node;
    if (derives) {
      if (equations_.is_joined(node)) continue;
      if (follows[i] || leads_on(node, first_new) || round.open.count(equations_.root(node))) {
        round.deferred.push_back(pending[i]);
        continue;
      }
    }
    if (!proposals[i]) continue;
    auto candidate = candidate_from(node, *proposals[i]);
    // What has been joined since can lead others on.
    if (equations_.is_joined(node)) first_new = round.mark;
    if (!candidate) continue;
    round.open.insert(equations_.root(node));
    if (derives) equations_.add_rule({&terms_, candidate->pair.left, candidate->pair.right, {}});
    round.candidates.push_back(*std::move(candidate));
  }
}

std::optional<RuleFinder::Proposal> RuleFinder::proposal_at(NodeId node) {
  const EqualApplication content = equations_.node(node);
  Proposal proposal;
  proposal.nodes = {node};
  proposal.pair = {{space_.term_of(content.application, same_names())}, {space_.term_of(content.equal)}};
  if (limits_.pruning >= Pruning::Subgraph) proposal.pair = generalizer_.generalised(std::move(proposal.pair));
  const bool is_symmetry = content.application == space_.rep(content.equal.rep).application;
  proposal.wanted = directions(terms_, space_.kernels(), proposal.pair, is_symmetry);
  if (proposal.wanted.empty()) return std::nullopt;
  proposal.key = renamed(terms_, proposal.wanted.front());
  return proposal;
}

std::optional<RuleFinder::Candidate> RuleFinder::candidate_from(NodeId node, Proposal& proposal) {
  if (limits_.pruning >= Pruning::Renaming) {
    const auto [known, is_new] = offered_.try_emplace(proposal.key, false);
    if (!is_new) {
      if (known->second) equations_.join_to_representative(node);
      return std::nullopt;
    }
  }
  stats_.after_subgraph++;
  if (!proposal.is_tested) test(proposal);  // the one like it that was is not new any more
  auto rule = written_rule(proposal.wanted.front(), proposal.form);
  if (!rule) {
    stats_.false_pairs++;
    return std::nullopt;
  }
  Candidate candidate{{node}, proposal.wanted.front(), proposal.wanted.front() == proposal.pair, {*std::move(rule)}};
  if (proposal.wanted.size() > 1)
    if (auto back = written_rule(proposal.wanted[1], proposal.back_form)) candidate.rules.push_back(*std::move(back));
  return candidate;
}

// ---- trials ----

void RuleFinder::test(std::vector<Proposal*> proposals) const {
  struct Outcome {
    size_t item;
    Form form, back_form;
  };
  std::vector<std::vector<Outcome>> by_thread(static_cast<size_t>(team_.threads));
  team_.for_own(proposals.size(), [&](int thread, size_t i) {
    test(*proposals[i]);
    by_thread[static_cast<size_t>(thread)].push_back({i, proposals[i]->form, proposals[i]->back_form});
  });
  std::vector<Outcome> own;
  for (const auto& outcomes : by_thread) own.insert(own.end(), outcomes.begin(), outcomes.end());
  for (const Outcome& outcome : gathered(team_.ranks, std::move(own))) {
    Proposal& tested = *proposals[outcome.item];
    tested.is_tested = true;
    tested.form = outcome.form;
    tested.back_form = outcome.back_form;
  }
}

void RuleFinder::test(Proposal& proposal) const {
  proposal.is_tested = true;
  proposal.form = tested_form(proposal.wanted.front());
  if (proposal.wanted.size() > 1 && proposal.form != Form::None && tested_rule(proposal.wanted[1], proposal.form))
    proposal.back_form = proposal.form;
}

// The most general form first: under any leading axes where the variables allow them. One that is a candidate and is
// rejected would be rejected without them too.
RuleFinder::Form RuleFinder::tested_form(const TermPair& pair) const {
  if (has_prefix(terms_, pair.left) && tested_rule(pair, Form::UnderLeadingAxes)) return Form::UnderLeadingAxes;
  return tested_rule(pair, Form::Plain) ? Form::Plain : Form::None;
}

std::optional<RewriteRule> RuleFinder::tested_rule(const TermPair& pair, Form form) const {
  if (!holds_in_fresh_worlds(terms_, pair, form == Form::UnderLeadingAxes, mix(limits_.seed + 17), tapes_))
    return std::nullopt;
  if (!survives_trials(terms_, pair, form == Form::UnderLeadingAxes, mix(limits_.seed + 18), tapes_))
    return std::nullopt;
  auto rule = written_rule(pair, form);
  if (!rule || !with_prefix(*rule, Shape{2}).ok() || !check_rule(*rule).ok()) return std::nullopt;
  return rule;
}

std::optional<RewriteRule> RuleFinder::written_rule(const TermPair& pair, Form form) const {
  if (form == Form::None) return std::nullopt;
  const std::string origin =
      fmt::format("generator seed={} max-ops={} family={}", limits_.seed, limits_.max_ops, terms_.family().name);
  auto rule = make_candidate(terms_, pair, form == Form::UnderLeadingAxes, origin);
  if (!rule.ok()) return std::nullopt;
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
