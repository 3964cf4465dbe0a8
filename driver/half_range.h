// Which values a plan of fp16 cannot store so, found by running its graph in fp32.
#pragma once

#include <map>
#include <set>
#include <string>

#include "planned_graph.h"

namespace gopt::driver {

// The graph with all that a plan's kernels store as outputs, after its own.
Graph with_stored_values(const Graph& graph, const Plan& plan);

// Of what the plan stores in 16 bits and the graph has as f32, weights included: what leaves half the range of fp16 on
// these inputs, since on others it may be twice as large. Computed by the interpreter, or by code for this machine's
// CPU. Errors: those of planning, building and running.
Result<std::set<ValueKey>> values_beyond_half(PlannedGraph& planned, const std::map<std::string, Tensor>& inputs,
                                              bool interprets);

}  // namespace gopt::driver
