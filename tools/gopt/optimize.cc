#include <fmt/format.h>

#include <filesystem>

#include "commands.h"
#include "optimize_model.h"
#include "trace.h"

namespace gopt::cli {
namespace {

struct OptimizeCommand {
  OptimizeOptions options;
  bool trace = false, quiet = false, verbose = false;
  Hold hold;
};

// MODEL.opt.onnx beside MODEL.onnx, where nothing says what is to be written.
void choose_output(OptimizeOptions& o) {
  if (o.dry_run || !o.specialize.empty() || !o.output.empty() || !o.emit.empty() || !o.reports.empty()) return;
  std::filesystem::path path = o.model;
  if (path.extension() == ".onnx") path.replace_extension();
  o.output = path.string() + ".opt.onnx";
}

std::function<void(const std::string&)> progress_of(const OptimizeCommand& command) {
  std::function<void(const std::string&)> shown;
  if (!command.quiet) shown = command.trace || command.verbose ? trace_progress() : progress_line();
  if (!command.hold.is_set()) return shown;
  return [shown, hold = command.hold, steps = size_t{0}](const std::string& line) mutable {
    if (shown) shown(line);
    if (line.rfind("step ", 0) == 0) hold.after(++steps);
  };
}

// Of a search that shows progress and that Ctrl-C ends.
struct Search {
  InterruptStops stops;
  ~Search() { clear_progress_line(); }
};

Status run_sizes(const OptimizeCommand& command, const Observer& observer) {
  const auto optimized = optimize_sizes(command.options, observer);
  if (!optimized) return optimized.error();
  for (const OptimizedSizes::Size& size : optimized->sizes) {
    if (command.trace) print_trials(size.model.outcome.result);
    if (command.quiet) continue;
    fmt::print("{}\n", size.name);
    print_report(size.model.report());
    fmt::print("\n");
  }
  if (command.quiet || !optimized->plans) return Unit{};
  const SizedPlans& plans = *optimized->plans;
  if (plans.general)
    fmt::print("other sizes      any\n");
  else if (plans.rows)
    fmt::print("other sizes      sums of {} are run in parts\n", plans.extents[*plans.rows]);
  else
    fmt::print("other sizes      none; {}\n", plans.why_none);
  if (!plans.general) fmt::print("no code for any size: {}\n", optimized->why_not_general);
  if (!optimized->emitted.empty()) fmt::print("emitted          {}\n", optimized->emitted);
  return Unit{};
}

Status run_optimize(OptimizeCommand& command) {
  choose_output(command.options);
  Observer observer{.warn = print_warning, .progress = progress_of(command), .stop = &interrupted(), .searching = [] {
                      return std::make_shared<Search>();
                    }};
  if (command.trace) observer.improved = trace_improvements();
  if (!command.options.specialize.empty()) return run_sizes(command, observer);
  const auto optimized = optimize_model(command.options, observer);
  if (!optimized) return optimized.error();
  if (command.trace) print_trials(optimized->outcome.result);
  if (!command.quiet) print_report(optimized->report());
  if (command.quiet && command.options.wants_code())
    for (const std::string& call : operators_to_register(optimized->report())) print_warning("to register: " + call);
  if (command.verbose) print_details(optimized->report());
  return Unit{};
}

}  // namespace

Action add_optimize(CLI::App& app, const Hold& hold) {
  auto command = std::make_shared<OptimizeCommand>();
  command->hold = hold;
  add_optimize_flags(app, command->options);
  app.add_flag("--trace", command->trace,
               "print each step of the search that improved, and what was tried and dropped");
  app.add_flag("--verbose", command->verbose,
               "print also what the passes changed, what the seconds went to, and progress where there is no terminal");
  app.add_flag("--quiet", command->quiet, "print nothing but warnings and errors")
      ->excludes("--trace")
      ->excludes("--verbose");
  return [command] { return run_optimize(*command); };
}

}  // namespace gopt::cli
