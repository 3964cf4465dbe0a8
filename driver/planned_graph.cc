#include "planned_graph.h"

#include "gopt/tile.h"

namespace gopt::driver {

namespace {

// With what a kernel does to the one after it as a part of its time.
class CostsInChain : public KernelCosts {
 public:
  CostsInChain(std::unique_ptr<KernelCosts> costs, const CostSource& source)
      : costs_(std::move(costs)),
        library_bonus_ms_(source.library_bonus_ms),
        crowding_ms_(source.crowding_ms),
        division_bonus_ms_(source.division_bonus_ms) {}
  double time_ms(const Plan& plan, const Kernel& kernel) override {
    constexpr double kLeastShare = 0.2;  // what is very short stays in order
    const double ms = costs_->time_ms(plan, kernel);
    const double bonus_ms = !is_launched_ahead(kernel) ? library_bonus_ms_
                            : divides_depth(kernel)    ? division_bonus_ms_
                                                       : 0;
    return std::max(kLeastShare * ms, ms - bonus_ms) + (fills_multiprocessors(kernel) ? crowding_ms_ : 0);
  }
  double uncertainty() const override { return costs_->uncertainty(); }
  bool is_measured(const Plan& plan, const Kernel& kernel) const override { return costs_->is_measured(plan, kernel); }
  bool prices_unlikely() const override { return costs_->prices_unlikely(); }

 private:
  std::unique_ptr<KernelCosts> costs_;
  double library_bonus_ms_, crowding_ms_, division_bonus_ms_;
};

}  // namespace

std::unique_ptr<KernelCosts> CostSource::make(double unknown_factor) const {
  auto costs = analytic_kernel_costs(roofline);
  if (cache) costs = cached_kernel_costs(cache, std::move(costs), known, unknown_factor);
  if (library_bonus_ms == 0 && crowding_ms == 0 && division_bonus_ms == 0) return costs;
  return std::make_unique<CostsInChain>(std::move(costs), *this);
}

CostSource analytic_costs(const Graph& model) { return {.roofline = machine_roofline(model)}; }

Result<CostSource> costs_of_run(const Graph& graph, const DriverOptions& options, const Outcome& outcome) {
  CostSource source = analytic_costs(graph);
  if (!outcome.has_measured_costs) return source;
  GOPT_ASSIGN_OR_RETURN(KernelCache cache, KernelCache::load(options.cache));
  cache.choose_machine(outcome.machine);
  source.cache = std::make_shared<KernelCache>(std::move(cache));
  GOPT_ASSIGN_OR_RETURN(source.known, admitted_kernels(graph, options.target));
  return source;
}

PlannedGraph::PlannedGraph(Graph graph, const Target& target, const CostSource& costs)
    : graph_(std::move(graph)), target_(target), costs_(costs) {
  if (target.kind == TargetKind::Onnx) target_.kind = TargetKind::Cpu;  // a runtime has no plan of ours
}

Result<const Plan*> PlannedGraph::made(std::optional<Plan>& plan, const Target& target) {
  if (!plan) {
    const auto costs = target.kind == target_.kind ? costs_.make(CostSource::kCautious) : analytic_costs(graph_).make();
    GOPT_ASSIGN_OR_RETURN(plan, make_plan(graph_, target, *costs));
  }
  return &*plan;
}

Result<const Plan*> PlannedGraph::plan() { return made(plan_, target_); }

bool PlannedGraph::is_reference() const {
  return target_.kind == TargetKind::Cpu && target_.precision == Precision::Fp32;
}

Result<RunnableModel*> PlannedGraph::code() {
  if (!code_) {
    GOPT_ASSIGN_OR_RETURN(const Plan* plan,
                          is_reference() ? made(plan_, target_) : made(cpu_plan_, {TargetKind::Cpu, target_.threads}));
    GOPT_ASSIGN_OR_RETURN(code_, compile_plan(*plan, target_.threads));
  }
  return code_.get();
}

Result<RunnableModel*> PlannedGraph::code_for_target() {
  if (is_reference()) return code();
  if (!target_code_) {
    GOPT_ASSIGN_OR_RETURN(const Plan* plan, made(plan_, target_));
    GOPT_ASSIGN_OR_RETURN(target_code_, compile_plan(*plan, target_.threads));
  }
  return target_code_.get();
}

void PlannedGraph::keep_in_fp32(std::set<ValueKey> values) {
  target_.in_fp32 = std::move(values);
  plan_.reset();
  target_code_.reset();
}

void PlannedGraph::take_plan_of(PlannedGraph other) {
  plan_ = std::move(other.plan_);
  code_ = std::move(other.code_);
  target_code_ = std::move(other.target_code_);
}

}  // namespace gopt::driver
