// What the kernels of a plan cost: analytic and measured times, and the cost of a graph as the sum over the kernels of
// its plan.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "gopt/cost.h"
#include "gopt/kernel_spec.h"
#include "gopt/plan.h"

namespace gopt {

// Analytic roofline: kernels of make_plan's cover at `gflops` and `gbps`, and a fixed cost a kernel.
struct Roofline {
  double gflops = 100, gbps = 10, launch_us = 2;
};
std::unique_ptr<KernelCosts> analytic_kernel_costs(const Roofline& roofline);
std::unique_ptr<CostOracle> plan_cost_oracle(const Target& target, std::unique_ptr<KernelCosts> kernel_costs);
// Of TargetKind::Onnx: the graph as an ONNX runtime runs it, operator by operator but for what runtimes fuse
// themselves. `kernels` counts nodes, as they are written.
std::unique_ptr<CostOracle> runtime_cost_oracle(const Roofline& roofline);

// Measured kernel times in a text file: a header, then a line a kernel, "KEY MILLISECONDS". The key hashes the
// signature with `machine`, which names the processor and the versions of the kernel libraries.
class KernelCache {
 public:
  // A file that does not exist yet gives an empty cache. Errors: a file that is something else, with the line.
  static Result<KernelCache> load(const std::string& path, const std::string& machine);
  Status save() const;  // beside first, then renamed
  std::optional<double> find(const std::string& signature) const;
  void put(const std::string& signature, double ms);
  size_t size() const { return times_.size(); }

 private:
  std::string key(const std::string& signature) const;
  std::string path_, machine_;
  std::map<std::string, double> times_;
};

// Times from the cache; where it has none, the analytic ones, scaled as those of `known` that it has ask, and by
// `unknown_factor`: below 1 for who goes on to time what looks good, above 1 for who rests on it.
std::unique_ptr<KernelCosts> cached_kernel_costs(std::shared_ptr<const KernelCache> cache,
                                                 std::unique_ptr<KernelCosts> analytic,
                                                 const std::vector<KernelSpec>& known, double unknown_factor = 1);

}  // namespace gopt
