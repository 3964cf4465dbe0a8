// A graph planned under layouts that are given: what the cheapest plan is chosen from.
#pragma once

#include <optional>
#include <vector>

#include "buffers.h"

namespace gopt::planner {

// A decision about fusion with what the kernels that it concerns take.
struct PricedChoice {
  FusionChoice choice;
  double by_rule_ms = 0, otherwise_ms = 0;  // infinite: not known, since a kernel is not measured
  bool is_least = false;                    // otherwise it is more than that: a library kernel without a step alone
  bool is_taken = false;                    // it is otherwise in the plan
};

struct Drafted {
  Cover cover;
  Plan plan;
  std::vector<PricedChoice> choices = {};
};
Drafted draft(Cover described, CoverChoices choices);  // not priced

// Whether there is an implementation, none that is switched off, for each kernel that does something to its source
// first.
bool has_all_prologues(const Plan& plan);

// Takes the implementation that costs least; the plan's time is the sum of its kernels'.
void choose_implementation(const Plan& plan, Kernel& kernel, KernelCosts& costs);
void price(Plan& plan, KernelCosts& costs);

// Turns around what costs say is wrong of the decisions that the rules leave open. Precondition: it is priced.
void choose_fusion_by_cost(const Cover& described, Drafted& drafted, KernelCosts& costs);
// Plans with all the kernels that this asks for the times of, some of them parts of plans.
std::vector<Plan> plans_by_other_choices(const Cover& described, Drafted& drafted);

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
