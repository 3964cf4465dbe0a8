#include "build_folder.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "gopt/graph.h"

extern char** environ;

namespace gopt::codegen {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string>& compile_flags() {
  static const std::vector<std::string> flags{"-std=c++17", "-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fopenmp", "-fPIC"};
  return flags;
}
constexpr const char* kCompiler = "g++";

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

Result<fs::path> cache_folder() {
  const char* cache = getenv("XDG_CACHE_HOME");
  const char* home = getenv("HOME");
  fs::path folder = cache && *cache ? fs::path(cache) : home && *home ? fs::path(home) / ".cache" : fs::temp_directory_path();
  folder /= "gopt";
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return Error{"cannot make the cache folder " + folder.string() + ": " + error.message()};
  return folder;
}

// A child process whose output goes to a file.
Result<pid_t> start(const std::vector<std::string>& command, const std::string& output) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) return Error{"cannot start " + command[0] + ": a C++ compiler is needed to build emitted code (Debian: apt install g++ libdnnl-dev)"};
  return child;
}

bool succeeded(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string first_lines(const std::string& file) {
  std::istringstream text(read_text(file));
  std::string lines, line;
  for (int i = 0; i < 12 && std::getline(text, line); i++) lines += "\n  " + line;
  return lines;
}

// What the compiler and the processor are: objects made for others are not reused.
Result<std::string> toolchain(const fs::path& cache) {
  const std::string output = (cache / ("version" + std::to_string(getpid()))).string();
  GOPT_ASSIGN_OR_RETURN(const pid_t child, start({kCompiler, "--version"}, output));
  const bool ok = succeeded(child);
  std::string text = read_text(output);
  fs::remove(output);
  if (!ok) return Error{std::string(kCompiler) + " does not work:\n" + text};
  std::ifstream cpu("/proc/cpuinfo");
  for (std::string line; std::getline(cpu, line);)
    if (line.starts_with("model name") || line.starts_with("flags")) text += line + "\n";
    else if (line.empty()) break;
  for (const std::string& flag : compile_flags()) text += flag + " ";
  return text;
}

struct Job {
  fs::path object;
  std::string temporary, log, name;
  pid_t child = 0;
};

Status finish(Job& job) {
  const bool ok = succeeded(job.child);
  const std::string said = ok ? "" : first_lines(job.log);
  std::error_code error;
  fs::remove(job.log, error);
  if (!ok) return Error{"compiling " + job.name + " failed:" + said};
  fs::rename(job.temporary, job.object, error);
  if (error) return Error{"cannot write to the cache folder: " + error.message()};
  return Unit{};
}

// Compiles what the cache does not hold, as many at once as there are processors.
Status compile(const std::vector<Source>& sources, const fs::path& cache, const std::string& key, std::vector<fs::path>& objects) {
  const fs::path work = cache / ("work" + std::to_string(getpid()) + "_" + to_string(hash_bytes(key)).substr(0, 8));
  std::error_code error;
  fs::create_directories(work, error);
  std::string headers;
  for (const Source& s : sources) {
    std::ofstream(work / s.name, std::ios::binary) << s.text;
    if (s.name.ends_with(".h")) headers += s.name + "\n" + s.text;
  }
  const size_t at_once = std::max(1u, std::thread::hardware_concurrency());
  std::vector<Job> running;
  Status result = Unit{};
  auto wait_for_first = [&] {
    Status done = finish(running.front());
    running.erase(running.begin());
    if (!done && result) result = done;
  };
  for (const Source& s : sources) {
    if (!s.name.ends_with(".cc") || s.name == "example.cc") continue;
    const fs::path object = cache / (to_string(hash_bytes(key + headers + s.text)) + ".o");
    objects.push_back(object);
    if (fs::exists(object, error)) continue;
    if (running.size() >= at_once) wait_for_first();
    Job job{object, (work / (s.name + ".o")).string(), (work / (s.name + ".log")).string(), s.name};
    std::vector<std::string> command{kCompiler};
    command.insert(command.end(), compile_flags().begin(), compile_flags().end());
    command.insert(command.end(), {"-c", (work / s.name).string(), "-o", job.temporary});
    auto child = start(command, job.log);
    if (!child) return child.error();
    job.child = *child;
    running.push_back(std::move(job));
  }
  while (!running.empty()) wait_for_first();
  fs::remove_all(work, error);
  return result;
}

}  // namespace

Result<std::string> build_sources(const std::vector<Source>& sources, const std::vector<std::string>& link_arguments) {
  GOPT_ASSIGN_OR_RETURN(const fs::path cache, cache_folder());
  GOPT_ASSIGN_OR_RETURN(const std::string key, toolchain(cache));
  std::vector<fs::path> objects;
  GOPT_RETURN_IF_ERROR(compile(sources, cache, key, objects));
  std::string linked = key;
  for (const fs::path& o : objects) linked += o.filename().string();
  for (const std::string& a : link_arguments) linked += " " + a;
  const fs::path library = cache / ("lib" + to_string(hash_bytes(linked)) + ".so");
  std::error_code error;
  if (fs::exists(library, error)) return library.string();
  const std::string temporary = library.string() + "." + std::to_string(getpid());
  std::vector<std::string> command{kCompiler, "-shared", "-fopenmp", "-Wl,-Bsymbolic", "-o", temporary};
  for (const fs::path& o : objects) command.push_back(o.string());
  command.insert(command.end(), link_arguments.begin(), link_arguments.end());
  Job job{library, temporary, temporary + ".log", "the library"};
  GOPT_ASSIGN_OR_RETURN(job.child, start(command, job.log));
  GOPT_RETURN_IF_ERROR(finish(job));
  return library.string();
}

Result<std::string> build_folder(const std::string& folder) {
  std::error_code error;
  std::vector<Source> sources;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".cc") || name.ends_with(".h")) sources.push_back({name, read_text(entry.path())});
  }
  if (error || sources.empty()) return Error{folder + " is no folder of emitted code"};
  std::sort(sources.begin(), sources.end(), [](const Source& a, const Source& b) { return a.name < b.name; });
  return build_sources(sources, {"-ldnnl"});
}

}  // namespace gopt::codegen
