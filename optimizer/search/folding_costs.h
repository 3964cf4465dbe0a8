// What a search compares: the costs that it is given, where rewriting must not leave too much to compute of weights
// alone. That runs once, before the first run, and costs nothing; but a product of two large matrices, which code
// generation computes as the definitions say, takes minutes.
#pragma once

#include "gopt/cost.h"

namespace gopt::optimizer {

// Multiplications and additions of a graph's products and convolutions of weights alone; of symbolic extents none.
double folded_operations(const Graph& graph);

class FoldingCosts : public CostOracle {
 public:
  // As much as `graph` has is never too much.
  FoldingCosts(CostOracle& costs, const Graph& graph);
  Cost estimate(const Graph& graph) override;
  Cost estimate_part(const Graph& part) override;
  double uncertainty() const override { return costs_.uncertainty(); }

 private:
  bool is_too_much(const Graph& graph) const { return folded_operations(graph) > most_operations_; }

  CostOracle& costs_;
  double most_operations_;
};

}  // namespace gopt::optimizer
