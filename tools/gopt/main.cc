// gopt: optimizes ONNX models with proved rewrite rules. Exit status: 0 done, 1 the input's or the user's error, 2
// ours.
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "commands.h"
#include "program.h"

int main(int argc, char** argv) {
  using namespace gopt::cli;
  CLI::App app("Optimizes ONNX models with proved rewrite rules, and emits fused C++ and CUDA code.", "gopt");
  app.set_version_flag("--version", GOPT_VERSION);
  Program program{app, {}, {}, "the model and the command line"};
  const gopt::Result<Hold> hold = Hold::parse(std::getenv("GOPT_HOLD"));
  if (!hold) {
    std::fprintf(stderr, "gopt: %s\n", hold.error().message.c_str());
    return 1;
  }
  const auto optimize = [&](CLI::App& own) { return add_optimize(own, *hold); };
  const std::pair<const char*, std::pair<const char*, std::function<Action(CLI::App&)>>> commands[] = {
      {"optimize", {"rewrite a model with proved rules; write ONNX and code", optimize}},
      {"info", {"what a model is made of: types, operators, parameters, operations, memory", add_info}},
      {"run", {"run a model on given or drawn inputs", add_run}},
      {"bench", {"time models, interleaved", add_bench}},
      {"compare", {"compare two models' outputs on the same inputs", add_compare}},
      {"rules", {"list or show the rules of a database", add_rules}},
      {"explain", {"why a node was rewritten or fused, or was not", add_explain}},
      {"bisect", {"which rule, pass or kernel makes a difference, in value or in time", add_bisect}},
  };
  for (const auto& [name, command] : commands) {
    const Action action = command.second(*app.add_subcommand(name, command.first));
    program.commands[name] = [action]() -> gopt::Result<int> {
      const gopt::Status status = action();
      if (!status) return status.error();
      return 0;
    };
  }
  return run_program(program, argc, argv);
}
