// Where one side of a rule occurs in an e-graph: for each node of the pattern an application of the graph, for each
// variable a value. See match.h for the same in a graph.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "equality/equality_graph.h"
#include "matching/pattern.h"
#include "matching/unify.h"

namespace gopt::optimizer {

// An application that stands for a pattern's node: its outputs (kNoValue: not in the graph), and which of its
// arguments stands for each of the pattern's.
struct MatchedNode {
  std::vector<EqualityId> outputs;
  std::vector<uint8_t> order;
  EqualityId any() const;  // some output that is there
};

struct EqualityMatch {
  std::vector<MatchedNode> nodes;
  std::vector<EqualityId> variables;
  std::vector<EqualityId> roots;  // by output of the pattern; kNoValue: not in the graph
  Substitution symbols;
  std::map<std::string, AttributeValue> numbers;
  ElementType floating = ElementType::Float32;  // what f32 of the rule stands for
};

// How a pattern's left side is walked: which value is matched next, and from where it is reached.
struct MatchStep {
  enum class Kind { Argument, User, Output } kind;
  PatternValue value;  // Argument, Output: to be matched; User: `value.node` uses what `from` is
  int from_node = -1;  // Argument: of this node, number `slot`; -1: the candidate for the first root
  int slot = 0;
  PatternValue from;
};

class EqualityPattern {
 public:
  explicit EqualityPattern(Pattern pattern);
  const Pattern& pattern() const { return pattern_; }
  const std::vector<MatchStep>& steps() const { return steps_; }
  bool has_prefix() const { return has_prefix_; }
  bool is_joined() const { return !pattern_.climbs.empty(); }

 private:
  void descend(const PatternValue& value, int from_node, int slot, std::vector<bool>& seen);

  Pattern pattern_;
  std::vector<MatchStep> steps_;
  bool has_prefix_ = false;
};

struct MatchLimits {
  bool any_kind = false;  // weight variables match every value
  size_t matches = 1000;
  size_t visits = 200'000;  // applications tried
};

struct EqualityMatches {
  std::vector<EqualityMatch> found;
  bool is_cut = false;  // a limit ended the search
};

// Matches under which the rule holds by what the graph's facts say.
EqualityMatches find_matches(const EqualityGraph& graph, const EqualityPattern& pattern, const MatchLimits& limits);

// The pattern's right side over what the left matched: its nodes, and for each output the value, or kNoValue where
// `wanted` says that it is not needed. Nothing where some operator is not (with `checked`: not surely) defined.
struct EqualityInstance {
  std::vector<MatchedNode> nodes;
  std::vector<EqualityId> outputs;
};
std::optional<EqualityInstance> instantiate(EqualityGraph& graph, const Pattern& pattern, const EqualityMatch& match,
                                            bool checked);

// One application of a pattern: its left side as it was matched, its right side as it was made.
struct PatternApplication {
  const EqualityPattern* pattern = nullptr;
  size_t rule = 0;
  bool is_reversed = false;
  std::vector<MatchedNode> left, right;
  std::vector<EqualityId> variables;
};

}  // namespace gopt::optimizer
