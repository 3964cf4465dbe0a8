// Emitted folders in other people's programs: several models in one, several threads, compilers that warn.
#include <gtest/gtest.h>

#include <fstream>

#include "batch.h"
#include "compile_folder.h"
#include "gopt/text.h"
#include "run_command.h"

namespace gopt {
namespace {

std::string emit_graph(const std::string& folder, const std::string& prefix, const Graph& graph, const Target& target) {
  LayoutCosts costs(false);
  auto plan = make_plan(graph, target, costs);
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
  auto code = emit(*plan, prefix);
  EXPECT_TRUE(code.ok()) << (code.ok() ? "" : code.error().message);
  const std::string path = scratch_folder("linked") + "/" + folder;
  EXPECT_TRUE(write_emitted(*code, path, true).ok());
  return path;
}

std::string emit_to(const std::string& folder, const std::string& prefix, const std::string& body) {
  const BatchCase c = make_case("small", "input x : f32[64,300]\n" + body + "\noutput y = y", 1);
  return emit_graph(folder, prefix, c.graph, {TargetKind::Cpu, 1});
}

// Every source of a folder, with all warnings as errors.
Outcome check_sources(const std::string& compiler, const std::string& folder) {
  return run_command("cd " + folder + " && for f in *.cc; do " + compiler +
                     " -std=c++17 -Wall -Wextra -Werror -fopenmp -fsyntax-only $f || exit 1; done");
}

// Every source of the folders and a main(), with all warnings as errors. What the program prints.
Outcome compile_and_run(const std::vector<std::string>& folders, const std::string& main) {
  const std::string root = scratch_folder("linked");
  std::ofstream(root + "/main.cc") << main;
  std::string parts = "-I" + root + " " + root + "/main.cc";
  for (const std::string& folder : folders) {
    const Outcome compiled = compile_folder(folder);
    EXPECT_EQ(compiled.status, 0) << compiled.text;
    parts += " " + objects_of(folder);
  }
  const Outcome built = link_program(parts, root + "/program");
  EXPECT_EQ(built.status, 0) << built.text;
  return built.status == 0 ? run_command("cd " + root + " && ./program") : built;
}

// The prefixes are those of other tests, whose objects may be shared: what keeps its name is twice in the program.
constexpr const char* kTwoModels = R"(
#include <cstdio>
#include <vector>
#include "first/model.h"
#include "second/model.h"

int main() {
  char error[200] = "";
  gopt_model* a = gopt_create("first/weights.bin", 1, error, sizeof error);
  net_model* b = net_create("second/weights.bin", 1, error, sizeof error);
  if (!a || !b) return std::puts(error), 1;
  const std::vector<float> x(64 * 300, -2.0f);
  std::vector<float> y(64 * 300), z(64 * 300);
  const void* inputs[] = {x.data()};
  void *to_y[] = {y.data()}, *to_z[] = {z.data()};
  if (gopt_run(a, inputs, to_y, nullptr) != 0 || net_run(b, inputs, to_z, nullptr) != 0) return 1;
  std::printf("%g %g\n", y[7], z[7]);
  gopt_destroy(a);
  net_destroy(b);
}
)";

TEST(LinkedModels, TwoOfDifferentPrefixesAreOneProgram) {
  const std::string first = emit_to("first", "gopt", "y = Abs(x)"), second = emit_to("second", "net", "y = Relu(x)");
  const Outcome outcome = compile_and_run({first, second}, kTwoModels);
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_EQ(outcome.text, "2 0\n");
}

// What is linked is the same for all compilers; what they warn of is not.
TEST(LinkedModels, SourcesCompileWithoutWarningsByClang) {
  if (run_command("echo 'int main() {}' | clang++ -fopenmp -x c++ - -o /dev/null").status != 0)
    GTEST_SKIP() << "no clang++ with OpenMP";
  const Outcome outcome = check_sources("clang++", emit_to("checked", "one", "y = Abs(x)"));
  EXPECT_EQ(outcome.status, 0) << outcome.text;
}

// What the runtime has templates of is seen by a compiler where a kernel calls it.
TEST(LinkedModels, KernelsCompileWithoutWarnings) {
  const BatchCase c = make_case(
      "kernels",
      "input x : bf16[64,1024]\ninput z : f32[64,1024]\na = Transpose(x) {perm=[1,0]}\nb = Log(z)\nc = Sin(b)\nd = "
      "Pow(c, z)\ne = Atan(d)\nf = Acos(e)\ng = Transpose(f) {perm=[1,0]}\noutput y = a\noutput v = g",
      1);
  const std::string folder = emit_graph("kernels", "kernels", c.graph, {TargetKind::Cpu, 2});
  const Outcome outcome = check_sources("g++ -march=native -O2", folder);
  EXPECT_EQ(outcome.status, 0) << outcome.text;
}

// A model that is loaded from its folder is found under whatever prefix it has.
TEST(LinkedModels, AFolderOfAnotherPrefixIsLoaded) {
  const std::string folder = emit_to("loaded", "my_net", "y = Abs(x)");
  auto model = LoadedModel::build_and_load(folder, 1);
  ASSERT_TRUE(model.ok()) << model.error().message;
  LoadedModel loaded = *model;
  const auto outputs =
      loaded.run({Tensor::from_values<double>(ElementType::Float32, {64, 300}, std::vector<double>(64 * 300, -3))});
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  EXPECT_EQ((*outputs)[0].to_doubles()[0], 3.0);
}

// Numbers that no float holds, beside what is chosen among constants: zeros that are moved in from beyond an end.
TEST(LinkedModels, IntegersBesideChosenConstantsAreExact) {
  const BatchCase c = make_case(
      "moved",
      "input x : i64[4]\ninput z : i64[7]\np = Pad(x) {pads=[3,0], value=0}\nq = Slice(p) "
      "{starts=[0], ends=[3], axes=[0], steps=[1]}\nr = Pad(q) {pads=[4,0], value=1}\ny = "
      "Add(z, r)\ns = ReduceSum(y) {axes=[0], keepdims=1}\no = Sub(z, r)\nt = Equal(o, y)\nl = Less(y, r)\noutput "
      "y = y\noutput s = s\noutput t = t\noutput l = l",
      1);
  auto model = LoadedModel::build_and_load(emit_graph("moved", "moved", c.graph, {TargetKind::Cpu, 1}), 1);
  ASSERT_TRUE(model.ok()) << model.error().message;
  LoadedModel loaded = *model;
  constexpr int64_t kLarge = (int64_t{1} << 61) + 1;  // seven are beyond 64 bits, and wrap around
  const auto outputs =
      loaded.run({Tensor::from_values<int64_t>(ElementType::Int64, {4}, std::vector<int64_t>(4, 5)),
                  Tensor::from_values<int64_t>(ElementType::Int64, {7}, std::vector<int64_t>(7, kLarge))});
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  const std::vector<int64_t> y = (*outputs)[0].to_ints(), s = (*outputs)[1].to_ints();
  const std::vector<int64_t> t = (*outputs)[2].to_ints(), l = (*outputs)[3].to_ints();
  for (int i = 0; i < 7; i++) {
    EXPECT_EQ(y[i], i < 4 ? kLarge + 1 : kLarge) << i;
    EXPECT_EQ(t[i], i < 4 ? 0 : 1) << i;
    EXPECT_EQ(l[i], 0) << i;
  }
  EXPECT_EQ(static_cast<uint64_t>(s[0]), 7 * static_cast<uint64_t>(kLarge) + 4);
}

TEST(LinkedModels, ThePrefixIsAName) {
  EXPECT_TRUE(is_prefix("net_2"));
  for (const char* wrong : {"", "2net", "_net", "a__b", "a-b", "a b", "ä"}) EXPECT_FALSE(is_prefix(wrong)) << wrong;
}

// Two threads run one model over and over, until one of them was refused; whatever was not is right.
constexpr const char* kTwoThreads = R"(
#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>
#include "threads/model.h"

std::atomic<int> refused{0}, wrong{0};

void run_often(gopt_model* model, float value) {
  const std::vector<float> x(64 * 300, value);
  std::vector<float> y(64 * 300);
  const void* inputs[] = {x.data()};
  void* outputs[] = {y.data()};
  for (int runs = 0; runs < 1000000 && refused == 0; runs++) {
    if (gopt_run(model, inputs, outputs, nullptr) == 0) {
      for (const float element : y) wrong += element != -value;
    } else {
      wrong += std::strstr(gopt_error(model), "another thread is running this model") == nullptr;
      refused++;
    }
  }
}

int main() {
  char error[200] = "";
  gopt_model* model = gopt_create("threads/weights.bin", 1, error, sizeof error);
  if (!model) return std::puts(error), 1;
  std::thread first(run_often, model, -2.0f), second(run_often, model, -5.0f);
  first.join();
  second.join();
  const int was_refused = refused;
  refused = 0;
  std::printf("refused %d, wrong %d\n", was_refused > 0, wrong.load());
  gopt_destroy(model);
}
)";

TEST(LinkedModels, ASecondThreadIsRefused) {
  const std::string folder =
      emit_to("threads", "gopt", "a = Sin(x)\nb = Abs(x)\nc = Mul(a, a)\nd = Sub(c, c)\ny = Add(b, d)");
  const Outcome outcome = compile_and_run({folder}, kTwoThreads);
  EXPECT_EQ(outcome.text, "refused 1, wrong 0\n");
}

// A cache that grows by one: what a run gives is what the next one takes. Counts what is allocated.
constexpr const char* kGrowingCache = R"(
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include "cache/model.h"

int allocations = 0;
extern "C" void* aligned_alloc(size_t alignment, size_t size) {
  allocations++;
  void* block = nullptr;
  return posix_memalign(&block, alignment, size) == 0 ? block : nullptr;
}

int main() {
  char error[200] = "";
  gopt_model* model = gopt_create("cache/weights.bin", 1, error, sizeof error);
  if (!model) return std::puts(error), 1;
  std::vector<float> past(2 * 8, 0.5f), now(8 * 65), y(16);
  const int at_creation = allocations;
  bool is_right = at_creation > 0;
  for (int64_t length = 1; length <= 64; length++) {
    if (gopt_set_extents(model, &length) != 0) return std::puts(gopt_error(model)), 1;
    const std::vector<float> added(16, static_cast<float>(length));
    past.resize(static_cast<size_t>(16 * length));
    now.assign(static_cast<size_t>(16 * (length + 1)), -1.0f);
    const void* inputs[] = {past.data(), added.data()};
    void* outputs[] = {y.data(), now.data()};
    if (gopt_run(model, inputs, outputs, nullptr) != 0) return std::puts(gopt_error(model)), 1;
    is_right &= gopt_output_now(model, 1)->size_bytes == now.size() * sizeof(float);
    for (int64_t head = 0; head < 2; head++)
      for (int64_t at = 0; at <= length; at++)
        is_right &= now[static_cast<size_t>((head * (length + 1) + at) * 8 + 3)] == (at == 0 ? 0.5f : static_cast<float>(at));
    past = now;
  }
  const int64_t beyond = 65;
  is_right &= gopt_set_extents(model, &beyond) != 0 && gopt_extent_maximum(0) == 64;
  is_right &= !gopt_device_input(model, 0) && !gopt_device_output(model, 0);  // memory of a GPU
  std::printf("%s, %d more allocations; %s\n", is_right ? "right" : "wrong", allocations - at_creation, gopt_error(model));
  gopt_destroy(model);
}
)";

TEST(LinkedModels, ACacheGrowsWithoutAllocations) {
  const auto graph = parse_graph(R"(graph cache
  input past : f32[1,2,m,8]
  input new : f32[1,2,1,8]
  k = Concat(past, new) {axis=2}
  t = Transpose(k) {perm=[0,1,3,2]}
  s = MatMul(new, t)
  p = Softmax(s) {axis=3}
  y = MatMul(p, k)
  output y = y
  output k = k
end)");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  Target target{TargetKind::Cpu, 1};
  target.open = {{symbol_atom("m"), 16, 64}};
  const std::string folder = emit_graph("cache", "gopt", *graph, target);
  const Outcome outcome = compile_and_run({folder}, kGrowingCache);
  EXPECT_EQ(outcome.text, "right, 0 more allocations; there is no code for m=65: m is from 0 to 64\n");
}

}  // namespace
}  // namespace gopt
