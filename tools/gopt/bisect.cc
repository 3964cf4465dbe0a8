// gopt bisect: prints what makes an optimized model differ from its original, in value or in time.
#include "gopt/bisect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "search_flags.h"

namespace gopt::cli {
namespace {

struct BisectOptions {
  SearchFlags flags;
  std::string by = "value";
  int runs = 15, searches = 64;
  bool as_json = false;
};

constexpr size_t kMostKernels = 8;

std::string worst_of(const CheckReport& check) {
  const Difference* worst = nullptr;
  for (const Difference& d : check.differences)
    if (!d.passed && (!worst || d.max_relative > worst->max_relative)) worst = &d;
  if (!worst) return "";
  return worst->comparable ? fmt::format("{}: max |a-b| {:.3g}, of max |a| {:.3g}", worst->output, worst->max_absolute,
                                         worst->max_relative)
                           : fmt::format("{}: {}", worst->output, worst->note);
}

void print_value(const ValueBisection& b) {
  fmt::print("rules and passes  {}\n", b.applied.empty() ? "none" : fmt::format("{}", fmt::join(b.applied, ", ")));
  if (b.check.passed)
    fmt::print("model             agrees with the original ({}, {} kinds of random inputs)\n", b.check.engine,
               b.check.draws.size());
  else
    fmt::print("model             differs from the original on {} ({}): {}\n", last_inputs(b.check), b.check.engine,
               worst_of(b.check));
  if (!b.check.passed && b.guilty.empty())
    fmt::print("guilty            none that can be told: applied alone, these rules and passes make no difference\n");
  if (!b.guilty.empty()) {
    fmt::print("guilty            {}{}\n", fmt::join(b.guilty, ", "), b.is_smallest ? "" : " (or fewer of them)");
    fmt::print("                  alone they differ: {}; {} searches\n", worst_of(b.guilty_check), b.searches);
  }
  if (b.kernel) {
    const Difference& d = b.kernel->difference;
    fmt::print("kernel            the first that is not as the interpreter has it, after {} that are:\n{}",
               b.kernel->right_before, b.kernel->kernel);
    fmt::print(
        "  `{}` {}\n", d.output,
        d.comparable ? fmt::format("max |a-b| {:.3g}, of max |a| {:.3g}", d.max_absolute, d.max_relative) : d.note);
  } else {
    fmt::print("kernel            {}\n", b.kernel_note.empty() ? "all as the interpreter has them" : b.kernel_note);
  }
  if (!b.differs()) fmt::print("no difference\n");
}

nlohmann::json json_of(const ValueBisection& b) {
  nlohmann::json json = {{"applied", b.applied},   {"differs", b.differs()},     {"engine", b.check.engine},
                         {"draws", b.check.draws}, {"worst", worst_of(b.check)}, {"guilty", b.guilty},
                         {"searches", b.searches}, {"smallest", b.is_smallest},  {"kernel_note", b.kernel_note}};
  if (b.kernel)
    json["kernel"] = {{"kernel", b.kernel->kernel},
                      {"value", b.kernel->difference.output},
                      {"max_absolute", b.kernel->difference.max_absolute},
                      {"max_relative", b.kernel->difference.max_relative},
                      {"right_before", b.kernel->right_before}};
  return json;
}

void print_time(const TimeBisection& b, int runs) {
  fmt::print("original {:.3f} ms, result {:.3f} ms: {:.3f}x [{:.3f}, {:.3f}] (median and quartiles, {} rounds)\n",
             b.before_ms, b.after_ms, b.speedup, b.low, b.high, runs);
  fmt::print("{:<52} {:>5} {:>11} {:>8}  quartiles\n", "left out", "times", "without ms", "slower");
  for (const TimeWithout& t : b.without) {
    const std::string times = t.times > 0 ? std::to_string(t.times) : "pass";
    if (t.has_same_kernels || !t.note.empty())
      fmt::print("{:<52} {:>5} {:>11} {:>8}  {}\n", t.name, times, "-", "-",
                 t.note.empty() ? "the same kernels" : t.note);
    else
      fmt::print("{:<52} {:>5} {:>11.3f} {:>7.3f}x  [{:.3f}, {:.3f}]{}\n", t.name, times, t.ms, t.ratio, t.low, t.high,
                 t.low <= 1 && t.high >= 1 ? "  no difference" : "");
  }
  fmt::print("{:<52} {:>5} {:>11} {:>8}\n", "kernel of the result", "", "ms", "estimate");
  for (size_t k = 0; k < b.kernels.size() && k < kMostKernels; k++)
    fmt::print("{:<52} {:>5} {:>11.4f} {:>8.4f}\n", b.kernels[k].kernel, "", b.kernels[k].ms,
               b.kernels[k].estimated_ms);
}

nlohmann::json json_of(const TimeBisection& b) {
  nlohmann::json without = nlohmann::json::array(), kernels = nlohmann::json::array();
  for (const TimeWithout& t : b.without)
    without.push_back({{"name", t.name},
                       {"times", t.times},
                       {"same_kernels", t.has_same_kernels},
                       {"ms", t.ms},
                       {"ratio", t.ratio},
                       {"low", t.low},
                       {"high", t.high},
                       {"note", t.note}});
  for (const KernelTime& k : b.kernels)
    kernels.push_back({{"name", k.kernel}, {"ms", k.ms}, {"estimated_ms", k.estimated_ms}});
  return {{"before_ms", b.before_ms}, {"after_ms", b.after_ms}, {"speedup", b.speedup}, {"low", b.low},
          {"high", b.high},           {"without", without},     {"kernels", kernels}};
}

void warn(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) fmt::print(stderr, "gopt: warning: {}\n", note);
}

Status by_value(const BisectOptions& o, const ModelAndRules& loaded, const DriverOptions& options) {
  const auto found = bisect_value(loaded.model.graph, loaded.rules, options, o.searches);
  clear_progress_line();
  if (!found.ok()) return found.error();
  warn(found->notes);
  if (o.as_json)
    fmt::print("{}\n", json_of(*found).dump(1));
  else
    print_value(*found);
  if (found->differs()) return Error{"the optimized model differs from the original"};
  return Unit{};
}

Status by_time(const BisectOptions& o, const ModelAndRules& loaded, const DriverOptions& options) {
  const auto found = bisect_time(loaded.model.graph, loaded.rules, options);
  clear_progress_line();
  if (!found.ok()) return found.error();
  warn(found->notes);
  if (o.as_json)
    fmt::print("{}\n", json_of(*found).dump(1));
  else
    print_time(*found, o.runs);
  return Unit{};
}

Status bisect(const BisectOptions& o) {
  GOPT_ASSIGN_OR_RETURN(DriverOptions options, driver_options(o.flags));
  options.runs = o.runs;
  GOPT_ASSIGN_OR_RETURN(const ModelAndRules loaded, load_model_and_rules(o.flags));
  GOPT_RETURN_IF_ERROR(complete_options(o.flags, loaded.rules, loaded.model.graph, options));
  options.search.progress = progress_line();
  const InterruptStops stops;
  return o.by == "time" ? by_time(o, loaded, options) : by_value(o, loaded, options);
}

}  // namespace

Action add_bisect(CLI::App& app) {
  auto o = std::make_shared<BisectOptions>();
  add_search_flags(app, o->flags, {"cpu"});
  app.add_option("--by", o->by, "value: which rules, passes or kernel make the results differ; time: what each brings")
      ->check(CLI::IsMember({"value", "time"}))
      ->capture_default_str();
  app.add_option("--searches", o->searches, "by value: searches with some of the rules and passes, at most")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--runs", o->runs, "by time: timed runs of each")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_flag("--json", o->as_json, "print JSON");
  return [o] { return bisect(*o); };
}

}  // namespace gopt::cli
