// Ends a program by a signal at a moment of its own: it says through a pipe that it has come there (tools/support/
// hold.h), and waits. Nothing here depends on how long anything takes.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "text_files.h"

namespace gopt {

struct HeldOutcome {
  bool was_held = false;  // it came to where it was to be interrupted
  int status = 0;         // as waitpid() has it
  std::string text;       // standard output and error
};

// Runs `command` by the shell, and sends the signal when so many verdicts (or steps) were made. A program that ends
// before was not held. What it prints goes through the file `output`. `then` is called with the process while it goes
// on.
inline HeldOutcome interrupt_after(int count, int signal, const std::string& command, const std::string& output,
                                   const std::function<void(pid_t)>& then = {}) {
  constexpr int kDescriptor = 9;
  HeldOutcome outcome;
  int ends[2];
  if (pipe(ends) != 0) return outcome;
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    if (ends[1] != kDescriptor) {
      dup2(ends[1], kDescriptor);
      close(ends[1]);
    }
    const std::string hold = std::to_string(count) + " /dev/fd/" + std::to_string(kDescriptor);
    setenv("GOPT_HOLD", hold.c_str(), 1);
    const std::string redirected = "exec " + command + " >" + output + " 2>&1";
    execl("/bin/sh", "sh", "-c", redirected.c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  // The pipe ends with the program, so that this does, whatever becomes of it.
  char byte = 0;
  outcome.was_held = ::read(ends[0], &byte, 1) == 1;
  if (outcome.was_held) kill(child, signal);
  if (outcome.was_held && then) then(child);
  waitpid(child, &outcome.status, 0);
  close(ends[0]);
  outcome.text = read_file(output);
  return outcome;
}

}  // namespace gopt
