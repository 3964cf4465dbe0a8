// What a command reads stays as it is, with --force too, and by whatever name it is written to. A row each.
#include <gtest/gtest.h>

#include "program.h"

namespace gopt {
namespace {

struct Row {
  const char* name;
  const char* arguments;  // {} stands for the folder
  const char* message;    // part of it
};
std::ostream& operator<<(std::ostream& os, const Row& row) { return os << row.name; }

std::string with_folder(std::string text, const std::string& folder) {
  for (size_t at; (at = text.find("{}")) != std::string::npos;) text.replace(at, 2, folder);
  return text;
}

constexpr const char* kRule = R"(rule relu-twice
  left
    input x : f32[n]
    a = Relu(x)
    y = Relu(a)
    output y
  right
    input x : f32[n]
    y = Relu(x)
    output y
end
)";

// A model, its inputs and rules, each with a link to it, and code that was emitted.
class KeptFilesTest : public testing::TestWithParam<Row> {
 protected:
  void SetUp() override {
    namespace fs = std::filesystem;
    write_model("graph g\n  input x : f32[2]\n  y = Relu(x)\n  output y = y\nend\n", folder_.file("m.onnx"));
    const Tensor x = Tensor::from_values<double>(ElementType::Float32, {2}, {1.0, -1.0});
    ASSERT_TRUE(write_npz({{"x", x}}, folder_.file("in.npz")));
    write_file(folder_.file("own.rules"), kRule);
    for (const char* name : {"m.onnx", "in.npz", "own.rules"}) {
      const fs::path own = folder_.file(name);
      fs::create_symlink(own.filename(), folder_.path() / ("soft_" + own.filename().string()));
      fs::create_hard_link(own, folder_.path() / ("hard_" + own.filename().string()));
    }
    fs::create_hard_link(folder_.file("m.onnx"), folder_.file("m.json"));
    fs::create_directory(folder_.path() / "code");
    for (const char* name : {"model.json", "emitted_files.txt"})
      write_file(folder_.file("code/") + name, "model.json\nin.npz\n");
    fs::create_hard_link(folder_.file("in.npz"), folder_.file("code/in.npz"));
  }
  std::map<std::string, std::string> texts() const {
    std::map<std::string, std::string> texts;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path()))
      if (entry.is_regular_file()) texts[entry.path().string()] = read_file(entry.path().string());
    return texts;
  }
  TestFolder folder_;
};

TEST_P(KeptFilesTest, AreNotWritten) {
  const auto before = texts();
  const std::string folder = folder_.path().string();
  const Outcome outcome = run_program(with_folder(GetParam().arguments, folder) + " --force");
  EXPECT_EQ(outcome.status, 1) << outcome.text;
  EXPECT_NE(outcome.text.find(with_folder(GetParam().message, folder)), std::string::npos) << outcome.text;
  EXPECT_TRUE(texts() == before) << "a file is another";
}

const Row kRows[] = {
    {"RunItsModel", "run {}/m.onnx -o {}/m.onnx", "{}/m.onnx is the input itself"},
    {"RunItsModelByALink", "run {}/m.onnx -o {}/soft_m.onnx", "{}/soft_m.onnx is the input itself"},
    {"RunItsModelByAnotherName", "run {}/m.onnx -o {}/hard_m.onnx", "{}/hard_m.onnx is the input itself"},
    {"RunItsInputs", "run {}/m.onnx --inputs {}/in.npz -o {}/in.npz", "{}/in.npz holds inputs that are read"},
    {"RunItsInputsSpelledOtherwise", "run {}/m.onnx --inputs {}/in.npz -o {}/code/../in.npz", "holds inputs that"},
    {"RunItsNamedInput", "run {}/m.onnx --input x={}/in.npz -o {}/in.npz", "{}/in.npz holds inputs that are read"},
    {"RunItsCode", "run {}/code -o {}/code/model.json", "is a file of {}/code, which is read"},
    {"BenchItsModel", "bench {}/m.onnx --json {}/m.onnx", "{}/m.onnx is the input itself"},
    {"BenchItsSecondModel", "bench {}/m.onnx {}/hard_m.onnx --json {}/soft_m.onnx", "is the input itself"},
    {"NearlyItsModel", "rules --nearly {}/m.onnx --json {}/hard_m.onnx", "is the input itself"},
    {"NearlyItsRules", "rules --rules {}/own.rules --nearly {}/m.onnx --json {}/own.rules", "{}/own.rules is named"},
    {"CheckInputs", "optimize {}/m.onnx --check {}/in.npz -o {}/in.npz", "{}/in.npz holds the inputs of --check"},
    {"CheckInputsByALink", "optimize {}/m.onnx --check {}/in.npz -o {}/soft_in.npz", "holds the inputs of --check"},
    {"CheckInputsByTheCode", "optimize {}/m.onnx --check {}/in.npz --emit {}/code", "would replace {}/in.npz"},
    {"ReportByAnotherName", "optimize {}/m.onnx -o {}/y.onnx --report {}/m.json", "{}/m.json is the input itself"},
    {"MutantsOverRules", "optimize {}/m.onnx --rules {}/own.rules --mutate 1s --mutate-rules {}/hard_own.rules",
     "{}/hard_own.rules is {}/own.rules, which is read"},
    {"MutantsOverTheModel", "optimize {}/m.onnx --mutate 1s --mutate-rules {}/hard_m.onnx", "is the input itself"},
    {"TimesOverTheModel", "optimize {}/m.onnx --target cpu -o {}/y.onnx --cache {}/hard_m.onnx",
     "--cache: {}/hard_m.onnx is the input itself"},
    {"TimesOverInputs", "optimize {}/m.onnx --target cpu -o {}/y.onnx --check {}/in.npz --cache {}/in.npz",
     "--cache: {}/in.npz holds the inputs of --check"},
    {"OutputOverTimes", "optimize {}/m.onnx --target cpu -o {}/y.onnx --cache {}/y.onnx", "{}/y.onnx is named twice"},
};
INSTANTIATE_TEST_SUITE_P(Rows, KeptFilesTest, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

// These write but the file of kernel times, without being asked whether it may be another.
TEST_F(KeptFilesTest, TimesAreNotWrittenOverTheModel) {
  const auto before = texts();
  for (const char* command : {"explain {}/m.onnx y --cache {}/m.onnx", "bisect {}/m.onnx --cache {}/m.onnx"}) {
    const Outcome outcome = run_program(with_folder(command, folder_.path().string()));
    EXPECT_EQ(outcome.status, 1) << outcome.text;
    EXPECT_NE(outcome.text.find("m.onnx is the input itself"), std::string::npos) << outcome.text;
  }
  EXPECT_TRUE(texts() == before);
}

}  // namespace
}  // namespace gopt
