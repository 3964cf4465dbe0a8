// Analytic costs: a roofline over what a kernel reads, writes and computes, with efficiencies as measured for oneDNN's
// kernels (DESIGN.md 9), and the cost of a graph as the sum over the kernels of its plan.
#include <algorithm>
#include <map>
#include <numeric>

#include "attention.h"
#include "buffers.h"
#include "choices.h"
#include "gopt/kernel_costs.h"
#include "implementations.h"
#include "milliseconds.h"
#include "node_work.h"
#include "products.h"
#include "recurrences.h"
#include "row_functions.h"
#include "sequences.h"

namespace gopt {
namespace {

using planner::is_product;
using planner::product_operations;
using planner::work_of;

// Multiply-adds of a product or convolution, counted two.
double library_operations(const Plan& plan, const Kernel& kernel) {
  const Buffer &out = plan.buffer(kernel.output_buffers[0]), &b = plan.buffer(kernel.input_buffers[1]);
  const auto elements = static_cast<double>(element_count(out.dims));
  const Buffer& a = plan.buffer(kernel.input_buffers[0]);
  if (kernel.kind == KernelKind::Convolution) {
    const bool transposed = kernel.nodes[0]->is(OpKind::ConvTranspose);
    return 2 * (transposed ? static_cast<double>(element_count(a.dims)) : elements) *
           static_cast<double>(element_count(std::span(b.dims).subspan(1)));
  }
  const Attributes& attributes = kernel.nodes[0]->attributes;
  auto transposed = attributes.find("transA");
  const bool ta = transposed != attributes.end() && std::get<Index>(transposed->second) != Index(0);
  return 2 * elements * static_cast<double>(ta ? a.dims[a.dims.size() - 2] : a.dims.back());
}

// Products and convolutions that a generated kernel computes in loops.
struct Products {
  int count = 0;
  double operations = 0;
};
Products covered_products(const Plan& plan, const Kernel& kernel) {
  Products products;
  const int64_t out = element_count(plan.buffer(kernel.output_buffers[0]).dims);
  for (const NodePtr& node : kernel.nodes) {
    if (!is_product(*node)) continue;
    products.count++;
    products.operations += product_operations(*node, out);
  }
  return products;
}

// On a CPU, by a loop over the updates.
bool is_scattered(const Plan& plan, const Kernel& kernel) {
  return plan.target.kind == TargetKind::Cpu && kernel.nodes.size() == 1 && kernel.nodes[0]->is(OpKind::ScatterAlong);
}

double kernel_operations(const Plan& plan, const Kernel& kernel) {
  if (kernel.kind == KernelKind::Reorder || kernel.kind == KernelKind::External) return 0;
  if (kernel.kind == KernelKind::Recurrence) return planner::recurrence_operations(plan, kernel);
  if (kernel.kind == KernelKind::RowFunction) return planner::row_function_operations(plan, kernel);
  if (kernel.kind == KernelKind::Pooling) return work_of(*kernel.nodes[0]).operations;
  if (kernel.kind == KernelKind::Attention) return planner::attention_operations(plan, kernel);
  if (kernel.kind == KernelKind::Group || kernel.kind == KernelKind::Sequence)
    return std::accumulate(kernel.members.begin(), kernel.members.end(), 0.0, [&](double sum, const Kernel& member) {
      return sum +
             (kernel.kind == KernelKind::Group ? library_operations(plan, member) : kernel_operations(plan, member));
    });
  if (kernel.kind != KernelKind::Generated) return library_operations(plan, kernel);
  double operations = 0;
  if (is_scattered(plan, kernel)) {  // each update is written once, whatever the definition looks at
    for (const BufferId input : kernel.input_buffers)
      operations += static_cast<double>(element_count(plan.buffer(input).dims));
    return operations;
  }
  for (const NodePtr& node : kernel.nodes) operations += is_product(*node) ? 0 : work_of(*node).operations;
  return operations + covered_products(plan, kernel).operations;
}

double kernel_bytes(const Plan& plan, const Kernel& kernel) {
  double bytes = 0;
  for (BufferId b : kernel.input_buffers) {
    const Buffer& in = plan.buffer(b);
    auto size = static_cast<double>(in.size_bytes);
    // Slices and gathers read no more than they write.
    if (kernel.kind == KernelKind::Generated && kernel.nodes.size() == 1 &&
        op_info(kernel.nodes[0]->op).has(kDataMovement))
      size = std::min(size, static_cast<double>(plan.buffer(kernel.output_buffers[0]).size_bytes));
    bytes += size;
  }
  for (BufferId b : kernel.output_buffers) bytes += static_cast<double>(plan.buffer(b).size_bytes);
  return bytes;
}

// Loops of our own reach a fraction of the peak: one operation an instruction, functions by polynomials.
constexpr double kGeneratedEfficiency = 0.1;
constexpr double kGeneratedProductEfficiency = 0.2;

// Of a data-center GPU in fp32: a kernel in a graph costs a launch and the ramp of a grid that fills little of the
// device.
constexpr Roofline kGpuRoofline{.gflops = 40000, .gbps = 3500, .launch_us = 3};

// Of a data-center GPU's tensor cores over its other arithmetic; small kernels use little of it.
double tensor_core_speed(const Plan& plan, const Kernel& kernel) {
  constexpr double kTf32Speed = 3, kHalfSpeed = 6;
  if (plan.target.kind != TargetKind::Cuda) return 1;
  if (is_half(plan.buffer(kernel.input_buffers[0]).element)) return kHalfSpeed;
  return is_tf32(plan, kernel) ? kTf32Speed : 1;
}

class AnalyticCosts : public KernelCosts, public planner::Choices {
 public:
  explicit AnalyticCosts(const Roofline& roofline) : roofline_(roofline) {}

  double time_ms(const Plan& plan, const Kernel& kernel) override {
    if (kernel.kind == KernelKind::External) return 0;  // the same in every plan, and nobody knows it
    const Roofline roofline = roofline_of(plan.target, roofline_);
    if (kernel.kind == KernelKind::Group) return group_ms(plan, kernel, roofline.launch_us * 1e-3);
    if (kernel.kind == KernelKind::Sequence) return planner::sequence_ms(plan, kernel);
    if (kernel.kind == KernelKind::Recurrence) return planner::recurrence_ms(plan, kernel, roofline);
    if (kernel.kind == KernelKind::RowFunction) return planner::row_function_ms(plan, kernel, roofline);
    const bool library = planner::is_library(kernel.kind);
    const double efficiency =
        library ? planner::implementation_of(plan, kernel).efficiency(plan, kernel) : kGeneratedEfficiency;
    const double speed = library ? tensor_core_speed(plan, kernel) : 1;
    const Products products = kernel.kind == KernelKind::Generated ? covered_products(plan, kernel) : Products{};
    const double compute_ms =
        (kernel_operations(plan, kernel) - products.operations) / (roofline.gflops * efficiency * speed * 1e6) +
        products.operations / (roofline.gflops * kGeneratedProductEfficiency * 1e6);
    const double memory_ms = kernel_bytes(plan, kernel) / (roofline.gbps * 1e6);
    // Arithmetic and memory overlap, but never wholly: a tenth of the smaller shows, so that less of either is always
    // better. The launch favours fewer kernels; a product within a kernel starts streams of its own.
    const double hidden_ms = 0.1 * std::min(compute_ms, memory_ms);
    return planner::in_steps(std::max(compute_ms, memory_ms) + hidden_ms +
                             roofline.launch_us * 1e-3 * (1 + 0.5 * products.count));
  }

 private:
  // One launch in place of many.
  double group_ms(const Plan& plan, const Kernel& group, double launch_ms) {
    double ms = launch_ms;
    for (const Kernel& member : group.members) ms += time_ms(plan, member) - launch_ms;
    return planner::in_steps(ms);
  }

  Roofline roofline_;
};

class PlanOracle : public CostOracle {
 public:
  PlanOracle(const Target& target, std::unique_ptr<KernelCosts> costs) : costs_(std::move(costs)) {
    options_.target = target;
    options_.tolerant = true;
  }

  Cost estimate(const Graph& graph) override { return estimate_with(options_, graph); }
  double uncertainty() const override { return costs_->uncertainty(); }
  Cost estimate_part(const Graph& part) override {
    planner::CoverOptions options = options_;
    options.has_free_borders = true;
    return estimate_with(options, part);
  }

 private:
  Cost estimate_with(const planner::CoverOptions& options, const Graph& graph) {
    const Result<Plan> plan = planner::cheapest_plan(graph, options, *costs_);
    GOPT_CHECK(plan.ok(), "a tolerant plan has no errors");
    Cost cost;
    for (const Kernel& kernel : plan->kernels) {
      cost.time_ms += kernel.estimated_ms;
      cost.operations += kernel_operations(*plan, kernel);
      cost.bytes += kernel_bytes(*plan, kernel);
      cost.kernels++;
    }
    return cost;
  }

  planner::CoverOptions options_;
  std::unique_ptr<KernelCosts> costs_;
};

}  // namespace

Roofline roofline_of(const Target& target, const Roofline& processor) {
  if (target.kind == TargetKind::Cuda) return kGpuRoofline;
  Roofline all = processor;
  const double speedup = 1 + (std::max(1, target.threads) - 1) * processor.next_thread;
  all.gflops *= speedup;
  all.gbps *= speedup;
  return all;
}

KernelWork kernel_work(const Plan& plan, const Kernel& kernel) {
  return {kernel_operations(plan, kernel), kernel_bytes(plan, kernel)};
}

std::unique_ptr<KernelCosts> analytic_kernel_costs(const Roofline& roofline) {
  return std::make_unique<AnalyticCosts>(roofline);
}

std::unique_ptr<CostOracle> plan_cost_oracle(const Target& target, std::unique_ptr<KernelCosts> kernel_costs) {
  return std::make_unique<PlanOracle>(target, std::move(kernel_costs));
}

}  // namespace gopt
