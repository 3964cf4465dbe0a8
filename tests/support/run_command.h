// Runs a program as a user does.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace gopt {

struct Outcome {
  int status = -1;   // exit status; -1 where a signal ended it
  std::string text;  // standard output, and standard error where it is wanted
};

// Runs the command by the shell.
inline Outcome run_command(const std::string& command, const char* errors = "2>&1") {
  Outcome outcome;
  FILE* pipe = popen((command + " " + errors).c_str(), "r");
  if (!pipe) throw std::runtime_error("no shell can be started");
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) outcome.text.append(buffer, n);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
  return outcome;
}

// The Python that tests may use: GOPT_PYTHON, or the one in the PATH.
inline std::string test_python() {
  const char* given = std::getenv("GOPT_PYTHON");
  return given ? given : "python3";
}
inline bool python_has(const std::string& module) {
  return std::system((test_python() + " -c 'import " + module + "' 2>/dev/null").c_str()) == 0;
}

}  // namespace gopt
