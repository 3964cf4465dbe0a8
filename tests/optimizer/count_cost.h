// A cost for tests: a fixed price an operator that depends on an input, so that what is cheaper is plain to see.
#pragma once

#include <atomic>
#include <limits>

#include "gopt/optimizer.h"

namespace gopt {

// The search's time is no limit: what it finds must not depend on the machine.
inline SearchOptions untimed() {
  SearchOptions options;
  options.budget_seconds = std::numeric_limits<double>::infinity();
  return options;
}

class CountCost : public CostOracle {
 public:
  Cost estimate(const Graph& graph) override {
    calls++;
    Cost cost;
    for (size_t i = 0; i < graph.nodes().size(); i++) {
      const Node& node = *graph.nodes()[i];
      if (node.is(OpKind::Input) || node.is(OpKind::Constant)) continue;
      if (graph.depends_on_weights_only(static_cast<NodeId>(i))) continue;
      cost.kernels++;
      cost.time_ms += price(node.op);
    }
    return cost;
  }
  std::atomic<int> calls = 0;  // from several threads

 private:
  static double price(OpKind op) {
    switch (op) {
      case OpKind::MatMul:
      case OpKind::Conv: return 10;
      case OpKind::Split:
      case OpKind::Slice:
      case OpKind::Concat: return 0.5;
      default: return 1;
    }
  }
};

}  // namespace gopt
