// Labels of variables at least cost, where a cost is a sum over single variables and pairs of them.
#pragma once

#include <vector>

namespace gopt::planner {

struct PairCost {
  int a = 0, b = 0;                       // variables
  std::vector<std::vector<double>> cost;  // by the labels of a and b
};

// A label for each variable; own[v][l] is the cost of label l of variable v. By elimination of one variable after
// another (nonserial dynamic programming; Bertele and Brioschi, 1972): exact as long as no more than `width` neighbours
// have to be tabulated together, else the variable at hand is given the label that is best for itself.
std::vector<int> least_cost_labels(const std::vector<std::vector<double>>& own, const std::vector<PairCost>& pairs,
                                   int width = 9);

}  // namespace gopt::planner
