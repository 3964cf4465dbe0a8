// Which pairs of equal graphs TASO keeps as rules.
#pragma once

#include <vector>

#include "graph.h"

namespace taso_generator {

class Pruning {
 public:
  explicit Pruning(const std::vector<Operator>& operators);

  // Not where the sides share an application, end in the same one, or neither has its variables in order.
  bool is_kept(const Graph& a, const Graph& b) const;
  // Whether the second pair is the first with variables put for its variables.
  bool is_instance(const Graph& source, const Graph& target, const Graph& own_source, const Graph& own_target) const;

 private:
  using Substitution = std::array<int8_t, 32>;
  bool share(const Application& a, const Application& b) const;
  bool end_alike(const Application& a, const Application& b) const;
  int first_use(const Graph& graph, int variable) const;
  bool is_in_order(const Graph& graph) const;
  bool matches(const Graph& general, const Graph& special, Substitution& images) const;

  std::vector<int> inputs_;  // of each operator
};

}  // namespace taso_generator
