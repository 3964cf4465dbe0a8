// rulegen's work: finding rules, proving files of them again, showing one. A command returns the exit status that its
// verdicts ask for, or the user's error.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "gopt/result.h"

namespace gopt::cli {

using Command = std::function<Result<int>()>;

Command add_generate(CLI::App& app);
Command add_verify(CLI::App& app);
Command add_show(CLI::App& app);

}  // namespace gopt::cli
