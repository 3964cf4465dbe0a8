// gopt: optimizes ONNX models with proved rewrite rules. Exit status: 0 done, 1 the input's or the user's error, 2
// ours.
#include <fmt/format.h>

#include <map>

#include "commands.h"

namespace gopt::cli {
namespace {

int run_program(int argc, char** argv) {
  CLI::App app("Optimizes ONNX models with proved rewrite rules, and emits fused C++ and CUDA code.", "gopt");
  app.require_subcommand(1);
  app.set_version_flag("--version", GOPT_VERSION);
  std::map<std::string, Action> actions;
  const std::pair<const char*, std::pair<const char*, Action (*)(CLI::App&)>> commands[] = {
      {"optimize", {"rewrite a model with proved rules; write ONNX and code", add_optimize}},
      {"run", {"run a model on given or drawn inputs", add_run}},
      {"bench", {"time models, interleaved", add_bench}},
      {"compare", {"compare two models' outputs on the same inputs", add_compare}},
      {"rules", {"list or show the rules of a database", add_rules}},
  };
  for (const auto& [name, command] : commands) actions[name] = command.second(*app.add_subcommand(name, command.first));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 1;
  }
  const Status status = actions.at(app.get_subcommands()[0]->get_name())();
  if (status.ok()) return 0;
  fmt::print(stderr, "gopt: {}\n", status.error().message);
  return 1;
}

}  // namespace
}  // namespace gopt::cli

int main(int argc, char** argv) {
  try {
    return gopt::cli::run_program(argc, argv);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "gopt: out of memory\n");
    return 1;
  } catch (const std::exception& e) {
    fmt::print(stderr, "gopt: internal error: {}\nPlease report it with the model and the command line.\n", e.what());
    return 2;
  }
}
