#include "kernel_timing.h"

#include <algorithm>
#include <set>

#include "gopt/clock.h"
#include "machine_speed.h"
#include "measured_costs.h"

namespace gopt::driver {
namespace {

constexpr double kForChosen = 12;  // seconds of the budget for the kernels of a result
constexpr double kLeastKept = 4;   // of these, where the result needed none
// What a core finds of its weights in a server's last cache, which others share, a whole run later: of 96 MB most, of
// 192 MB none, on one whose processor says it has 480.
constexpr double kLastCacheBytes = 128e6;
constexpr double kForGroups = 10;  // seconds after it, for launches of several

// On a GPU what follows, code that is built and timed whole, is to end within a minute.
double budget_seconds(const Target& target) { return target.kind == TargetKind::Cuda ? 40 : 60; }

// Of a model whose kernels these are, and of a search: under which the cache keeps what was spent on timing.
std::string budget_signature(const std::vector<KernelSpec>& specs, const SearchOptions& search) {
  std::string text = "budget " + std::to_string(static_cast<int>(search.search)) + " " +
                     std::to_string(search.max_steps) + " " + std::to_string(search.budget_seconds);
  for (const auto* rules : {&search.disabled_rules, &search.enabled_rules}) {
    text += ";";
    for (const std::string& rule : *rules) text += " " + rule;
  }
  for (const KernelSpec& spec : specs) text += " " + kernel_signature(spec);
  return to_string(hash_bytes(text));
}

}  // namespace

Result<PreparedCosts> KernelTiming::prepare(const Graph& original) {
  PreparedCosts prepared;
  if (!options_.measured_costs) return prepared;
  GOPT_ASSIGN_OR_RETURN(KernelCache cache, KernelCache::load(options_.cache));
  GOPT_ASSIGN_OR_RETURN(const ChosenMachine chosen, machine_for(cache));
  if (!chosen.note.empty()) prepared.notes.push_back(chosen.note);
  if (chosen.machine.empty()) return prepared;
  cache.choose_machine(chosen.machine);
  can_time_ = chosen.is_here;
  costs_.cache = std::make_shared<KernelCache>(std::move(cache));
  const Result<int> timed = measure(original);
  if (timed.ok()) {
    prepared.has_measured_costs = has_enough_times(prepared.notes);
  } else {  // what was timed until then is good
    prepared.has_measured_costs =
        std::ranges::any_of(costs_.known, [&](const KernelSpec& spec) { return is_known(spec); });
    const char* what = prepared.has_measured_costs ? "some kernels are not timed, but estimated: "
                                                   : "kernels are not timed, so that costs are estimates: ";
    prepared.notes.push_back(what + timed.error().message);
  }
  if (prepared.has_measured_costs) {
    prepared.machine = chosen.machine;
  } else {
    costs_.cache.reset();
    costs_.known.clear();
    known_.clear();
  }
  return prepared;
}

Result<ChosenMachine> KernelTiming::machine_for(const KernelCache& cache) const {
  if (options_.target.kind != TargetKind::Cuda) return ChosenMachine{.machine = cpu_machine(), .is_here = true};
  return choose_gpu(cuda_machine(), cache.machines(), options_.gpu).with_context(options_.cache);
}

bool KernelTiming::is_known(const KernelSpec& spec) const {
  return costs_.cache->find(kernel_signature(spec)).has_value();
}

// Whether kernels can be timed, or the cache knows any of the model's.
bool KernelTiming::has_enough_times(std::vector<std::string>& notes) const {
  const auto unknown =
      static_cast<size_t>(std::ranges::count_if(costs_.known, [&](const KernelSpec& spec) { return !is_known(spec); }));
  if (unknown == 0) return true;
  const std::string all = std::to_string(costs_.known.size());
  if (can_time_) {
    if (spent_before_ >= budget_seconds(options_.target) - kForChosen)
      notes.push_back(std::to_string(unknown) + " of " + all +
                      " kernels that the model may use have no times and are estimated: earlier runs spent what there "
                      "is for timing them; a new --cache begins anew");
    return true;
  }
  notes.push_back(unknown == costs_.known.size()
                      ? "costs are estimates: the cache has no times of any kernel of this model"
                      : "the cache has no times of " + std::to_string(unknown) + " of " + all +
                            " kernels that the model may use; they are estimated");
  return unknown < costs_.known.size();
}

Result<int> KernelTiming::measure(const Graph& graph) {
  GOPT_ASSIGN_OR_RETURN(const std::vector<KernelSpec> specs, admitted_kernels(graph, options_.target));
  if (!can_time_) {
    add_known(specs);
    return 0;
  }
  const double width = options_.target.precision == Precision::Bf16 ? 0.5 : 1;
  weights_from_memory_ = weights_from_memory_ || weight_bytes(graph) * width > kLastCacheBytes;
  if (budget_.empty()) {
    budget_ = budget_signature(specs, options_.search);
    spent_before_ = costs_.cache->find_plans(budget_).value_or(PlanTimes()).seconds;
  }
  const Result<int> timed = time(specs, budget_seconds(options_.target) - kept_seconds());
  add_known(specs);
  return timed;
}

// Of all graphs so far: what is known of one says something of kernels of others.
void KernelTiming::add_known(const std::vector<KernelSpec>& specs) {
  for (const KernelSpec& spec : specs)
    if (known_.insert(kernel_signature(spec)).second) costs_.known.push_back(spec);
}

void KernelTiming::know_of(const std::vector<Graph>& graphs) {
  if (!costs_.cache) return;
  costs_.known.clear();
  known_.clear();
  for (const Graph& graph : graphs)
    if (const auto specs = admitted_kernels(graph, options_.target); specs.ok()) add_known(*specs);
}

Result<int> KernelTiming::measure_chosen(const Graph& graph) {
  if (!can_time_ || !costs_.cache) return 0;
  const auto costs = costs_.make(CostSource::kCautious);
  GOPT_ASSIGN_OR_RETURN(const std::vector<KernelSpec> specs, estimated_kernels(graph, options_.target, *costs));
  return time(specs, std::max(budget_seconds(options_.target), spent_before_ + seconds_ + kept_seconds()));
}

Result<int> KernelTiming::measure_groups(const std::vector<Graph>& graphs) {
  if (!can_time_ || !costs_.cache || options_.target.kind != TargetKind::Cuda) return 0;
  const auto costs = costs_.make(CostSource::kCautious);
  std::vector<KernelSpec> specs;
  std::set<std::string> known;
  for (const Graph& graph : graphs) {
    GOPT_ASSIGN_OR_RETURN(const std::vector<KernelSpec> own, untimed_groups(graph, options_.target, *costs));
    for (const KernelSpec& spec : own)
      if (known.insert(kernel_signature(spec)).second) specs.push_back(spec);
  }
  return time(specs, std::max(budget_seconds(options_.target), spent_before_ + seconds_) + kForGroups);
}

bool KernelTiming::knows(const Graph& graph, double unknown_factor) const {
  const auto costs = costs_.make(unknown_factor);
  const auto specs = estimated_kernels(graph, options_.target, *costs);
  return specs.ok() && specs->empty();
}

// Until so many seconds are spent, with those before, of earlier runs, too: what they left is left, so that a run of
// what is known takes no time. What a result runs, which may be another's, is still timed.
Result<int> KernelTiming::time(const std::vector<KernelSpec>& specs, double budget_seconds) {
  const SearchOptions& search = options_.search;
  MeasureOptions options{.threads = options_.target.threads, .stop = search.stop, .progress = search.progress};
  options.weights_from_memory = weights_from_memory_;
  options.budget_seconds = std::max(0.0, budget_seconds - spent_before_ - seconds_);
  double waited = 0;
  options.waited_seconds = &waited;
  const PhaseClock::Running running(clock_, "timing kernels");
  const auto start = Clock::now();
  const Result<int> timed = measure_kernels(specs, *costs_.cache, options);
  const double took = seconds_since(start) - waited;
  seconds_ += took;
  const bool is_stopped = search.stop && search.stop->load();
  constexpr double kNoTime = 0.5;
  if (!is_stopped && (took > kNoTime || (timed.ok() && *timed > 0))) {
    const bool is_left =
        std::ranges::any_of(specs, [&](const KernelSpec& spec) { return !costs_.cache->find(kernel_signature(spec)); });
    costs_.cache->put_plans(budget_, {.seconds = std::max(spent_before_ + seconds_, is_left ? budget_seconds : 0)});
    GOPT_RETURN_IF_ERROR(costs_.cache->save());
  }
  if (timed.ok()) timed_ += *timed;
  return timed;
}

double KernelTiming::kept_seconds() const { return gave_rest_ ? kLeastKept : kForChosen; }

bool KernelTiming::goes_on() const {
  return costs_.cache && can_time_ && spent_before_ + seconds_ < budget_seconds(options_.target) - kept_seconds();
}

bool KernelTiming::gives_rest(const Graph& graph) {
  if (gave_rest_ || !costs_.cache || !can_time_ || goes_on()) return false;
  if (seconds_ == 0 || spent_before_ + seconds_ >= budget_seconds(options_.target) - kLeastKept) return false;
  if (!knows(graph, CostSource::kCautious)) return false;
  if (options_.target.kind == TargetKind::Cuda) {
    const auto groups = untimed_groups(graph, options_.target, *costs_.make(CostSource::kCautious));
    if (!groups.ok() || !groups->empty()) return false;
  }
  gave_rest_ = true;
  return true;
}

}  // namespace gopt::driver
