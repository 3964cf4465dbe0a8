#include "child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <utility>

extern char** environ;

namespace gopt::driver {
namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The last lines of what a program said.
std::string last_lines(const std::filesystem::path& file) {
  constexpr size_t kMostLines = 6;
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) lines.push_back(line);
  std::string text;
  for (size_t k = lines.size() > kMostLines ? lines.size() - kMostLines : 0; k < lines.size(); k++)
    text += "\n  " + lines[k];
  return text;
}

// A pair of connected sockets: unlike a pipe, one whose reader is gone can be written to without a signal.
Result<std::pair<int, int>> connected() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Error{std::string("cannot connect to another process: ") + std::strerror(errno)};
  return std::pair(ends[0], ends[1]);
}

int spawn(pid_t& child, const std::vector<std::string>& command, int in, int out, const std::string& errors) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, 0);
  posix_spawn_file_actions_adddup2(&actions, out, 1);
  posix_spawn_file_actions_addopen(&actions, 2, errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  const int failed = posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return failed;
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& command, const std::filesystem::path& errors) {
  GOPT_ASSIGN_OR_RETURN(const auto ends, connected());
  pid_t child = -1;
  const int failed = spawn(child, command, ends.second, ends.second, errors.string());
  close(ends.second);
  if (failed) {
    close(ends.first);
    return Error{"cannot start " + command[0] + ": " + std::strerror(failed)};
  }
  return ChildProcess(child, ends.first, errors);
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : child_(std::exchange(other.child_, -1)),
      socket_(std::exchange(other.socket_, -1)),
      errors_(std::move(other.errors_)),
      unread_(std::move(other.unread_)) {}

ChildProcess::~ChildProcess() {
  if (socket_ >= 0) close(socket_);
  if (child_ < 0) return;
  kill(-child_, SIGKILL);
  wait();
}

int ChildProcess::wait() {
  int status = 0;
  while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  kill(-child_, SIGKILL);  // what it left running
  child_ = -1;
  return status;
}

Status ChildProcess::write_line(const std::string& line) {
  const std::string text = line + "\n";
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t count = send(socket_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return ended();
    sent += static_cast<size_t>(count);
  }
  return Unit{};
}

Result<bool> ChildProcess::read_more(double deadline) {
  while (true) {
    const double left_ms = (deadline - now_seconds()) * 1e3;
    pollfd waiting{socket_, POLLIN, 0};
    const int ready = left_ms <= 0 ? 0 : poll(&waiting, 1, static_cast<int>(std::min(left_ms + 1, 1e6)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0 && (deadline - now_seconds()) > 0) continue;
    if (ready <= 0) return Error{"it took too long"};
    char buffer[4096];
    const ssize_t count = read(socket_, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    unread_.append(buffer, static_cast<size_t>(count));
    return true;
  }
}

Result<std::string> ChildProcess::read_line(double seconds) {
  const double deadline = now_seconds() + seconds;
  size_t end = 0;
  while ((end = unread_.find('\n')) == std::string::npos) {
    GOPT_ASSIGN_OR_RETURN(const bool more, read_more(deadline));
    if (!more) return ended();
  }
  const std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return line;
}

Result<std::string> ChildProcess::read_all(double seconds) {
  const double deadline = now_seconds() + seconds;
  while (true) {
    GOPT_ASSIGN_OR_RETURN(const bool more, read_more(deadline));
    if (!more) break;
  }
  const int status = wait();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return how_it_ended(status);
  return std::move(unread_);
}

Error ChildProcess::how_it_ended(int status) const {
  const std::string how = WIFEXITED(status) ? "exit status " + std::to_string(WEXITSTATUS(status))
                                            : "signal " + std::to_string(WTERMSIG(status));
  return Error{"it ended with " + how + last_lines(errors_)};
}

Error ChildProcess::ended() {
  if (child_ < 0) return Error{"it has ended"};
  kill(-child_, SIGTERM);  // it closed its output: nothing more will come
  return how_it_ended(wait());
}

}  // namespace gopt::driver
