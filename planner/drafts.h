// A graph planned under layouts that are given: what the cheapest plan is chosen from.
#pragma once

#include <optional>
#include <vector>

#include "buffers.h"

namespace gopt::planner {

struct Drafted {
  Cover cover;
  Plan plan;
};

// The kernel by each implementation that the planner chooses from; as it is, where its kind has none: loops of our own.
std::vector<Kernel> candidates_for(const Plan& plan, const Kernel& kernel, const KernelCosts& costs);

// One draft for each layout of the target, given to every class; one alone where there is no class. Not priced.
std::vector<Drafted> uniform_drafts(const Cover& described);

// Each kernel by the implementation that costs least.
struct PricedDrafts {
  std::vector<Drafted> uniform;
  std::optional<Drafted> mixed;  // each class in a layout of its own, where that differs
  Drafted& cheapest();
};
Result<PricedDrafts> priced_drafts(const Graph& graph, const CoverOptions& options, KernelCosts& costs);

// A kernel that converts the value, alone in a plan.
Plan conversion(const Cover& cover, const Value& value, const Layout& from, const Layout& to);

}  // namespace gopt::planner
