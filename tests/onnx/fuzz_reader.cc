// Mutants of models, read, written and read again, each in a process that it may end: none may crash, or take longer
// than ten seconds.
//
// usage: fuzz_reader [--first SEED] [--count N] [--seconds S] [--keep FOLDER] [MODEL.onnx ...]
//
// The models are those of sample_models.h, hostile ones, and those that are named. Mutants that fail are kept in FOLDER
// and named with their seed: `--first SEED --count 1` makes one again. Exit status 1 if any did.
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>

#include "gopt/onnx.h"
#include "mutate_model.h"
#include "sample_models.h"
#include "test_folder.h"

namespace gopt {
namespace {

using Clock = std::chrono::steady_clock;
using Position = std::atomic<uint64_t>;  // the seed that is being done, where parent and worker see it
constexpr auto kMostTime = std::chrono::seconds(10);

struct Options {
  uint64_t first = 0, count = 1000;
  double seconds = 1e9;
  std::string keep;
  std::vector<std::string> files;
};

// Attributes and extents that libonnx's inference, or a loop over elements, did not survive once.
void fill_hostile(TestModel& m) {
  m.input("x", {2, 8, 2, 2});
  m.input("b", {2}, kBool);
  m.constant(int_tensor("from", {0}, true));
  m.constant(int_tensor("to", {int64_t{1} << 31}, true));
  m.constant(int_tensor("one", {1}, true));
  m.constant(int_tensor("shape", {int64_t{1} << 31}));
  m.constant(float_tensor("scale", {8}));
  m.node("LayerNormalization", {"x", "scale"}, {"l"}).i("axis", int64_t{1} << 31);
  m.node("DepthToSpace", {"x"}, {"d"}).i("blocksize", int64_t{1} << 32);
  m.node("ConvTranspose", {"b", "b"}, {"c"});
  m.node("Range", {"from", "to", "one"}, {"r"});
  m.node("ConstantOfShape", {"shape"}, {"s"});
  for (const char* name : {"l", "d", "c", "r", "s"}) m.output(name, {""});
}

std::vector<onnx::ModelProto> all_models(const std::vector<std::string>& files) {
  std::vector<onnx::ModelProto> models;
  for (const SampleModel& row : sample_models()) {
    TestModel model(row.opset, row.ir);
    row.fill(model);
    models.push_back(model.proto);
  }
  TestModel hostile;
  fill_hostile(hostile);
  models.push_back(hostile.proto);
  for (const std::string& file : files) {
    std::ifstream in(file, std::ios::binary);
    if (!models.emplace_back().ParseFromIstream(&in)) throw std::runtime_error(file + " is no model");
  }
  return models;
}

onnx::ModelProto mutant(const std::vector<onnx::ModelProto>& models, uint64_t seed) {
  onnx::ModelProto model = models[seed % models.size()];
  mutate(model, seed / models.size());
  return model;
}

// What is read is written, and what is written is read: an error is as good as a model.
void read_and_write(const onnx::ModelProto& model, const TestFolder& folder) {
  const std::string path = folder.file("m.onnx"), written = folder.file("w.onnx");
  {
    std::ofstream out(path, std::ios::binary);
    model.SerializeToOstream(&out);
  }
  const auto imported = import_onnx(path);
  if (!imported.ok()) return;
  (void)validate(imported->graph);
  if (!export_onnx(imported->graph, written, {.force = true}).ok()) return;
  (void)import_onnx(written);  // declarations that contradict what is computed may be an error only now
}

// The seeds of a worker, one after another, from `at` on.
[[noreturn]] void work(const std::vector<onnx::ModelProto>& models, uint64_t end, Position& at) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const TestFolder folder;
  try {
    for (; at < end; at++) read_and_write(mutant(models, at), folder);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "exception: %s\n", e.what());
    std::filesystem::remove_all(folder.path());
    std::abort();
  }
  std::filesystem::remove_all(folder.path());
  _exit(0);
}

// Waits for the worker as long as it goes on. How it failed; empty where it did not.
std::string watch(pid_t worker, const Position& at, Clock::time_point deadline, bool& timed_out) {
  uint64_t last = at;
  auto since = Clock::now();
  while (true) {
    int status = 0;
    if (waitpid(worker, &status, WNOHANG) == worker) {
      if (WIFSIGNALED(status)) return std::string("signal: ") + strsignal(WTERMSIG(status));
      return WEXITSTATUS(status) == 0 ? "" : "exit status " + std::to_string(WEXITSTATUS(status));
    }
    if (at != last) last = at, since = Clock::now();
    const bool hangs = Clock::now() - since > kMostTime;
    timed_out = Clock::now() > deadline;
    if (hangs || timed_out) {
      kill(worker, SIGKILL);
      waitpid(worker, &status, 0);
      return hangs ? "takes longer than ten seconds" : "";
    }
    usleep(2000);
  }
}

void keep(const onnx::ModelProto& model, uint64_t seed, const std::string& folder) {
  if (folder.empty()) return;
  std::filesystem::create_directories(folder);
  std::ofstream out(folder + "/seed_" + std::to_string(seed) + ".onnx", std::ios::binary);
  model.SerializeToOstream(&out);
}

int fuzz(const Options& o) {
  const std::vector<onnx::ModelProto> models = all_models(o.files);
  Position& at = *new (mmap(nullptr, sizeof(Position), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                     Position(o.first);
  const auto deadline = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(o.seconds * 1e3));
  const uint64_t end = o.first + o.count;
  int failed = 0;
  bool timed_out = false;
  while (at < end && !timed_out) {
    const pid_t worker = fork();
    if (worker == 0) work(models, end, at);
    const std::string how = watch(worker, at, deadline, timed_out);
    if (how.empty()) continue;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(at.load()), how.c_str());
    keep(mutant(models, at), at, o.keep);
    failed++;
    at++;
  }
  std::printf("%llu mutants of %zu models, %d failed\n", static_cast<unsigned long long>(at - o.first), models.size(),
              failed);
  return failed > 0 ? 1 : 0;
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; i++) {
    const std::string flag = argv[i];
    const bool has_value = i + 1 < argc;
    if (flag == "--first" && has_value)
      o.first = std::stoull(argv[++i]);
    else if (flag == "--count" && has_value)
      o.count = std::stoull(argv[++i]);
    else if (flag == "--seconds" && has_value)
      o.seconds = std::stod(argv[++i]);
    else if (flag == "--keep" && has_value)
      o.keep = argv[++i];
    else
      o.files.push_back(flag);
  }
  return o;
}

}  // namespace
}  // namespace gopt

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  return gopt::fuzz(gopt::parse(argc, argv));
}
