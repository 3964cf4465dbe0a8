#include "gopt/derivation.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "derivation/equality_fold.h"
#include "derivation/explain.h"
#include "derivation/goal.h"
#include "derivation/reversal.h"
#include "equality/schedule.h"

namespace gopt::optimizer {
namespace {

Operators operators_of(const Graph& side) {
  Operators ops;
  for (const NodePtr& node : side.nodes()) ops.set(static_cast<size_t>(node->op));
  ops.reset(static_cast<size_t>(OpKind::Input));
  return ops;
}

// One direction of a rule, for each number of leading axes. Where a rule leaves its operand, the reverse would match
// everything; such a rule is also read as a seed: where the operand of its root occurs, the root is put on it, for the
// rule to match. So Transpose(Transpose(x)) is made where Transpose(x) is there.
struct Direction {
  size_t rule;
  enum class Kind { Forward, Reversed, Seed } kind;
  Operators from, to;
  std::vector<EqualityPattern> patterns;
};

std::optional<Direction> direction_of(const RewriteRule& rule, size_t number, Direction::Kind kind, int max_prefix) {
  // What holds for some floating-point types proves nothing of a rule for all of them.
  if (!rule.real_types.empty()) return std::nullopt;
  const auto compiled = compile_rule(rule, max_prefix);
  if (!compiled.ok()) return std::nullopt;
  Direction direction{number, kind, operators_of(rule.left), operators_of(rule.right), {}};
  for (const Pattern& pattern : *compiled) direction.patterns.emplace_back(pattern);
  return direction;
}

// The rule from the operand of its root to its whole left side, if its right side is a variable.
std::optional<RewriteRule> seed_of(const RewriteRule& rule) {
  if (rule.right.outputs().size() != 1 || !rule.right.outputs().front().value.node->is(OpKind::Input))
    return std::nullopt;
  const Value& root = rule.left.outputs().front().value;
  std::optional<Value> operand;
  for (const Value& input : root.node->inputs) {
    if (!input || input.node->is(OpKind::Input) || input.node->is(OpKind::Constant)) continue;
    if (operand && *operand != input) return std::nullopt;
    operand = input;
  }
  if (!operand) return std::nullopt;
  RewriteRule seed = rule;
  seed.scheme = nullptr;
  seed.right = rule.left;
  seed.left = Graph(rule.left.inputs(), {{rule.left.outputs().front().name, *operand}}, {});
  return seed;
}

}  // namespace
}  // namespace gopt::optimizer

namespace gopt {

struct DerivationRules::Compiled {
  std::vector<RewriteRule> rules;
  std::vector<optimizer::Direction> directions;
  std::vector<bool> is_reversible;
};

DerivationRules::DerivationRules(std::vector<RewriteRule> rules, int max_prefix) {
  auto compiled = std::make_shared<Compiled>();
  compiled->rules = std::move(rules);
  compiled->is_reversible.resize(compiled->rules.size());
  for (size_t i = 0; i < compiled->rules.size(); i++) {
    const RewriteRule& rule = compiled->rules[i];
    if (rule.is_partial()) continue;
    using Kind = optimizer::Direction::Kind;
    if (auto forward = optimizer::direction_of(rule, i, Kind::Forward, max_prefix))
      compiled->directions.push_back(*std::move(forward));
    if (const auto seed = optimizer::seed_of(rule))
      if (auto seeding = optimizer::direction_of(*seed, i, Kind::Seed, max_prefix))
        compiled->directions.push_back(*std::move(seeding));
    const auto turned = optimizer::reversed(rule);
    if (!turned) continue;
    if (auto back = optimizer::direction_of(*turned, i, Kind::Reversed, max_prefix)) {
      compiled->directions.push_back(*std::move(back));
      compiled->is_reversible[i] = true;
    }
  }
  compiled_ = std::move(compiled);
}

const std::vector<RewriteRule>& DerivationRules::rules() const { return compiled_->rules; }
bool DerivationRules::is_reversible(size_t rule) const { return compiled_->is_reversible[rule]; }

std::string to_string(Derivation::Verdict verdict) {
  switch (verdict) {
    case Derivation::Verdict::Follows: return "follows";
    case Derivation::Verdict::Saturated: return "saturated: does not follow";
    case Derivation::Verdict::LimitReached: return "not derived within the limits";
    case Derivation::Verdict::NotRead: return "cannot be read";
  }
  return "";
}

}  // namespace gopt

namespace gopt::optimizer {
namespace {

using Directions = std::vector<const Direction*>;

// Of rules that have at most `foreign` operators that the goal has not, those that operators can lead to.
Directions select_directions(const DerivationRules::Compiled& compiled, const std::vector<bool>& allowed,
                             const Operators& own, int foreign) {
  const auto is_wanted = [&](const Direction& d) {
    return (allowed.empty() || allowed[d.rule]) && static_cast<int>(((d.from | d.to) & ~own).count()) <= foreign;
  };
  Operators available = own;
  for (bool grown = true; grown;) {
    const Operators before = available;
    for (const Direction& direction : compiled.directions)
      if (is_wanted(direction) && (direction.from & ~available).none()) available |= direction.to;
    grown = available != before;
  }
  Directions selected;
  for (const Direction& direction : compiled.directions)
    if (is_wanted(direction) && (direction.from & ~available).none()) selected.push_back(&direction);
  return selected;
}

// A direction's pattern in one saturation.
struct Schedule {
  const Direction* direction;
  PatternSchedule pattern;
};

class Saturation {
 public:
  Saturation(const Goal& goal, const DerivationRules::Compiled& compiled, const DerivationLimits& limits)
      : goal_(goal), compiled_(compiled), limits_(limits), graph_(goal.facts) {}

  Status add_goal() {
    GOPT_RETURN_IF_ERROR(add_side(goal_.rule.left, left_));
    return add_side(goal_.rule.right, right_);
  }

  void run(const Directions& directions, Derivation& result) {
    std::vector<Schedule> schedules;
    for (const Direction* direction : directions)
      for (const EqualityPattern& pattern : direction->patterns)
        schedules.push_back({direction, PatternSchedule(pattern)});
    saturate(std::move(schedules));
    result.iterations = iterations_;
    result.nodes = graph_.node_count();
    result.classes = graph_.class_count();
    if (is_derived()) {
      result.verdict = Derivation::Verdict::Follows;
      result.reason.clear();
      explain(result);
    } else {
      result.verdict = limit_.empty() ? Derivation::Verdict::Saturated : Derivation::Verdict::LimitReached;
      result.reason = limit_;
    }
  }

 private:
  Status add_side(const Graph& side, std::vector<EqualityId>& roots) {
    std::map<Value, EqualityId> made;
    for (size_t i = 0; i < goal_.rule.variables.size(); i++) {
      const RuleVariable& variable = goal_.rule.variables[i];
      made[side.inputs()[i]] =
          graph_.add_input(variable.name, variable.type, goal_.is_open[i], variable.kind == VariableKind::Weight);
    }
    for (const NodePtr& node : side.nodes()) {
      if (node->is(OpKind::Input)) continue;
      if (node->is(OpKind::Constant)) {
        made[{node, 0}] = graph_.add_constant(node->tensor);
        continue;
      }
      std::vector<EqualityId> inputs;
      for (const Value& input : node->inputs) inputs.push_back(input ? made.at(input) : kNoValue);
      const auto outputs =
          graph_.add(node->op, inputs, node->attributes, static_cast<uint32_t>(node->outputs.size()), false);
      if (!outputs) return Error{op_info(node->op).name + " is not defined for its operands"};
      for (int k = 0; k < static_cast<int>(outputs->size()); k++) made[{node, k}] = (*outputs)[k];
    }
    for (const GraphOutput& output : side.outputs()) roots.push_back(made.at(output.value));
    return Unit{};
  }

  bool is_derived() const {
    for (size_t i = 0; i < left_.size(); i++)
      if (graph_.find(left_[i]) != graph_.find(right_[i])) return false;
    return true;
  }

  bool is_present(const Direction& direction) const {
    for (size_t op = 0; op < kMaxOperators; op++)
      if (direction.from.test(op) && graph_.classes_with(static_cast<OpKind>(op)).empty()) return false;
    return true;
  }

  void saturate(std::vector<Schedule> schedules) {
    graph_.restore_congruence();
    fold_numbers(graph_);
    for (int iteration = 0; iteration < limits_.iterations && !is_derived(); iteration++) {
      iterations_++;
      bool is_resting = false;
      std::vector<std::pair<Schedule*, std::vector<EqualityMatch>>> found;
      for (Schedule& schedule : schedules) {
        if (!is_present(*schedule.direction)) continue;
        if (schedule.pattern.pattern().is_joined() && iteration >= limits_.joined_iterations) continue;
        std::vector<EqualityMatch> matches;
        if (schedule.pattern.is_resting(iteration))
          is_resting = true;
        else
          matches = schedule.pattern.new_matches(graph_, iteration, limits_.matches, limits_.any_kind);
        is_resting = is_resting || schedule.pattern.is_resting(iteration + 1);
        if (!matches.empty()) found.emplace_back(&schedule, std::move(matches));
      }
      const size_t nodes = graph_.node_count(), classes = graph_.class_count();
      for (const auto& [schedule, matches] : found)
        for (const EqualityMatch& match : matches) {
          if (graph_.node_count() > limits_.nodes) break;
          apply(*schedule, match);
        }
      graph_.restore_congruence();
      fold_numbers(graph_);
      if (graph_.node_count() > limits_.nodes) {
        limit_ = fmt::format("more than {} nodes", limits_.nodes);
        return;
      }
      if (nodes == graph_.node_count() && classes == graph_.class_count() && !is_resting) return;
    }
    if (!is_derived()) limit_ = fmt::format("{} iterations", limits_.iterations);
  }

  void apply(const Schedule& schedule, const EqualityMatch& match) {
    const Pattern& pattern = schedule.pattern.pattern().pattern();
    const Direction::Kind kind = schedule.direction->kind;
    auto made = instantiate(graph_, pattern, match, kind != Direction::Kind::Forward);
    if (!made || kind == Direction::Kind::Seed) return;
    const auto number = static_cast<uint32_t>(applications_.size());
    bool is_used = false;
    for (uint32_t output = 0; output < match.roots.size(); output++) {
      const EqualityId root = match.roots[output], value = made->outputs[output];
      if (root == kNoValue || !graph_.can_merge(root, value)) continue;
      is_used = graph_.merge(root, value, {number, output, {}, {}}) || is_used;
    }
    if (!is_used) return;
    applications_.push_back({&schedule.pattern.pattern(), schedule.direction->rule, kind == Direction::Kind::Reversed,
                             match.nodes, std::move(made->nodes), match.variables});
  }

  void explain(Derivation& result) {
    GraphBuilder builder;
    builder.adopt(goal_.rule.left);
    builder.adopt(goal_.rule.right);
    std::map<std::string, Value> inputs;
    for (const Value& input : goal_.rule.left.inputs()) inputs[input.node->name] = input;
    constexpr size_t kMaxMoves = 20'000;
    Explainer explainer(graph_, applications_, inputs, builder, kMaxMoves);
    std::vector<Value> now;
    for (EqualityId root : left_) now.push_back(explainer.term(root));
    std::set<size_t> used;
    for (size_t output = 0; output < left_.size(); output++) {
      const auto chain = explainer.explain(left_[output], right_[output]);
      if (!chain) {
        result.step_count = kMaxMoves;
        result.steps.clear();
        for (const PatternApplication& application : applications_) used.insert(application.rule);
        break;
      }
      result.step_count += chain->moves.size();
      for (const Move& move : chain->moves) {
        now[output] = move.after;
        if (move.rule < compiled_.rules.size()) used.insert(move.rule);
        if (result.step_count <= limits_.steps) result.steps.push_back(step(move, now));
      }
    }
    if (result.step_count > limits_.steps) result.steps.clear();
    result.used.assign(used.begin(), used.end());
  }

  std::string move_name(const Move& move) const {
    if (move.rule == kCopyMove) return kCopyStep;
    return move.rule == kArithmeticMove ? kArithmeticStep : compiled_.rules[move.rule].name;
  }

  DerivationStep step(const Move& move, const std::vector<Value>& now) const {
    std::vector<GraphOutput> outputs;
    for (size_t i = 0; i < now.size(); i++) outputs.push_back({goal_.rule.left.outputs()[i].name, now[i]});
    return {move_name(move), move.is_reversed, Graph(goal_.rule.left.inputs(), outputs, {})};
  }

  const Goal& goal_;
  const DerivationRules::Compiled& compiled_;
  const DerivationLimits& limits_;
  EqualityGraph graph_;
  std::vector<EqualityId> left_, right_;
  std::vector<PatternApplication> applications_;
  int iterations_ = 0;
  std::string limit_;
};

Operators operators_of(const Goal& goal) { return operators_of(goal.rule.left) | operators_of(goal.rule.right); }

Derivation saturate(const Goal& goal, const DerivationRules& rules, const Directions& directions,
                    const DerivationLimits& limits) {
  Derivation result;
  result.goal = goal.rule;
  Saturation saturation(goal, rules.compiled(), limits);
  if (const Status added = saturation.add_goal(); !added.ok())
    result.reason = added.error().message;
  else
    saturation.run(directions, result);
  return result;
}

constexpr int kAnyForeign = 1000;

// The same goal by fewer rules, where that takes no more steps: the record of unions gives a way, not a short one.
Derivation shortened(const Goal& goal, const DerivationRules& rules, Derivation found, DerivationLimits limits) {
  limits.nodes = std::max<size_t>(found.nodes, 10);
  const auto only = [&](const std::vector<size_t>& used) {
    std::vector<bool> allowed(rules.rules().size());
    for (size_t rule : used) allowed[rule] = true;
    return allowed;
  };
  const auto try_rules = [&](const std::vector<bool>& allowed) {
    const Directions directions = select_directions(rules.compiled(), allowed, operators_of(goal), kAnyForeign);
    Derivation other = saturate(goal, rules, directions, limits);
    if (other.verdict == Derivation::Verdict::Follows && other.step_count <= found.step_count) found = std::move(other);
  };
  if (found.step_count < 2) return found;
  try_rules(only(found.used));
  const std::vector<size_t> candidates = found.used;
  for (size_t rule : candidates) {
    if (found.used.size() < 2 || std::find(found.used.begin(), found.used.end(), rule) == found.used.end()) continue;
    std::vector<bool> allowed = only(found.used);
    allowed[rule] = false;
    try_rules(allowed);
  }
  return found;
}

}  // namespace
}  // namespace gopt::optimizer

namespace gopt {

Derivation derive_rule(const RewriteRule& rule, const DerivationRules& rules, const std::vector<bool>& allowed,
                       const DerivationLimits& limits) {
  const auto goal = optimizer::read_goal(rule);
  Derivation result;
  result.goal = rule;
  if (!goal.ok()) {
    result.reason = goal.error().message;
    return result;
  }
  // What is far from the goal is tried when what is near does not do.
  std::optional<optimizer::Directions> tried;
  for (int foreign : {0, 1, optimizer::kAnyForeign}) {
    auto directions = optimizer::select_directions(rules.compiled(), allowed, optimizer::operators_of(*goal), foreign);
    if (tried == directions) continue;
    result = optimizer::saturate(*goal, rules, directions, limits);
    tried = std::move(directions);
    if (result.verdict == Derivation::Verdict::Follows) return optimizer::shortened(*goal, rules, result, limits);
    if (result.verdict == Derivation::Verdict::NotRead) break;
  }
  return result;
}

}  // namespace gopt
