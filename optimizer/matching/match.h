// Finds where a rule's left side occurs in a graph. A binding says which nodes and values stand for the pattern's nodes
// and variables, under which symbols; only bindings under which the rule holds are returned. See rewrite.h, which
// applies them.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "matching/pattern.h"
#include "matching/unify.h"

namespace gopt::optimizer {

struct Binding {
  const Pattern* pattern = nullptr;
  std::vector<NodeId> nodes;     // of the graph, by pattern node
  std::vector<Value> variables;  // by pattern variable
  Substitution symbols;
  std::map<std::string, double> numbers;        // by float attribute variable
  ElementType floating = ElementType::Float32;  // what f32 of the rule stands for

  Value root(const Graph& graph, size_t output) const;
};

// A set of operators.
class OperatorSet {
 public:
  void insert(OpKind op) { bits_[static_cast<size_t>(op) / 64] |= uint64_t{1} << (static_cast<size_t>(op) % 64); }
  bool includes(const OperatorSet& other) const {
    for (size_t i = 0; i < bits_.size(); i++)
      if ((other.bits_[i] & ~bits_[i]) != 0) return false;
    return true;
  }

 private:
  static constexpr size_t kMostOperators = 512;
  std::array<uint64_t, kMostOperators / 64> bits_{};
};

// A graph with its nodes by operator and rank.
class MatchIndex {
 public:
  explicit MatchIndex(const Graph& graph);
  const Graph& graph() const { return graph_; }
  const std::vector<NodeId>& nodes_of(OpKind op) const;
  // Of those the ones whose first output has that many axes.
  std::span<const NodeId> nodes_of(OpKind op, int rank) const;
  const OperatorSet& operators() const { return operators_; }
  const std::vector<bool>& compensated() const { return compensated_; }  // by node (compensation.h)

 private:
  int rank(NodeId id) const;

  Graph graph_;
  std::vector<std::vector<NodeId>> by_op_;    // ascending
  std::vector<std::vector<NodeId>> by_rank_;  // by operator: the same by rank, then ascending
  OperatorSet operators_;
  std::vector<bool> compensated_;
};

// Where something changed: bindings are wanted only if they touch a node so marked.
struct MatchRegion {
  std::vector<bool> changed;        // by node
  std::vector<bool> roots;          // by node: those worth trying as first root
  std::vector<bool> sibling_roots;  // the same for rules with several outputs
};
MatchRegion region_around(const Graph& graph, const std::vector<NodeId>& changed, int depth);

// All bindings, in the order of the first root's node; at most `limit`.
std::vector<Binding> find_bindings(const MatchIndex& index, const Pattern& pattern, const MatchRegion* region = nullptr,
                                   size_t limit = 100000);

}  // namespace gopt::optimizer
