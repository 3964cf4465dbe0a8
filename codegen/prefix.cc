#include "prefix.h"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace gopt::codegen {
namespace {

constexpr std::string_view kOwn = "gopt_", kOwnGuard = "GOPT_";

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

// A line with its identifiers renamed; literals are passed over unless they name a file.
std::string rename_line(const std::string& line, const std::string& prefix) {
  const bool names_file = line.find("#include") != std::string::npos;
  std::string text;
  bool in_literal = false;
  for (size_t i = 0; i < line.size(); i++) {
    const bool starts = i == 0 || !is_letter(line[i - 1]);
    if (line[i] == '"' && (i == 0 || line[i - 1] != '\\')) in_literal = !in_literal;
    const bool is_name = starts && (!in_literal || names_file);
    if (is_name && line.compare(i, kOwn.size(), kOwn) == 0) {
      text += prefix + "_";
      i += kOwn.size() - 1;
    } else if (is_name && line.compare(i, kOwnGuard.size(), kOwnGuard) == 0) {
      text += upper(prefix) + "_";
      i += kOwnGuard.size() - 1;
    } else {
      text += line[i];
    }
  }
  return text;
}

std::string rename_text(const std::string& text, const std::string& prefix) {
  std::istringstream lines(text);
  std::string renamed;
  for (std::string line; std::getline(lines, line);) renamed += rename_line(line, prefix) + "\n";
  return renamed;
}

// The targets of CMakeLists.txt are seen by whoever adds the folder to a build.
std::string rename_targets(std::string text, const std::string& prefix) {
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"(model ", "(" + prefix + "_model "},
                                 {"PRIVATE model)", "PRIVATE " + prefix + "_model)"},
                                 {"(example ", "(" + prefix + "_example "}})
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  return text;
}

}  // namespace

Status rename_symbols(std::vector<EmittedFile>& files, const std::string& prefix) {
  if (prefix + "_" == kOwn) return Unit{};
  if (!is_prefix(prefix))
    return Error{"prefix '" + prefix + "': expected letters, digits and single underscores, a letter first"};
  for (EmittedFile& file : files) {
    file.text = rename_text(file.text, prefix);
    if (file.name == "CMakeLists.txt") file.text = rename_targets(file.text, prefix);
    file.name = rename_line(file.name, prefix);
  }
  return Unit{};
}

std::string prefix_of(const std::string& model_header) {
  constexpr std::string_view kStart = "typedef struct ", kEnd = "_model ";
  const size_t start = model_header.find(kStart);
  const size_t end = start == std::string::npos ? start : model_header.find(kEnd, start);
  if (end == std::string::npos) return "gopt";
  return model_header.substr(start + kStart.size(), end - start - kStart.size());
}

}  // namespace gopt::codegen

namespace gopt {

bool is_prefix(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), codegen::is_letter) &&
         std::isalpha(static_cast<unsigned char>(text[0])) != 0 && text.find("__") == std::string::npos;
}

}  // namespace gopt
