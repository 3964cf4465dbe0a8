// Another program, spoken to through its standard input and output, for so long and no longer.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "gopt/result.h"

namespace gopt::driver {

// A process in a group of its own, ended with all that it started when the value goes.
class ChildProcess {
 public:
  // `command[0]` is looked for in the PATH. What the program writes to standard error goes to the file `errors`.
  // Errors: no such program.
  static Result<ChildProcess> start(const std::vector<std::string>& command, const std::filesystem::path& errors);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  Status write_line(const std::string& line);
  // Errors: none came within so many seconds; the program ended, with its status and what it said on standard error.
  Result<std::string> read_line(double seconds);
  // All that the program prints until it ends. Errors: as read_line, and an exit status that is not 0.
  Result<std::string> read_all(double seconds);

 private:
  ChildProcess(pid_t child, int socket, std::filesystem::path errors)
      : child_(child), socket_(socket), errors_(std::move(errors)) {}
  // Appends what there is to read; false at the end of the output.
  Result<bool> read_more(double deadline_seconds);
  Error ended();
  Error how_it_ended(int status) const;
  int wait();  // the status of the process, which is then gone

  pid_t child_ = -1;
  int socket_ = -1;
  std::filesystem::path errors_;
  std::string unread_;
};

}  // namespace gopt::driver
