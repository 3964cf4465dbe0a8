// What the program does where it is told little: where it writes, what it prints, what its flags take for short.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gopt/rule.h"
#include "program.h"
#include "sample_graphs.h"

namespace gopt {
namespace {

const std::string kTrigonometric = trigonometric("[batch,8]");

TEST(Defaults, TheModelIsWrittenBesideItsOriginal) {
  TestFolder folder;
  write_model(kTrigonometric, folder.file("m.onnx"));
  const Outcome first = run_program("optimize --cost analytic " + folder.file("m.onnx"));
  EXPECT_EQ(first.status, 0) << first.text;
  EXPECT_NE(first.text.find("m.opt.onnx"), std::string::npos) << first.text;
  const std::string written = read_file(folder.file("m.opt.onnx"));
  write_file(folder.file("m.opt.onnx"), "mine");
  EXPECT_EQ(run_program("optimize --cost analytic " + folder.file("m.onnx")).status, 1);
  EXPECT_EQ(read_file(folder.file("m.opt.onnx")), "mine");
  EXPECT_EQ(run_program("optimize --cost analytic --force " + folder.file("m.onnx")).status, 0);
  EXPECT_EQ(read_file(folder.file("m.opt.onnx")), written);
  EXPECT_EQ(folder.count(), 2U);
}

TEST(Defaults, QuietPrintsNothing) {
  TestFolder folder;
  write_model(kTrigonometric, folder.file("m.onnx"));
  const Outcome outcome = run_program("optimize --quiet --cost analytic " + folder.file("m.onnx"));
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.text, "");
  EXPECT_EQ(run_program("optimize --quiet " + folder.file("none.onnx")).text,
            "gopt: " + folder.file("none.onnx") + ": no such file\n");
}

TEST(Defaults, VerboseSaysWhatTookHowLong) {
  TestFolder folder;
  write_model(kTrigonometric, folder.file("m.onnx"));
  const Outcome outcome = run_program("optimize --verbose --cost analytic --dry-run " + folder.file("m.onnx"));
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  for (const char* line : {"drop-identities", "unchanged", "reading the model", "searching"})
    EXPECT_NE(outcome.text.find(line), std::string::npos) << outcome.text;
  EXPECT_EQ(run_program("optimize --verbose --quiet " + folder.file("m.onnx")).status, 1);
}

TEST(Defaults, HelpIsACommandToo) {
  EXPECT_EQ(run_program("help").text, run_program("--help").text);
  const Outcome help = run_program("help optimize");
  EXPECT_EQ(help.status, 0);
  EXPECT_EQ(help.text, run_program("optimize --help").text);
  EXPECT_NE(help.text.find("--beam-width"), std::string::npos);
  const Outcome unknown = run_program("help optimise");
  EXPECT_EQ(unknown.status, 1);
  EXPECT_NE(unknown.text.find("the subcommands are optimize"), std::string::npos) << unknown.text;
}

TEST(Defaults, ADimensionIsFixedByItsName) {
  TestFolder folder;
  write_model(kTrigonometric, folder.file("m.onnx"));
  for (const std::string shape : {"--shape batch=3", "--shape x=3x8", "--shape batch=3 --shape x=3x8"}) {
    const Outcome ran = run_program("run --engine interpreter " + folder.file("m.onnx") + " " + shape);
    EXPECT_EQ(ran.status, 0) << ran.text;
    EXPECT_EQ(ran.text, "y f32[3,8]: 1 1 1 1 1 1 ...\n");
  }
  const std::pair<std::string, std::string> wrong[] = {
      {"batch=3x8", "no input 'batch'; its inputs are: x; its dimensions, of one extent each: batch"},
      {"length=3", "no input 'length'; its inputs are: x; its dimensions, of one extent each: batch"},
      {"batch=3 --shape x=4x8", "dimension 'batch' is 3 by its name and 4 by input 'x'"}};
  for (const auto& [shape, message] : wrong) {
    const Outcome refused = run_program("run " + folder.file("m.onnx") + " --shape " + shape);
    EXPECT_EQ(refused.status, 1);
    EXPECT_NE(refused.text.find(message), std::string::npos) << refused.text;
  }
}

TEST(Defaults, TensorsAreReadAndWrittenAsNpy) {
  TestFolder folder;
  write_model("graph two\n  input a : f32[2]\n  input b : f32[2]\n  y = Sub(a, b)\n  output y = y\nend\n",
              folder.file("m.onnx"));
  const auto write = [&](const char* name, std::vector<double> values) {
    const Tensor tensor = Tensor::from_values(ElementType::Float32, {2}, values);
    ASSERT_TRUE(write_npz({{"", tensor}}, folder.file(name)).ok());
  };
  write("a.npy", {5, 7});
  write("b.npy", {1, 10});
  const std::string command = "run --engine interpreter " + folder.file("m.onnx") + " -o " + folder.file("y.npy");
  const std::string a = folder.file("a.npy"), b = folder.file("b.npy");
  const Outcome ran = run_program(command + " --inputs a=" + a + " b=" + b);
  ASSERT_EQ(ran.status, 0) << ran.text;
  auto tensors = read_npz(folder.file("y.npy"));
  ASSERT_TRUE(tensors.ok()) << tensors.error().message;
  EXPECT_EQ((*tensors)[0].second.to_doubles(), (std::vector<double>{4, -3}));
  const Outcome unnamed = run_program("run " + folder.file("m.onnx") + " --inputs " + a);
  EXPECT_EQ(unnamed.status, 1);
  EXPECT_NE(unnamed.text.find("does not say of which input it is"), std::string::npos) << unnamed.text;
}

TEST(Defaults, SafeRulesCarryNoMark) {
  TestFolder folder;
  // Multiplied and added in another order, which rounds differently; and a transposition that goes away by itself.
  write_model(R"(graph sums
  input x : f32[64,128]
  constant one = f32[] {1.5}
  constant two = f32[] {2.5}
  t = Transpose(x) {perm=[1,0]}
  u = Transpose(t) {perm=[1,0]}
  a = Add(u, one)
  y = Add(a, two)
  output y = y
end
)",
              folder.file("m.onnx"));
  const auto applied = [&](const std::string& flags) {
    const Outcome outcome = run_program("optimize --force --target onnx " + folder.file("m.onnx") + " --report " +
                                        folder.file("r.json") + flags);
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    return nlohmann::json::parse(read_file(folder.file("r.json")));
  };
  const auto marks = [](const nlohmann::json& report) {
    std::set<std::string> found;
    for (const auto& rule : report["rules"])
      for (const auto& mark : rule["marks"]) found.insert(mark["name"].get<std::string>());
    return found;
  };
  EXPECT_TRUE(marks(applied("")).contains("reassociates"));
  const nlohmann::json safe = applied(" --safe");
  EXPECT_TRUE(marks(safe).empty());
  EXPECT_EQ(safe["operators"]["Add"]["after"], 2);
  EXPECT_EQ(safe["operators"]["Transpose"]["after"], 0);
  EXPECT_EQ(run_program("optimize --dry-run --safe --allow finite-only " + folder.file("m.onnx")).status, 1);
}

}  // namespace
}  // namespace gopt
