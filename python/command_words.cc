#include "command_words.h"

#include <algorithm>

#include "work.h"

namespace gopt::python {

void parse_words(const std::string& command, const AddFlags& add, std::vector<std::string> words) {
  CLI::App app("", command);
  app.set_help_flag();
  add(app);
  std::reverse(words.begin(), words.end());
  try {
    app.parse(words);
  } catch (const CLI::ParseError& e) {
    throw UserError(e.what());
  }
}

std::vector<std::pair<std::string, std::string>> described_flags(const std::string& command, const AddFlags& add) {
  CLI::App app("", command);
  app.set_help_flag();
  add(app);
  std::vector<std::pair<std::string, std::string>> flags;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_lnames().empty()) flags.emplace_back(option->get_lnames().back(), option->get_description());
  return flags;
}

}  // namespace gopt::python
