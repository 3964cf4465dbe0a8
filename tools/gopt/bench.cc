#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "commands.h"
#include "gopt/statistics.h"
#include "model.h"
#include "program.h"
#include "write_file.h"

namespace gopt::cli {
namespace {

struct BenchOptions {
  std::vector<std::string> models;
  int runs = 50, warmup = 3;
  uint64_t seed = 0;
  bool profile = false, force = false;
  std::string json;
  LoadOptions load;
};

struct Entry {
  std::string path;
  std::unique_ptr<RunnableModel> model;
  std::map<std::string, Tensor> inputs;
  int runs_of_turn = 1;
  std::vector<double> times;  // milliseconds of a run, the mean of a turn's
};

// A turn that takes less says more of the clock than of the model.
constexpr double kLeastTurnMs = 0.2;
constexpr int kMostRunsOfTurn = 10000;

// As many runs as a turn needs to be timed.
Result<int> runs_of_turn(Entry& e, int warmup) {
  GOPT_ASSIGN_OR_RETURN(const auto first, e.model->time(e.inputs, warmup, 1));
  int runs = 1;
  for (double turn_ms = first[0]; turn_ms < kLeastTurnMs && runs < kMostRunsOfTurn;) {
    runs = std::min(runs * 2, kMostRunsOfTurn);
    GOPT_ASSIGN_OR_RETURN(const auto times, e.model->time(e.inputs, 0, runs));
    turn_ms = std::accumulate(times.begin(), times.end(), 0.0);
  }
  return runs;
}

// In turns, so that a drift of the machine's speed hits all alike.
Status time_in_turns(std::vector<Entry>& entries, const BenchOptions& o) {
  for (Entry& e : entries) {
    GOPT_ASSIGN_OR_RETURN(e.runs_of_turn, runs_of_turn(e, o.warmup));
  }
  for (int k = 0; k < o.runs; k++) {
    for (Entry& e : entries) {
      GOPT_ASSIGN_OR_RETURN(auto t, e.model->time(e.inputs, 0, e.runs_of_turn));
      e.times.push_back(std::accumulate(t.begin(), t.end(), 0.0) / e.runs_of_turn);
    }
  }
  return Unit{};
}

// Median over rounds of this entry's time over the first one's.
double paired_ratio(const Entry& e, const Entry& first) {
  std::vector<double> ratios;
  for (size_t k = 0; k < e.times.size(); k++) ratios.push_back(first.times[k] / e.times[k]);
  return median(ratios);
}

Status print_profile(Entry& e, const BenchOptions& o, nlohmann::json& json) {
  GOPT_ASSIGN_OR_RETURN(auto kernels, e.model->profile(e.inputs, o.runs));
  if (kernels.empty()) return Unit{};
  std::stable_sort(kernels.begin(), kernels.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  double total = 0;
  for (const auto& [name, ms] : kernels) total += ms;
  fmt::print("  {:<56} {:>10} {:>7}\n", "kernel", "ms a run", "share");
  for (const auto& [name, ms] : kernels) {
    fmt::print("  {:<56} {:>10.4f} {:>6.1f}%\n", name, ms / o.runs, total > 0 ? 100 * ms / total : 0);
    json["kernels"].push_back({{"name", name}, {"ms", ms / o.runs}});
  }
  return Unit{};
}

// One unit for the whole table: that in which the shortest median has digits. Returned: milliseconds of each.
nlohmann::json print_times(const std::vector<Entry>& entries, const BenchOptions& o) {
  nlohmann::json rows = nlohmann::json::array();
  std::vector<Statistics> all;
  for (const Entry& e : entries) all.push_back(statistics(e.times));
  const bool is_short = std::ranges::any_of(all, [](const Statistics& s) { return s.median < 1; });
  const double unit = is_short ? 1000 : 1;
  fmt::print("{} runs in turns, {} thread(s), {}\n", o.runs, o.load.threads,
             is_short ? "microseconds" : "milliseconds");
  fmt::print("{:<40} {:<11} {:>9} {:>9} {:>9} {:>9} {:>9} {:>10} {:>8}\n", "model", "engine", "min", "median", "mean",
             "p99", "max", "runs/s", "speedup");
  for (size_t k = 0; k < entries.size(); k++) {
    const Entry& e = entries[k];
    const Statistics& s = all[k];
    const double speedup = paired_ratio(e, entries[0]);
    fmt::print("{:<40} {:<11} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f} {:>10.1f} {:>8.2f}\n", e.path,
               e.model->engine(), unit * s.min, unit * s.median, unit * s.mean, unit * s.p99, unit * s.max,
               1000 / s.mean, speedup);
    rows.push_back({{"model", e.path},
                    {"engine", e.model->engine()},
                    {"min_ms", s.min},
                    {"median_ms", s.median},
                    {"mean_ms", s.mean},
                    {"p99_ms", s.p99},
                    {"max_ms", s.max},
                    {"speedup_over_first", speedup},
                    {"runs_of_turn", e.runs_of_turn},
                    {"times_ms", e.times}});
  }
  for (const Entry& e : entries)
    if (e.runs_of_turn > 1) fmt::print("{}: a turn is the mean of {} runs\n", e.path, e.runs_of_turn);
  return rows;
}

Status bench(const BenchOptions& o) {
  if (!o.json.empty()) GOPT_RETURN_IF_ERROR(check_writable(o.json, o.force));
  LoadOptions load = o.load;
  load.written = o.json;
  std::vector<Entry> entries;
  for (const std::string& path : o.models) {
    GOPT_ASSIGN_OR_RETURN(std::unique_ptr<RunnableModel> model, load_model(path, load));
    GOPT_ASSIGN_OR_RETURN(auto inputs, model->draw(o.seed));
    entries.push_back({path, std::move(model), std::move(inputs), 1, {}});
  }
  GOPT_RETURN_IF_ERROR(time_in_turns(entries, o));
  nlohmann::json rows = print_times(entries, o);
  for (size_t k = 0; o.profile && k < entries.size(); k++) {
    fmt::print("{}\n", entries[k].path);
    GOPT_RETURN_IF_ERROR(print_profile(entries[k], o, rows[k]));
  }
  if (o.json.empty()) return Unit{};
  return write_text(
      o.json, nlohmann::json{{"threads", o.load.threads}, {"runs", o.runs}, {"models", rows}}.dump(1) + "\n", o.force);
}

}  // namespace

Action add_bench(CLI::App& app) {
  auto o = std::make_shared<BenchOptions>();
  app.add_option("models", o->models, "ONNX files, or folders that --emit wrote; speedups are over the first")
      ->required();
  app.add_option("--runs", o->runs, "timed runs of each")->check(CLI::Range(1, 1000000))->capture_default_str();
  app.add_option("--warmup", o->warmup, "runs before")->check(CLI::Range(0, 1000000))->capture_default_str();
  add_load_flags(app, o->load);
  add_seed(app, o->seed, "seed of the inputs");
  app.add_flag("--profile", o->profile, "also a table of kernels");
  app.add_option("--json", o->json, "write the figures to FILE");
  app.add_flag("--force", o->force, "overwrite existing files");
  return [o] { return bench(*o); };
}

}  // namespace gopt::cli
