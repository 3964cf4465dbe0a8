// rulegen: finds rewrite rules by enumeration and proves them; proves files of rules again. Exit status: 0 done, 1 a
// rule is refuted or the user's error, 2 ours.
#include <fmt/format.h>

#include "commands.h"

namespace gopt::cli {
namespace {

int run_program(int argc, char** argv) {
  CLI::App app("Finds rewrite rules among small operator graphs and proves them for every tensor size.", "rulegen");
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", GOPT_VERSION);
  const Command generate = add_generate(app);
  CLI::App* verify_app = app.add_subcommand("verify", "prove rules files again");
  const Command verify = add_verify(*verify_app);
  CLI::App* show_app = app.add_subcommand("show", "print a rule with its proof or counterexample");
  const Command show = add_show(*show_app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 1;
  }
  const Result<int> status = verify_app->parsed() ? verify() : show_app->parsed() ? show() : generate();
  if (status.ok()) return *status;
  fmt::print(stderr, "rulegen: {}\n", status.error().message);
  return 1;
}

}  // namespace
}  // namespace gopt::cli

int main(int argc, char** argv) {
  try {
    return gopt::cli::run_program(argc, argv);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "rulegen: out of memory\n");
    return 1;
  } catch (const std::exception& e) {
    fmt::print(stderr, "rulegen: internal error: {}\nPlease report it with the command line.\n", e.what());
    return 2;
  }
}
