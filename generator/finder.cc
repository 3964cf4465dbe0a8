#include "finder.h"

#include <fmt/core.h>

#include <algorithm>

#include "general_types.h"
#include "parallel.h"
#include "trial.h"

namespace gopt::generator {
namespace {

constexpr size_t kMaxKeptValues = 20000;

NameMap same_names() {
  NameMap map;
  map.of_class.fill(0x76543210);
  return map;
}

bool is_within(const TermStore& terms, TermId part, TermId whole) {
  if (part == whole) return true;
  const auto& args = terms.term(whole).args;
  return std::any_of(args.begin(), args.end(), [&](TermId arg) { return is_within(terms, part, arg); });
}

void collect_applications(const TermStore& terms, TermId id, std::vector<TermId>& out) {
  if (!terms.term(id).is_application()) return;
  out.push_back(id);
  for (TermId arg : terms.term(id).args) collect_applications(terms, arg, out);
}

TermId replaced(TermStore& terms, TermId id, const std::map<TermId, TermId>& replacements) {
  if (const auto by = replacements.find(id); by != replacements.end()) return by->second;
  const Term term = terms.term(id);
  if (!term.is_application()) return id;
  std::vector<TermId> args;
  for (TermId arg : term.args) args.push_back(replaced(terms, arg, replacements));
  const auto made = terms.apply(term.op, term.output, args);
  return made ? *made : id;
}

bool has_prefix(const TermStore& terms, const std::vector<TermId>& roots) {
  const auto variables = variables_of(terms, roots);
  return std::any_of(variables.begin(), variables.end(), [&](const auto& name) {
    return terms.family().classes[static_cast<size_t>(name.first)].has_prefix;
  });
}

int weight_ops(const TermStore& terms, const std::vector<TermId>& roots) {
  int total = 0;
  for (TermId root : roots) total += terms.term(root).weight_ops;
  return total;
}

int activation_ops(const TermStore& terms, const std::vector<TermId>& roots) {
  int total = 0;
  for (TermId root : roots) total += terms.term(root).activation_ops;
  return total;
}

// A model's weights are folded, so that a left side which applies something to weights would find nothing.
bool can_be_left(const TermStore& terms, const std::vector<TermId>& from, const std::vector<TermId>& to) {
  for (TermId root : from) {
    const Term& term = terms.term(root);
    if (!term.is_application() || term.is_weight || term.weight_ops > 0) return false;
  }
  const auto left = variables_of(terms, from), right = variables_of(terms, to);
  return std::all_of(right.begin(), right.end(),
                     [&](const auto& name) { return std::find(left.begin(), left.end(), name) != left.end(); });
}

// Pairs of equal cost are kept both ways where tensors are moved or summed over, since what becomes cheap next to them
// differs; elementwise ones only towards the class's representative.
bool may_go_both_ways(const TermStore& terms, const TermPair& pair) {
  std::vector<TermId> parts;
  for (const auto* side : {&pair.left, &pair.right})
    for (TermId root : *side) collect_applications(terms, root, parts);
  return std::any_of(parts.begin(), parts.end(), [&](TermId part) {
    const Term& term = terms.term(part);
    return !term.is_weight && !op_info(terms.op(term.op).kind).has(kElementwise);
  });
}

// Names unique by the content that they stand for, so that they do not depend on what else is found.
void complete_name(RewriteRule& rule) { rule.name += "-" + rule.content_hash().substr(0, 6); }

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
      equations_(space) {
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
    if (candidate && seen.insert(renamed(candidate->pair)).second) pending.push_back(*std::move(candidate));
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
  if (limits_.pruning >= Pruning::Subgraph) {
    candidate.pair = generalised(std::move(candidate.pair));
    const auto general = with_general_types(terms_, candidate.pair);
    if (general && have_equal_values(general->left[0], general->right[0])) candidate.pair = *general;
  }
  const bool is_symmetry = content.application == space_.rep(content.equal.rep).application;
  const auto wanted = directions(candidate.pair, is_symmetry);
  if (wanted.empty()) return std::nullopt;
  const TermPair key = renamed(wanted.front());
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

// Which of the two sides a rule starts from; the dearer one, or both where it depends on sizes.
std::vector<TermPair> RuleFinder::directions(const TermPair& pair, bool is_symmetry) {
  const TermPair back{pair.right, pair.left};
  const auto cost = space_.kernels().cost(pair.left), other = space_.kernels().cost(pair.right);
  const bool is_cheaper = cost[0] < other[0] && cost[1] < other[1];
  const bool is_dearer = cost[0] > other[0] && cost[1] > other[1];
  const bool is_equal = cost == other;
  std::vector<TermPair> wanted;
  if (!is_cheaper && can_be_left(terms_, pair.left, pair.right)) wanted.push_back(pair);
  const bool goes_back = is_cheaper || (!is_dearer && !is_symmetry && (!is_equal || may_go_both_ways(terms_, pair)));
  if (goes_back && can_be_left(terms_, back.left, back.right)) wanted.push_back(back);
  // What is dearer but cannot be left because weights are folded in it: a step that others may follow.
  for (const TermPair& up : {pair, back})
    if (wanted.empty() && weight_ops(terms_, up.right) > 0 && can_be_left(terms_, up.left, up.right) &&
        activation_ops(terms_, up.right) <= activation_ops(terms_, up.left))
      wanted.push_back(up);
  return wanted;
}

// Numbered by first occurrence, so that pairs which differ by names are one.
TermPair RuleFinder::renamed(const TermPair& pair) {
  Renaming renaming;
  std::map<int, int> used;
  for (const auto& name : variables_of(terms_, pair.left)) renaming[name] = used[name.first]++;
  TermPair result;
  for (TermId root : pair.left) result.left.push_back(terms_.rename(root, renaming));
  for (TermId root : pair.right) result.right.push_back(terms_.rename(root, renaming));
  return result;
}

TermPair RuleFinder::generalised(TermPair pair) {
  while (auto general = once_generalised(pair)) pair = *std::move(general);
  // Where nothing is folded, weights may as well be activations.
  if (weight_ops(terms_, pair.left) + weight_ops(terms_, pair.right) > 0) return pair;
  std::map<TermId, TermId> replacements;
  std::map<int, int> used;
  for (const auto* side : {&pair.left, &pair.right})
    for (const auto& [variable_class, number] : variables_of(terms_, *side))
      used[variable_class] = std::max(used[variable_class], number + 1);
  for (const auto& [variable_class, number] : variables_of(terms_, pair.left)) {
    const VariableClass description = terms_.family().classes[static_cast<size_t>(variable_class)];
    if (description.kind != VariableKind::Weight) continue;
    const TermId variable = terms_.variable(variable_class, number);
    const int general = terms_.class_for(terms_.type(variable), VariableKind::Activation, description.has_prefix);
    replacements[variable] = terms_.variable(general, used[general]++);
  }
  TermPair result;
  for (TermId root : pair.left) result.left.push_back(replaced(terms_, root, replacements));
  for (TermId root : pair.right) result.right.push_back(replaced(terms_, root, replacements));
  return result;
}

// The pair with a subterm of both sides replaced by a variable, where it still holds.
std::optional<TermPair> RuleFinder::once_generalised(const TermPair& pair) {
  std::vector<TermId> parts;
  collect_applications(terms_, pair.left[0], parts);
  for (TermId part : parts) {
    if (part == pair.left[0] || !is_within(terms_, part, pair.right[0])) continue;
    const Term term = terms_.term(part);
    const int variable_class =
        terms_.class_for(TensorType(terms_.type(part)),
                         term.is_weight ? VariableKind::Weight : VariableKind::Activation, has_prefix(terms_, {part}));
    int number = 0;
    for (const auto& name : variables_of(terms_, pair.left))
      if (name.first == variable_class) number = std::max(number, name.second + 1);
    const std::map<TermId, TermId> replacements{{part, terms_.variable(variable_class, number)}};
    const TermPair general{{replaced(terms_, pair.left[0], replacements)},
                           {replaced(terms_, pair.right[0], replacements)}};
    if (have_equal_values(general.left[0], general.right[0])) return general;
  }
  return std::nullopt;
}

const Values* RuleFinder::value(TermId id) {
  const auto [entry, is_new] = values_.try_emplace(static_cast<uint32_t>(id));
  if (!is_new) return entry->second ? &*entry->second : nullptr;
  const Term term = terms_.term(id);
  std::optional<Values> made;
  if (!term.is_application()) {
    made.emplace();
    for (int assignment : {0, 1}) {  // a world each time, since the family's sizes grow
      World world(terms_, sizes_of(terms_.family(), assignment), {},
                  mix(space_.seed() + static_cast<uint64_t>(assignment)));
      const auto own = world.value(id, false);
      made->insert(made->end(), own->values.begin(), own->values.end());
    }
  } else {
    std::vector<TypeId> types;
    std::vector<const Scalar*> inputs;
    for (TermId arg : term.args) {
      const Values* input = value(arg);
      if (!input) return nullptr;
      inputs.push_back(input->data());
      types.push_back(terms_.term(arg).type);
    }
    if (const Kernel* kernel = space_.kernels().find(term.op, term.output, types)) {
      made.emplace(kernel->tapes[0].size() + kernel->tapes[1].size());
      if (!kernel->run(inputs.data(), made->data(), registers_)) made.reset();
    }
  }
  auto& kept = values_[static_cast<uint32_t>(id)];
  kept = std::move(made);
  return kept ? &*kept : nullptr;
}

bool RuleFinder::have_equal_values(TermId left, TermId right) {
  if (values_.size() > kMaxKeptValues) values_.clear();
  const Values *a = value(left), *b = value(right);
  return a && b && a->size() == b->size() &&
         std::equal(a->begin(), a->end(), b->begin(),
                    [](const Scalar& x, const Scalar& y) { return x.residue == y.residue; });
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
    offered_[renamed(candidate.pair)] = true;
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
