// What --emit writes, with which files beside it, and where it writes nothing.
#include <gtest/gtest.h>

#include <filesystem>

#include "../onnx/model_builder.h"
#include "program.h"

namespace gopt {
namespace {

constexpr const char* kSmall = R"(graph small
  input x : f32[4,8]
  constant w = f32[8,2] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
  p = MatMul(x, w)
  y = Relu(p)
  output y = y
end
)";

// ---- a machine that cannot build the code ----

struct Machine {
  const char* name;
  const char* compiler;  // a script in the place of g++; empty: there is none
  const char* flags;
  int status;
  std::vector<const char*> says;
};
std::ostream& operator<<(std::ostream& os, const Machine& m) { return os << m.name; }
class WithoutTools : public testing::TestWithParam<Machine> {};

constexpr const char* kNoLibrary =
    "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\necho 'fatal error: oneapi/dnnl/dnnl.hpp: No such file' >&2\nexit 1\n";
constexpr const char* kInstall = "(Debian: apt install g++ libdnnl-dev)";

TEST_P(WithoutTools, CodeIsWrittenOnlyWhereItIsForElsewhere) {
  TestFolder folder;
  write_model(kSmall, folder.file("m.onnx"));
  std::filesystem::create_directory(folder.file("bin"));
  const Machine& machine = GetParam();
  if (*machine.compiler) {
    write_file(folder.file("bin/g++"), machine.compiler);
    std::filesystem::permissions(folder.file("bin/g++"), std::filesystem::perms::owner_all);
  }
  const Outcome outcome =
      run_command("PATH=" + folder.file("bin") + ":/bin XDG_CACHE_HOME=" + folder.file("cache") +
                  " CUDA_HOME=" + folder.file("no-cuda") + " " GOPT_PROGRAM " optimize --cost analytic " +
                  folder.file("m.onnx") + " --emit " + folder.file("code") + " " + machine.flags);
  EXPECT_EQ(outcome.status, machine.status) << outcome.text;
  for (const char* text : machine.says) EXPECT_NE(outcome.text.find(text), std::string::npos) << text << outcome.text;
  EXPECT_EQ(std::filesystem::exists(folder.file("code")), machine.status == 0);
}

// /bin may hold a compiler, too: the first row is for machines on which it does not.
const Machine kMachines[] = {
    {"OneDnnIsMissing",
     kNoLibrary,
     "",
     1,
     {"the emitted code does not build on this machine: compiling", "dnnl.hpp: No such file", kInstall,
      "nothing is written; --no-measure writes code for another machine"}},
    {"TheCompilerDoesNotWork", "#!/bin/sh\nexit 3\n", "", 1, {"does not build on this machine", "g++ does not work"}},
    {"AlsoWhereNothingIsChecked", kNoLibrary, "--check off", 1, {"does not build on this machine", kInstall}},
    {"ItIsForElsewhere", kNoLibrary, "--no-measure", 0, {"emitted          "}},
    {"CudaWithoutItsToolkit",
     kNoLibrary,
     "--target cuda",
     0,
     {"neither built nor checked here: CUDA code is built where the CUDA toolkit is (there is no nvcc", "emitted "}},
};
INSTANTIATE_TEST_SUITE_P(Rows, WithoutTools, testing::ValuesIn(kMachines),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- an ONNX file beside the code ----

// An LSTM over the sum of x and an input that has a default value.
void write_recurrent(const std::string& path) {
  TestModel model;
  model.input("x", {int64_t{3}, int64_t{2}, int64_t{4}});
  model.input("shift", {int64_t{4}});
  model.output("h", {int64_t{1}, int64_t{2}, int64_t{5}});
  model.constant(float_tensor("shift", {4}));
  model.constant(float_tensor("w", {1, 20, 4}));
  model.constant(float_tensor("r", {1, 20, 5}));
  model.node("Add", {"x", "shift"}, {"a"});
  model.node("LSTM", {"a", "w", "r"}, {"", "h"}).name("memory").i("hidden_size", 5);
  model.save(path);
}

TEST(CodeAndFile, TheFileIsTheOneThatIsWrittenAlone) {
  TestFolder folder;
  write_recurrent(folder.file("m.onnx"));
  const std::string both = "optimize --cost analytic --seed 3 " + folder.file("m.onnx");
  const Outcome alone = run_program(both + " -o " + folder.file("alone.onnx"));
  ASSERT_EQ(alone.status, 0) << alone.text;
  const Outcome beside = run_program(both + " -o " + folder.file("beside.onnx") + " --emit " + folder.file("code"));
  ASSERT_EQ(beside.status, 0) << beside.text;
  EXPECT_NE(beside.text.find("onnx             not of the code's graph"), std::string::npos) << beside.text;
  EXPECT_EQ(read_file(folder.file("beside.onnx")), read_file(folder.file("alone.onnx")));
  onnx::ModelProto written;
  ASSERT_TRUE(written.ParseFromString(read_file(folder.file("beside.onnx"))));
  EXPECT_EQ(written.graph().node_size(), 2);
  EXPECT_EQ(written.graph().input_size(), 2);
  EXPECT_TRUE(std::filesystem::exists(folder.file("code/model.h")));
}

}  // namespace
}  // namespace gopt
