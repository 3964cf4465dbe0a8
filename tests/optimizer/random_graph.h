// Random small graphs over the operators that rules are about, and random inputs for them.
#pragma once

#include <map>
#include <random>

#include "gopt/graph.h"

namespace gopt {

// A graph of about `applications` operators; the same for the same state of `random`.
Graph random_graph(std::mt19937_64& random, int applications);

std::map<std::string, Tensor> random_inputs(std::mt19937_64& random, const Graph& graph);

}  // namespace gopt
