// Runs rulegen as a user does, in a folder of its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "../onnx/temporary_folder.h"

namespace gopt {

struct Outcome {
  int status = -1;   // exit status; -1 where a signal ended it
  std::string text;  // standard output, and standard error where it is wanted
};

inline Outcome run_program(const std::string& program, const std::string& arguments, const char* errors = "2>&1") {
  Outcome outcome;
  FILE* pipe = popen((program + " " + arguments + " " + errors).c_str(), "r");
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) outcome.text.append(buffer, n);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
  return outcome;
}

inline Outcome run_rulegen(const std::string& arguments, const char* errors = "2>&1") {
  return run_program(RULEGEN_PROGRAM, arguments, errors);
}

inline std::string write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path;
}
inline std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}
inline bool has_cvc5() { return std::system("cvc5 --version >/dev/null 2>&1") == 0; }

}  // namespace gopt
