// rulegen's work: finding rules, proving files of them again, deriving some from others, showing one, auditing the
// prover, checking what it logged. A command returns the exit status that its verdicts ask for, or the user's error.
#pragma once

#include "gopt/ranks.h"
#include "hold.h"
#include "program.h"

namespace gopt::cli {

// And stats; the ranks share the work. Holds after a verdict, as verify does.
Command add_generate(CLI::App& app, Ranks& ranks, const Hold& hold);
Command add_verify(CLI::App& app, const Hold& hold);
Command add_derive(CLI::App& app);
Command add_correct(CLI::App& app);
Command add_show(CLI::App& app);
Command add_audit(CLI::App& app);
Command add_scan(CLI::App& app);
Command add_check_log(CLI::App& app);

}  // namespace gopt::cli
