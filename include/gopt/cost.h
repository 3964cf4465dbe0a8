// What a graph costs: the value that a search compares, and who gives it.
#pragma once

#include "gopt/graph.h"

namespace gopt {

struct Cost {
  double time_ms = 0;
  double operations = 0;  // scalar operations of everything that runs
  double bytes = 0;       // read and written by kernels
  int kernels = 0;
};

// Cost of a graph on a target: pure, never prints.
class CostOracle {
 public:
  virtual ~CostOracle() = default;
  virtual Cost estimate(const Graph& graph) = 0;
  // Of a part of a graph, whose inputs and outputs lie as its own nodes want them: two parts that take each other's
  // place in a graph differ by about what the graphs differ by.
  virtual Cost estimate_part(const Graph& part) { return estimate(part); }
  // How far the time of a kernel may be off, as a share of it: what gains less may gain nothing.
  virtual double uncertainty() const { return 0; }
};

}  // namespace gopt
