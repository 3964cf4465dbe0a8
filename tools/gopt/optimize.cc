#include "commands.h"
#include "optimize_model.h"
#include "trace.h"

namespace gopt::cli {
namespace {

struct OptimizeCommand {
  OptimizeOptions options;
  bool trace = false;
  Hold hold;
};

std::function<void(const std::string&)> progress_of(const Hold& hold, bool traces) {
  const auto shown = traces ? trace_progress() : progress_line();
  if (!hold.is_set()) return shown;
  return [shown, hold, steps = size_t{0}](const std::string& line) mutable {
    if (shown) shown(line);
    if (line.rfind("step ", 0) == 0) hold.after(++steps);
  };
}

// Of a search that shows progress and that Ctrl-C ends.
struct Search {
  InterruptStops stops;
  ~Search() { clear_progress_line(); }
};

Status run_optimize(const OptimizeCommand& command) {
  Observer observer{.warn = print_warning,
                    .progress = progress_of(command.hold, command.trace),
                    .stop = &interrupted(),
                    .searching = [] { return std::make_shared<Search>(); }};
  if (command.trace) observer.improved = trace_improvements();
  const auto optimized = optimize_model(command.options, observer);
  if (!optimized) return optimized.error();
  if (command.trace) print_trials(optimized->outcome.result);
  print_report(optimized->report());
  return Unit{};
}

}  // namespace

Action add_optimize(CLI::App& app, const Hold& hold) {
  auto command = std::make_shared<OptimizeCommand>();
  command->hold = hold;
  add_optimize_flags(app, command->options);
  app.add_flag("--trace", command->trace,
               "print each step of the search that improved, and what was tried and dropped");
  return [command] { return run_optimize(*command); };
}

}  // namespace gopt::cli
