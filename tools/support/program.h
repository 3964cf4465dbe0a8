// What every main does alike: flags are parsed, an unknown subcommand is named, errors become messages and exit
// statuses (0 done, 1 the input's or the user's error, 2 ours).
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "gopt/result.h"

namespace gopt::cli {

using Command = std::function<Result<int>()>;

// Runs what the subcommand that was given stands for, or `otherwise` where none was or it is not among `commands`;
// without `otherwise` a subcommand is required. `bug_report` says what a report of a bug should hold: "the model and
// the command line".
struct Program {
  CLI::App& app;
  std::map<std::string, Command> commands;
  Command otherwise;
  std::string bug_report;
};
int run_program(const Program& program, int argc, char** argv);

// --seed: a number that is not negative (which would be taken as one beyond all others).
CLI::Option* add_seed(CLI::App& app, uint64_t& seed, const std::string& of);

}  // namespace gopt::cli
