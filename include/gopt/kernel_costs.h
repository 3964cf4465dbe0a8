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

// Analytic roofline: kernels of make_plan's cover at `gflops` and `gbps` of one thread, and a fixed cost a kernel. Each
// further thread adds `next_thread` of what the first one does.
struct Roofline {
  double gflops = 100, gbps = 10, launch_us = 2;
  double next_thread = 0.9;
};
std::unique_ptr<KernelCosts> analytic_kernel_costs(const Roofline& roofline);
// What analytic costs take for a target, with its threads, where the processor's own is `processor`.
Roofline roofline_of(const Target& target, const Roofline& processor);

struct KernelWork {
  double operations = 0;  // scalar ones
  double bytes = 0;       // read and written
};
KernelWork kernel_work(const Plan& plan, const Kernel& kernel);

std::unique_ptr<CostOracle> plan_cost_oracle(const Target& target, std::unique_ptr<KernelCosts> kernel_costs);
// As the sum of the operators' costs, each by its own plan: without fusion, without layouts between them.
std::unique_ptr<CostOracle> sum_cost_oracle(const Target& target, std::unique_ptr<KernelCosts> kernel_costs);
// Of TargetKind::Onnx: the graph as an ONNX runtime runs it, operator by operator but for what runtimes fuse
// themselves. `kernels` counts nodes, as they are written.
std::unique_ptr<CostOracle> runtime_cost_oracle(const Roofline& roofline);

// Whole plans that were built and, where they are several, timed in turns.
struct PlanTimes {
  double seconds = 0;                   // that it took, building included
  std::vector<std::vector<double>> ms;  // of each plan a number a round; empty: it was only built
};

// Measured times in a text file: a header, then for each machine that times were taken on a line "machine NAME", a line
// a kernel, "KEY MILLISECONDS", and a line for plans that were timed together, "plans KEY SECONDS", then for each of
// them its milliseconds with commas; "search KEY TEXT" is what a search did, in its owner's words. The name says which
// processor or GPU it is, the versions of the kernel libraries, and the code that emits kernels; the key hashes it with
// the signature.
class KernelCache {
 public:
  // A file that does not exist yet gives an empty cache. Times of all machines are kept; those of `machine` are found.
  // Errors: a file that is something else, with the line.
  static Result<KernelCache> load(const std::string& path, const std::string& machine = "");
  Status save() const;  // beside first, then renamed; what another run has saved there since is kept
  const std::vector<std::string>& machines() const { return machines_; }  // those with times; the latest is the last
  void choose_machine(const std::string& machine) { machine_ = machine; }
  std::optional<double> find(const std::string& signature) const;
  void put(const std::string& signature, double ms);
  size_t size() const { return times_.size(); }  // of kernels
  std::optional<PlanTimes> find_plans(const std::string& signature) const;
  void put_plans(const std::string& signature, PlanTimes times);
  std::optional<std::string> find_search(const std::string& signature) const;
  void put_search(const std::string& signature, std::string text);  // of one line

 private:
  struct Time {
    double ms = 0;
    std::string machine;  // empty: of a file that did not say it
  };
  struct OfPlans {
    PlanTimes times;
    std::string machine;
  };
  struct Search {
    std::string text, machine;
  };
  Status read_search(const std::string& line, const std::string& machine);
  Status read_line(const std::string& line, const std::string& machine);
  Status read_plans(const std::string& line, const std::string& machine);
  std::string key(const std::string& signature) const;
  KernelCache with_file() const;
  Status write() const;
  void add_machine(const std::string& machine);
  std::string path_, machine_;
  std::vector<std::string> machines_;
  std::map<std::string, Time> times_;
  std::map<std::string, OfPlans> plans_;
  std::map<std::string, Search> searches_;
};

// Times from the cache, of products that differ in what follows them alone the median where they differ by noise; where
// it has none, the time of such a product, else the analytic ones, scaled as those of `known` that it has ask, and by
// `unknown_factor`: below 1 for who goes on to time what looks good, above 1 for who rests on it.
std::unique_ptr<KernelCosts> cached_kernel_costs(std::shared_ptr<const KernelCache> cache,
                                                 std::unique_ptr<KernelCosts> analytic,
                                                 const std::vector<KernelSpec>& known, double unknown_factor = 1);

}  // namespace gopt
