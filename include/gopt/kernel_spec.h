// A kernel apart from the plan that it was taken from: all that its code and its time depend on.
#pragma once

#include <string>
#include <vector>

#include "gopt/plan.h"

namespace gopt {

struct KernelSpec {
  Target target;
  Kernel kernel;                // of the buffers below
  std::vector<Buffer> buffers;  // Weight or Arena; an output that is stored where an operand lies is a view of it
};

// The kernel with the buffers that it uses, none of them a part of another.
KernelSpec spec_of(const Plan& plan, const Kernel& kernel);

// A plan of kernels that have nothing to do with each other, each to be timed alone (LoadedModel::time_kernel).
Plan timing_plan(const std::vector<KernelSpec>& specs);

// Every kernel that a plan of the graph may choose: of each layout that the target has, by each implementation that
// accepts it; no two of one signature. Errors: those of make_plan.
Result<std::vector<KernelSpec>> admitted_kernels(const Graph& graph, const Target& target);

// The kernels of the graph's cheapest plan whose times are estimates: as they are chosen, or in each way that can be
// timed where the choice is left to the start. Errors: those of make_plan.
Result<std::vector<KernelSpec>> estimated_kernels(const Graph& graph, const Target& target, KernelCosts& costs);

// Launches of several kernels of the graph's cheapest plan that may be worth their while, and whose times are not
// known. Errors: those of make_plan.
Result<std::vector<KernelSpec>> untimed_groups(const Graph& graph, const Target& target, KernelCosts& costs);

// What a kernel computes, on what shapes, layouts and threads, without its weights: kernels of one signature take one
// time.
std::string kernel_signature(const KernelSpec& spec);
std::string kernel_signature(const Plan& plan, const Kernel& kernel);

// Whether two plans run the same kernels in the same order.
bool has_same_kernels(const Plan& a, const Plan& b);

// The whole plan: kernels in order, what each reads and writes and where that lies, the target, and the graph, without
// names, estimates and the numbers of large weights. Plans of one signature make the same code, which takes one time.
std::string plan_signature(const Plan& plan);
// Likewise of a graph that is to be planned for a target, the values apart that are to stay in 32 bits.
std::string graph_signature(const Graph& graph, const Target& target);

}  // namespace gopt
