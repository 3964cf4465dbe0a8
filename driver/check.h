// The check of a result: the optimized graph against the original on fresh random inputs, ordinary ones and such as
// show what floats make of a rewrite (check_inputs.h).
#pragma once

#include "gopt/driver.h"
#include "planned_graph.h"

namespace gopt::driver {

// `operations`: of the original, which decide what CheckEngine::Auto takes. Never an error: what cannot be checked says
// so.
CheckReport check_equal(PlannedGraph& original, PlannedGraph& optimized, const CheckOptions& options, double operations,
                        uint64_t seed);

// Values that fp16 has no room for are stored in fp32: plans anew where there are any, and says how many. Of graphs
// that can be run as they are. Errors: those of running the graph on this machine's CPU.
Result<int> widen_values(PlannedGraph& graph, const DriverOptions& options, double operations);

// The graph's code, on the machine that it is for, against another meaning of the graph: the interpreter where that
// takes seconds, or code for the CPU where the target is another one; on ordinary inputs, extreme integers and those
// that the user gives. Nothing where neither is there, or the code cannot be run here.
std::optional<CheckReport> check_code(PlannedGraph& graph, const DriverOptions& options, double operations);
// How far code may be from another meaning of its graph: as the user says, or as its precision loses.
Tolerance tolerance_of_code(const DriverOptions& options);
// Where it was checked and failed, an error that says by how much and what may be done.
Status must_agree(const CheckReport& code_check);

// The inputs that a check failed on, else ordinary ones, and how far results may be apart there. Errors: those of
// drawing.
struct CheckedInputs {
  std::map<std::string, Tensor> inputs;
  Tolerance tolerance;
};
Result<CheckedInputs> inputs_of_failure(const Graph& original, const Graph& optimized, const CheckReport& report,
                                        const CheckOptions& options, uint64_t seed);

}  // namespace gopt::driver
