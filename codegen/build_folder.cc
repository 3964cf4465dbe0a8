#include "build_folder.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "build_cache.h"
#include "gopt/codegen.h"
#include "gopt/graph.h"
#include "gopt/temporary.h"

extern char** environ;

namespace gopt::codegen {
namespace {

namespace fs = std::filesystem;

struct Toolchain {
  std::string compiler;
  std::vector<std::string> compile_flags, link_flags, libraries;
  std::string hint;  // how to get it
};

const Toolchain& cpu_toolchain() {
  static const Toolchain tools{"g++",
                               {
                                   "-std=c++17",
                                   "-O3",
                                   "-march=native",
                                   "-fno-math-errno",
                                   "-fno-trapping-math",
                                   "-fno-thread-jumps",
                                   "-fopenmp",
                                   "-fPIC",
#if defined(__x86_64__)
                                   "-mprefer-vector-width=512",
#endif
                               },
                               {"-shared", "-fopenmp", "-Wl,-Bsymbolic"},
                               {"-ldnnl"},
                               "a C++ compiler and oneDNN are needed to build emitted code (Debian: apt install g++ "
                               "libdnnl-dev)"};
  return tools;
}

std::string find_nvcc() {
  const char* path = getenv("PATH");
  std::istringstream folders(path ? path : "");
  std::error_code error;
  for (std::string folder; std::getline(folders, folder, ':');)
    if (fs::exists(fs::path(folder) / "nvcc", error)) return (fs::path(folder) / "nvcc").string();
  const char* home = getenv("CUDA_HOME");
  return (fs::path(home ? home : "/usr/local/cuda") / "bin" / "nvcc").string();
}

fs::path toolkit_of(const std::string& nvcc) { return fs::path(nvcc).parent_path().parent_path(); }

const Toolchain& cuda_toolchain() {
  static const Toolchain tools = [] {
    const std::string nvcc = find_nvcc(), root = toolkit_of(nvcc).string();
    return Toolchain{nvcc,
                     {"-std=c++17", "-O3", "-gencode=arch=compute_90a,code=sm_90a", "-Xcompiler=-fPIC"},
                     {"-shared", "-cudart=shared", "-Xlinker=-Bsymbolic", "-L" + root + "/lib64",
                      "-Xlinker=-rpath=" + root + "/lib64"},
                     {"-lcublasLt", "-lcudnn"},
                     "the CUDA toolkit with cuDNN is needed to build emitted CUDA code; nvcc is sought in PATH and in "
                     "$CUDA_HOME/bin"};
  }();
  return tools;
}

bool is_cuda(const Source& source) { return source.name.ends_with(".cu"); }
bool is_header(const Source& source) { return source.name.ends_with(".h") || source.name.ends_with(".cuh"); }

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// A child process whose output goes to a file.
Result<pid_t> start(const std::vector<std::string>& command, const std::string& output, const Toolchain& tools) {
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
  if (failed) return Error{"cannot start " + command[0] + " (" + std::strerror(failed) + "): " + tools.hint};
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
Result<std::string> describe(const Toolchain& tools, const fs::path& cache) {
  GOPT_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::beside(cache / "version"));
  const std::string output = (folder.path() / "text").string();
  GOPT_ASSIGN_OR_RETURN(const pid_t child, start({tools.compiler, "--version"}, output, tools));
  const bool ok = succeeded(child);
  std::string text = read_text(output);
  if (!ok) return Error{tools.compiler + " does not work:\n" + text};
  std::ifstream cpu("/proc/cpuinfo");
  for (std::string line; std::getline(cpu, line);)
    if (line.starts_with("model name") || line.starts_with("flags"))
      text += line + "\n";
    else if (line.empty())
      break;
  for (const std::string& flag : tools.compile_flags) text += flag + " ";
  return text;
}

struct Job {
  fs::path object;
  std::string temporary, log, name;
  pid_t child = 0;
};

Status finish(Job& job, const Toolchain& tools) {
  const bool ok = succeeded(job.child);
  const std::string said = ok ? "" : first_lines(job.log);
  std::error_code error;
  fs::remove(job.log, error);
  if (!ok) return Error{"compiling " + job.name + " failed:" + said + "\n" + tools.hint};
  fs::rename(job.temporary, job.object, error);
  if (error) return Error{"cannot write to the cache folder: " + error.message()};
  return Unit{};
}

// The folder's headers that a source includes, each with those that it includes itself.
std::string headers_of(const Source& source, const std::vector<Source>& sources) {
  std::set<std::string> found;
  std::vector<const Source*> open{&source};
  std::string text;
  while (!open.empty()) {
    const Source& from = *open.back();
    open.pop_back();
    for (const Source& header : sources) {
      if (!is_header(header) || from.text.find("#include \"" + header.name + "\"") == std::string::npos) continue;
      if (!found.insert(header.name).second) continue;
      open.push_back(&header);
      text += header.name + "\n" + header.text;
    }
  }
  return text;
}

// Launches of kernels that are only timed are compiled once and queued once: how fast the host does it counts for
// nothing, and without optimization it takes half the time. So it is with what launches a graph of kernels on a GPU,
// which is made once.
std::vector<std::string> flags_for(const Source& s, const std::vector<Source>& sources, const Toolchain& tools) {
  const bool is_for_gpu =
      s.name == "model.cc" && std::ranges::any_of(sources, [](const Source& o) { return is_cuda(o); });
  std::vector<std::string> flags = tools.compile_flags;
  if (is_for_gpu) std::ranges::replace(flags, "-O3", "-O0");
  return flags;
}

// Compiles what the cache does not hold, each object once for all sources, as many at once as there are processors.
class Compiler {
 public:
  Compiler(const Toolchain& tools, fs::path cache, std::string key)
      : tools_(tools), cache_(std::move(cache)), key_(std::move(key)) {}

  // Begins with those that are not there; returned: all that the sources become. Errors: no folder, no compiler.
  Result<std::vector<fs::path>> begin(const std::vector<Source>& sources) {
    GOPT_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::beside(cache_ / "work"));
    const fs::path work = folder.path();
    folders_.push_back(std::move(folder));
    for (const Source& s : sources) std::ofstream(work / s.name, std::ios::binary) << s.text;
    std::vector<fs::path> objects;
    std::error_code error;
    for (const Source& s : sources) {
      if (is_header(s) || s.name == "example.cc") continue;
      const fs::path object = cache_ / (to_string(hash_bytes(key_ + headers_of(s, sources) + s.text)) + ".o");
      objects.push_back(object);
      if (!begun_.insert(object).second) continue;
      if (fs::exists(object, error)) {
        mark_used(object);
        continue;
      }
      if (running_.size() >= kAtOnce) wait_for_first();
      Job job{object, (work / (s.name + ".o")).string(), (work / (s.name + ".log")).string(), s.name};
      std::vector<std::string> command{tools_.compiler};
      const std::vector<std::string> flags = flags_for(s, sources, tools_);
      command.insert(command.end(), flags.begin(), flags.end());
      command.insert(command.end(), {"-c", (work / s.name).string(), "-o", job.temporary});
      const auto child = start(command, job.log, tools_);
      if (!child.ok()) {
        failed_.emplace(object, child.error());
        return child.error();
      }
      job.child = *child;
      running_.push_back(std::move(job));
    }
    return objects;
  }

  // What was begun ends; what runs writes to folders of this.
  ~Compiler() { end(); }
  void end() {
    while (!running_.empty()) wait_for_first();
  }

  // Of some that were begun, once all have ended. Errors: what the compiler said of the first that failed.
  Status status_of(const std::vector<fs::path>& objects) const {
    for (const fs::path& object : objects)
      if (const auto failed = failed_.find(object); failed != failed_.end()) return failed->second;
    return Unit{};
  }

 private:
  void wait_for_first() {
    if (const Status done = finish(running_.front(), tools_); !done)
      failed_.emplace(running_.front().object, done.error());
    running_.erase(running_.begin());
  }

  const size_t kAtOnce = std::max(1u, std::thread::hardware_concurrency());
  const Toolchain& tools_;
  const fs::path cache_;
  const std::string key_;
  std::vector<TemporaryFolder> folders_;
  std::vector<Job> running_;
  std::set<fs::path> begun_;
  std::map<fs::path, Error> failed_;
};

// Of objects that are there.
Result<std::string> link(const std::vector<fs::path>& objects, const Toolchain& tools, const fs::path& cache,
                         const std::string& key) {
  std::string linked = key;
  for (const fs::path& o : objects) linked += o.filename().string();
  for (const auto* arguments : {&tools.link_flags, &tools.libraries})
    for (const std::string& a : *arguments) linked += " " + a;
  const fs::path library = cache / ("lib" + to_string(hash_bytes(linked)) + ".so");
  std::error_code error;
  if (fs::exists(library, error)) {
    mark_used(library);
    return library.string();
  }
  GOPT_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::beside(library));
  const std::string temporary = (folder.path() / "library.so").string();
  std::vector<std::string> command{tools.compiler};
  command.insert(command.end(), tools.link_flags.begin(), tools.link_flags.end());
  command.insert(command.end(), {"-o", temporary});
  for (const fs::path& o : objects) command.push_back(o.string());
  command.insert(command.end(), tools.libraries.begin(), tools.libraries.end());
  Job job{library, temporary, temporary + ".log", "the library"};
  GOPT_ASSIGN_OR_RETURN(job.child, start(command, job.log, tools));
  GOPT_RETURN_IF_ERROR(finish(job, tools));
  return library.string();
}

Result<std::vector<Source>> read_folder(const std::string& folder) {
  std::error_code error;
  std::vector<Source> sources;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (is_source(entry.path().filename().string()))
      sources.push_back({entry.path().filename().string(), read_text(entry.path())});
  if (error || sources.empty()) return Error{folder + " is no folder of emitted code"};
  return sources;
}

}  // namespace

bool is_source(const std::string& name) {
  const std::string extension = fs::path(name).extension().string();
  return extension == ".cc" || extension == ".h" || extension == ".cu" || extension == ".cuh";
}

std::vector<Result<std::string>> build_all(std::vector<std::vector<Source>> all) {
  for (std::vector<Source>& sources : all) std::ranges::sort(sources, {}, &Source::name);
  const bool is_for_gpu = std::ranges::any_of(all, [](const auto& own) { return std::ranges::any_of(own, is_cuda); });
  const Toolchain& tools = is_for_gpu ? cuda_toolchain() : cpu_toolchain();
  const auto all_fail = [&](const Error& error) { return std::vector<Result<std::string>>(all.size(), error); };
  const auto kept = cache_folder();
  const fs::path cache = kept.ok() ? *kept : fs::temp_directory_path() / "gopt";
  std::error_code error;
  fs::create_directories(cache, error);
  if (error) return all_fail({"cannot make the cache folder " + cache.string() + ": " + error.message()});
  const Result<std::string> key = describe(tools, cache);
  if (!key.ok()) return all_fail(key.error());
  Compiler compiler(tools, cache, *key);
  std::vector<Result<std::vector<fs::path>>> objects;
  for (const std::vector<Source>& sources : all) objects.push_back(compiler.begin(sources));
  compiler.end();
  std::vector<Result<std::string>> libraries;
  for (const auto& own : objects) {
    const Status compiled = own.ok() ? compiler.status_of(*own) : own.error();
    libraries.push_back(compiled.ok() ? link(*own, tools, cache, *key) : compiled.error());
  }
  trim_build_cache(cache);
  return libraries;
}

Result<std::string> build_sources(const std::vector<Source>& sources) { return build_all({sources})[0]; }

Result<std::string> build_folder(const std::string& folder) {
  GOPT_ASSIGN_OR_RETURN(const std::vector<Source> sources, read_folder(folder));
  return build_sources(sources);
}

}  // namespace gopt::codegen

namespace gopt {

std::optional<std::string> cuda_toolkit() {
  const std::string nvcc = codegen::find_nvcc();
  std::error_code error;
  if (!std::filesystem::exists(nvcc, error)) return std::nullopt;
  return codegen::toolkit_of(nvcc).string();
}

}  // namespace gopt
