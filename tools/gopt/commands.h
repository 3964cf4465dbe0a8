// The subcommands of gopt: each adds its flags to the command line and says what to run. A command returns nothing on
// success, else the user's error; main.cc prints it and chooses the exit status.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

#include "gopt/result.h"
#include "hold.h"

namespace gopt::cli {

using Action = std::function<Status()>;

Action add_optimize(CLI::App& app, const Hold& hold);  // which holds after a step of the search
Action add_info(CLI::App& app);
Action add_run(CLI::App& app);
Action add_bench(CLI::App& app);
Action add_compare(CLI::App& app);
Action add_rules(CLI::App& app);
Action add_explain(CLI::App& app);
Action add_bisect(CLI::App& app);

}  // namespace gopt::cli
