#include "gopt/near_misses.h"

#include <fmt/core.h>

#include <optional>
#include <unordered_map>

#include "gopt/node_names.h"
#include "matching/pattern_matcher.h"
#include "matching/rule_selection.h"
#include "passes/passes.h"

namespace gopt {

std::string_view name_of(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::Marks: return "marks";
    case Obstacle::OtherUser: return "other user";
    case Obstacle::Condition: return "condition false";
    case Obstacle::Undecided: return "condition undecided";
    case Obstacle::Cycle: return "cycle";
    case Obstacle::Rounding: return "rounding";
    case Obstacle::Sharing: return "sharing";
    case Obstacle::Weight: return "no weight";
    case Obstacle::Extent: return "extent";
    case Obstacle::Rank: return "rank";
    case Obstacle::Type: return "type";
    case Obstacle::Constant: return "constant";
    case Obstacle::Axis: return "axis";
    case Obstacle::Attribute: return "attribute";
    case Obstacle::Input: return "input";
    case Obstacle::Output: return "output";
    case Obstacle::Between: return "node between";
    case Obstacle::Node: return "missing node";
  }
  return "";
}

const std::vector<Obstacle>& all_obstacles() {
  static const std::vector<Obstacle> all = [] {
    std::vector<Obstacle> obstacles;
    for (int k = 0; k <= static_cast<int>(Obstacle::Node); k++) obstacles.push_back(static_cast<Obstacle>(k));
    return obstacles;
  }();
  return all;
}

}  // namespace gopt

namespace gopt::optimizer {
namespace {

// Without the marks of a pattern's symbols.
std::string as_the_rule_says(std::string text) {
  std::erase_if(text, [](char c) { return c == '"' || c == '?'; });
  return text;
}

std::string operator_of(const Node& node) { return node.opaque ? node.opaque->op_type : op_info(node.op).name; }

std::string text_of(const Mismatch& mismatch, Obstacle obstacle) {
  if (!mismatch.found) return "nothing";
  const Node& node = *mismatch.found.node;
  if (!mismatch.attribute.empty()) return mismatch.attribute + "=" + to_string(node.attributes.at(mismatch.attribute));
  switch (obstacle) {
    case Obstacle::Input: return fmt::format("{} of {} inputs", operator_of(node), node.inputs.size());
    case Obstacle::Output:
      return fmt::format("output {} of {} of {}", mismatch.found.output, node.outputs.size(), operator_of(node));
    case Obstacle::Node:
    case Obstacle::Between: return operator_of(node);
    default: return fmt::format("{} {}", operator_of(node), to_string(mismatch.found.type()));
  }
}

// What was passed over on the way to a match.
struct Passed {
  Obstacle obstacle;
  std::string expected, found;
  int node = -1;  // of the pattern, which is not there; `value` is
  Value value = {};
};

// Passes over one obstacle, and keeps of each root the match whose obstacle says most.
class OneObstacle {
 public:
  static constexpr bool kIsStrict = false;
  struct Note {
    std::optional<Passed> passed;
  };

  OneObstacle(const Graph& graph, const Pattern& pattern, bool is_allowed, int least_nodes)
      : graph_(graph), pattern_(pattern), is_allowed_(is_allowed), least_nodes_(least_nodes) {}

  void begin(NodeId root) {
    tried_ = 0;
    best_.reset();
    has_match_ = false;
    root_ = root;
  }
  const std::optional<Passed>& best() const { return best_; }
  bool has_match() const { return has_match_; }

  bool is_full() const { return has_match_ || tried_ > kMostTried; }
  bool has_passed(const Note& note) const { return note.passed.has_value(); }

  template <class Where>
  bool passes(Note& note, Obstacle obstacle, Where where) {
    tried_++;
    if (note.passed) return is_same(*note.passed, obstacle, where);
    const Mismatch mismatch = where();
    note.passed = {obstacle, as_the_rule_says(mismatch.expected), text_of(mismatch, obstacle), mismatch.node,
                   mismatch.found};
    return true;
  }

  void found(const MatchState<Note>& state) {
    if (!has_enough_nodes(state)) return;
    std::optional<Passed> passed = state.note.passed;
    if (passed && !is_allowed_) return;  // its marks are a second one
    if (!passed && !is_allowed_) passed = {Obstacle::Marks, "to be allowed", "a match"};
    if (!passed) passed = other_user(state);
    if (!passed)
      has_match_ = true;
    else if (!best_ || passed->obstacle < best_->obstacle)
      best_ = std::move(passed);
  }

 private:
  static constexpr long kMostTried = 1000;  // at one root: an answer is wanted of every rule, not of one in all ways

  // What follows from the first obstacle is none of its own: a rank that does not fit shows in attributes and shapes,
  // too, an axis in shapes, and a missing node wherever it is used.
  template <class Where>
  static bool is_same(const Passed& passed, Obstacle obstacle, Where where) {
    const bool is_extent = obstacle == Obstacle::Extent, is_attribute = obstacle == Obstacle::Attribute;
    if (passed.obstacle == Obstacle::Rank)
      return is_extent || is_attribute || obstacle == Obstacle::Axis || obstacle == Obstacle::Rank;
    if (passed.obstacle == Obstacle::Output) return is_extent || is_attribute;
    if (passed.obstacle == Obstacle::Axis) return is_extent;
    if (passed.obstacle != obstacle) return false;
    if (obstacle == Obstacle::Rounding) return true;
    if (obstacle != Obstacle::Node || passed.node < 0) return false;
    const Mismatch mismatch = where();
    return mismatch.node == passed.node && mismatch.found == passed.value;
  }

  // Enough of the rule's nodes, and one missing at most.
  bool has_enough_nodes(const MatchState<Note>& state) const {
    int bound = 0, missing = 0;
    for (size_t k = 0; k < state.nodes.size(); k++)
      if (pattern_.left.nodes[k].op != OpKind::Constant) ++(state.nodes[k] == kUnbound ? missing : bound);
    if (missing > 1 || (missing == 0 && bound == 0)) return false;
    return bound >= (state.note.passed ? least_nodes_ : 1);
  }

  bool is_root(size_t at) const {
    const auto& outputs = pattern_.left.outputs;
    return std::any_of(outputs.begin(), outputs.end(),
                       [&](const PatternValue& output) { return output.node == static_cast<int>(at); });
  }
  // A use of what is inside the match by what is not: it does not go away with the match.
  std::optional<Passed> other_user(const MatchState<Note>& state) const {
    for (size_t k = 0; k < state.nodes.size(); k++) {
      const NodeId id = state.nodes[k];
      if (is_root(k) || pattern_.left.nodes[k].op == OpKind::Constant || graph_.depends_on_weights_only(id)) continue;
      const Node& node = *graph_.node(id);
      for (NodeId user : graph_.users()[position(id)])
        if (std::find(state.nodes.begin(), state.nodes.end(), user) == state.nodes.end())
          return Passed{Obstacle::OtherUser, operator_of(node) + " used here alone", operator_of(*graph_.node(user))};
      for (const GraphOutput& output : graph_.outputs())
        if (output.value.node.get() == &node)
          return Passed{Obstacle::OtherUser, operator_of(node) + " used here alone", "an output"};
    }
    return std::nullopt;
  }

  const Graph& graph_;
  const Pattern& pattern_;
  const bool is_allowed_;
  const int least_nodes_;
  long tried_ = 0;
  NodeId root_ = kUnbound;
  std::optional<Passed> best_;
  bool has_match_ = false;
};

// What a rule meets at the nodes of a graph: a match, or the obstacle.
struct Encounter {
  bool has_match = false;
  std::optional<Passed> best;
};
using Encounters = std::map<NodeId, Encounter>;

void meet(const MatchIndex& index, const Pattern& pattern, bool is_allowed, const NearMissOptions& options,
          Encounters& encounters) {
  const Graph& graph = index.graph();
  OneObstacle slack(graph, pattern, is_allowed, options.least_nodes);
  PatternMatcher<OneObstacle> matcher(index, pattern, nullptr, slack);
  for (NodeId root : index.nodes_of(pattern.left.nodes[pattern.first_root()].op)) {
    const bool is_wanted = options.node.empty() || name_of_node(*graph.node(root)) == options.node;
    if (graph.depends_on_weights_only(root) || !is_wanted) continue;
    slack.begin(root);
    matcher.match_at(root);
    if (!slack.has_match() && !slack.best()) continue;
    Encounter& known = encounters[root];
    known.has_match = known.has_match || slack.has_match();
    if (slack.best() && (!known.best || slack.best()->obstacle < known.best->obstacle)) known.best = slack.best();
  }
}

std::string family_of(const RewriteRule& rule) {
  if (rule.scheme) return "any rank";
  const std::string key = "family=";
  const size_t at = rule.origin.find(key);
  if (at == std::string::npos) return rule.origin.substr(0, rule.origin.find(' '));
  const size_t start = at + key.size();
  return rule.origin.substr(start, rule.origin.find(' ', start) - start);
}

void report(const Graph& graph, const RewriteRule& rule, const Encounters& encounters, NearMisses& out) {
  for (const auto& [root, met] : encounters) {
    if (met.has_match)
      out.matches[rule.name]++;
    else
      out.misses.push_back({rule.name, family_of(rule), name_of_node(*graph.node(root)), met.best->obstacle,
                            met.best->expected, met.best->found});
  }
}

// Patterns of all rules, whatever their marks, that otherwise are those of a search with no option set.
Result<std::vector<Pattern>> patterns_of(const std::vector<RewriteRule>& rules, const Graph& graph) {
  SearchOptions options;
  for (const RewriteRule& rule : rules) options.enabled_rules.push_back(rule.name);
  GOPT_ASSIGN_OR_RETURN(std::vector<Pattern> patterns, select_patterns(rules, options, graph));
  for (Pattern& pattern : patterns) pattern.keeps_compensation = true;
  return patterns;
}

}  // namespace
}  // namespace gopt::optimizer

namespace gopt {

using namespace optimizer;

Result<NearMisses> find_near_misses(const Graph& graph, const std::vector<RewriteRule>& rules,
                                    const NearMissOptions& options) {
  Graph prepared = graph;
  for (const Pass& pass : passes()) prepared = replace_each(prepared, pass.run(prepared));
  GOPT_ASSIGN_OR_RETURN(const std::vector<Pattern> patterns, patterns_of(rules, graph));
  std::unordered_map<std::string, std::vector<const Pattern*>> of_rule;
  for (const Pattern& pattern : patterns) of_rule[pattern.rule_name].push_back(&pattern);
  const MatchIndex index(prepared);
  NearMisses out;
  for (const RewriteRule& rule : rules) {
    Encounters encounters;
    for (const Pattern* pattern : of_rule[rule.name])
      meet(index, *pattern, may_apply(rule.marks, {}), options, encounters);
    report(prepared, rule, encounters, out);
  }
  return out;
}

}  // namespace gopt
