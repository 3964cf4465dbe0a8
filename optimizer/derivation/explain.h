// Why two values of an e-graph are equal: the chain of terms that its record of unions gives, one rule a step.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "equality/equality_match.h"

namespace gopt::optimizer {

// Moves that no rule makes: between a copy and what it copies, and between an application to numbers and its value.
constexpr size_t kCopyMove = ~size_t{0}, kArithmeticMove = kCopyMove - 1;
struct Move {
  Value after;
  size_t rule;
  bool is_reversed;
};
struct Chain {
  Value start;
  std::vector<Move> moves;
  const Value& end() const { return moves.empty() ? start : moves.back().after; }
};

class Explainer {
 public:
  // `inputs` are the values of the graph's Input nodes, by name. Terms are made by `builder`.
  Explainer(const EqualityGraph& graph, const std::vector<PatternApplication>& applications,
            const std::map<std::string, Value>& inputs, GraphBuilder& builder, size_t max_moves)
      : graph_(graph), applications_(applications), inputs_(inputs), builder_(builder), max_moves_(max_moves) {}

  // From the term of one id to that of another. Nothing where it would take more moves than allowed. Precondition: they
  // are in one class.
  std::optional<Chain> explain(EqualityId from, EqualityId to);
  Value term(EqualityId id);

 private:
  std::optional<Chain> explain_link(EqualityId from);
  std::optional<Chain> explain_copy(EqualityId copy, EqualityId original);
  std::optional<Chain> explain_arithmetic(EqualityId from, EqualityId to, const std::vector<EqualityId>& numbers);
  std::optional<Chain> explain_congruence(EqualityId from, EqualityId to, const std::vector<uint8_t>& order);
  // From the term of an id to the instance of a pattern's value.
  std::optional<Chain> align(const PatternApplication& application, const PatternSide& side,
                             const std::vector<MatchedNode>& nodes, const PatternValue& value, EqualityId id);
  // The chain of a node from those of its arguments.
  std::optional<Chain> lift(EqualityId id, const std::vector<Chain>& arguments);
  Value apply(EqualityId id, const std::vector<Value>& arguments);
  bool extend(Chain& chain, const Chain& more) const;
  static Chain turned(const Chain& chain);

  const EqualityGraph& graph_;
  const std::vector<PatternApplication>& applications_;
  const std::map<std::string, Value>& inputs_;
  GraphBuilder& builder_;
  const size_t max_moves_;
  std::map<EqualityId, Value> terms_;
  std::map<std::pair<EqualityId, EqualityId>, std::optional<Chain>> known_;
};

}  // namespace gopt::optimizer
