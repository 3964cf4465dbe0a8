// Options as the command line has them: Python's keywords come as words, and are parsed by the same flags.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace gopt::python {

using AddFlags = std::function<void(CLI::App&)>;

// Throws UserError with the command line's message. `words`: flags, then "--" and the positional arguments.
void parse_words(const std::string& command, const AddFlags& add, std::vector<std::string> words);

// Flags that have a long name, by it without its dashes, and what the command line says of each.
std::vector<std::pair<std::string, std::string>> described_flags(const std::string& command, const AddFlags& add);

}  // namespace gopt::python
