// A graph with what is made of it, each once: its plan, and that plan's code, built and loaded. What is checked, timed
// and emitted is then one plan.
#pragma once

#include <memory>
#include <optional>
#include <set>

#include "gopt/driver.h"
#include "gopt/kernel_costs.h"
#include "gopt/runnable_model.h"
#include "machine_speed.h"

namespace gopt::driver {

// Kernel costs as the user asked for them: analytic, or measured ones with the kernels that calibrate what they lack.
struct CostSource {
  Roofline roofline = machine_roofline();  // of the analytic ones
  std::shared_ptr<KernelCache> cache;      // null: analytic
  std::vector<KernelSpec> known;
  // That a library's kernel is taken to cost less, since what comes after it does nothing ahead that it would hinder.
  double library_bonus_ms = 0;
  // That a kernel is taken to cost more beside whose blocks the next one's find no room.
  double crowding_ms = 0;
  // That a kernel is taken to cost less several blocks of which divide the depth of a tile.
  double division_bonus_ms = 0;
  std::unique_ptr<KernelCosts> make(double unknown_factor = 1) const;
  static constexpr double kCautious = 2;  // what is emitted stands on kernels that were timed, where some were
};
// Analytic ones for runs of this model.
CostSource analytic_costs(const Graph& model);
// Those that an optimization of the graph went by; what it timed is in the cache now. Errors: those of reading that.
Result<CostSource> costs_of_run(const Graph& graph, const DriverOptions& options, const Outcome& outcome);

class PlannedGraph {
 public:
  PlannedGraph(Graph graph, const Target& target, const CostSource& costs);

  const Graph& graph() const { return graph_; }
  bool is_for_gpu() const { return target_.kind == TargetKind::Cuda; }
  // Plans and code hold for any size of open extents.
  bool is_open() const { return !target_.open.empty(); }
  // For the target. Errors: what cannot be planned.
  Result<const Plan*> plan();
  // For this machine's CPU in fp32: the plan's own code, where that is the target. Errors: those of planning and
  // building.
  Result<RunnableModel*> code();
  // The plan's own code, for this machine's CPU or its GPU. Errors: those of planning and building, no GPU.
  Result<RunnableModel*> code_for_target();
  bool has_code_for_target() const { return (is_reference() ? code_ : target_code_) != nullptr; }
  // Plans anew, with these values stored in 32 bits.
  void keep_in_fp32(std::set<ValueKey> values);
  // Takes the place of its plan and code; of the same graph and target.
  void take_plan_of(PlannedGraph other);

 private:
  bool is_reference() const;
  Result<const Plan*> made(std::optional<Plan>& plan, const Target& target);

  Graph graph_;
  Target target_;
  const CostSource& costs_;
  std::optional<Plan> plan_, cpu_plan_;
  std::unique_ptr<RunnableModel> code_, target_code_;
};

}  // namespace gopt::driver
