#include "program.h"

#include <fmt/format.h>

#include <new>
#include <string_view>
#include <vector>

namespace gopt::cli {
namespace {

// CLI11 says of an unknown word only that a subcommand is required, or that the word was not expected.
Status check_subcommand(const Program& program, int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  if (word.empty() || word[0] == '-') return Unit{};
  std::string names;
  for (const CLI::App* sub : program.app.get_subcommands({})) {
    if (sub->get_name() == word) return Unit{};
    names += (names.empty() ? "" : ", ") + sub->get_name();
  }
  return Error{"there is no subcommand '" + word + "'; the subcommands are " + names};
}

// `help` and `help COMMAND` as `--help` and `COMMAND --help`; ends with a null pointer, as argv does.
std::vector<char*> without_help_command(int argc, char** argv) {
  static char flag[] = "--help";
  std::vector<char*> words(argv, argv + argc);
  if (argc > 1 && std::string_view(argv[1]) == "help") {
    words.erase(words.begin() + 1);
    words.push_back(flag);
  }
  words.push_back(nullptr);
  return words;
}

int run_parsed(const Program& program, int argc, char** argv) {
  const std::string name = program.app.get_name();
  if (Status known = check_subcommand(program, argc, argv); !known) {
    fmt::print(stderr, "{}: {}\n", name, known.error().message);
    return 1;
  }
  try {
    program.app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return program.app.exit(e);  // --help is thrown, too
    const auto parsed = program.app.get_subcommands();
    const std::string command = parsed.empty() ? "" : parsed[0]->get_name() + " ";
    fmt::print(stderr, "{}: {}\nRun `{} {}--help` for what there is.\n", name, e.what(), name, command);
    return 1;
  }
  const auto chosen = program.app.get_subcommands();
  const auto command = chosen.empty() ? program.commands.end() : program.commands.find(chosen[0]->get_name());
  const Result<int> status = command == program.commands.end() ? program.otherwise() : command->second();
  if (status.ok()) return *status;
  fmt::print(stderr, "{}: {}\n", name, status.error().message);
  return 1;
}

}  // namespace

int run_program(const Program& program, int argc, char** argv) {
  const std::string name = program.app.get_name();
  program.app.require_subcommand(program.otherwise ? 0 : 1, 1);
  program.app.footer(name + " help COMMAND, or " + name + " COMMAND --help, lists a command's flags.");
  std::vector<char*> words = without_help_command(argc, argv);
  try {
    return run_parsed(program, static_cast<int>(words.size()) - 1, words.data());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "{}: out of memory\n", name);
    return 1;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}: internal error: {}\nPlease report it with {}.\n", name, e.what(), program.bug_report);
    return 2;
  }
}

CLI::Option* add_seed(CLI::App& app, uint64_t& seed, const std::string& of) {
  constexpr size_t kMostDigits = 19;
  const auto refuse = [](const std::string& text) -> std::string {
    const bool is_natural = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    return is_natural && text.size() <= kMostDigits ? "" : text + " is no seed: expected a whole number, 0 or more";
  };
  return app.add_option("--seed", seed, of)->check(CLI::Validator(refuse, ""))->capture_default_str();
}

}  // namespace gopt::cli
