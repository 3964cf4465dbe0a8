// rulegen: finds rewrite rules by enumeration and proves them; proves files of rules again, shows their proofs and
// audits the prover. Exit status: 0 done, 1 a rule is refuted or the user's error, 2 ours.
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "commands.h"
#include "processes.h"

namespace {

int run(gopt::Ranks& ranks, int argc, char** argv) {
  using namespace gopt::cli;
  CLI::App app("Finds rewrite rules among small operator graphs and proves them for every tensor size.", "rulegen");
  app.set_version_flag("--version", GOPT_VERSION);
  const gopt::Result<Hold> hold = Hold::parse(std::getenv("GOPT_HOLD"));
  if (!hold) {
    std::fprintf(stderr, "rulegen: %s\n", hold.error().message.c_str());
    return 1;
  }
  Program program{app, {}, add_generate(app, ranks, *hold), "the command line"};
  const auto verify = [&](CLI::App& own) { return add_verify(own, *hold); };
  const std::pair<const char*, std::pair<const char*, std::function<Command(CLI::App&)>>> commands[] = {
      {"verify", {"prove rules files again", verify}},
      {"derive", {"say which rules follow from others, and how", add_derive}},
      {"correct", {"make full rules of those that hold on a part of the output", add_correct}},
      {"show", {"print a rule as algebra, with its proof or counterexample", add_show}},
      {"check-log", {"check logs of proofs, without the prover", add_check_log}},
      {"scan", {"run rules in floats and say which lose range, digits or finite values", add_scan}},
      {"audit", {"change right sides at random and look for a wrong rule that is proved", add_audit}},
  };
  for (const auto& [name, command] : commands) {
    program.commands[name] = command.second(*app.add_subcommand(name, command.first));
    if (ranks.rank() > 0) program.commands[name] = [] { return 0; };  // these are no work for several
  }
  return run_program(program, argc, argv);
}

}  // namespace

int main(int argc, char** argv) { return gopt::cli::run_on_ranks(argc, argv, run); }
