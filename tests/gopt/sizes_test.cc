// --specialize: code for several sizes in one folder, through the program.
#include <gtest/gtest.h>

#include <filesystem>

#include "program.h"

namespace gopt {
namespace {

const std::string kModel =
    "graph rows\n  input x : f32[batch,seq,8]\n  a = Softmax(x) {axis=1}\n  y = Tanh(a)\n  output y = y\nend\n";

std::string optimize(const TestFolder& folder, const std::string& flags) {
  return "optimize --cost analytic --quiet " + folder.file("m.onnx") + " " + flags;
}

TEST(Specialize, AFolderOfSeveralSizesRunsAsItsModelDoes) {
  TestFolder folder;
  write_model(kModel, folder.file("m.onnx"));
  const std::string code = folder.file("code");
  const Outcome made = run_program(optimize(folder, "--emit " + code + " --specialize batch=1,3 --specialize seq=5,9"));
  ASSERT_EQ(made.status, 0) << made.text;
  EXPECT_EQ(made.text, "");
  const Outcome compared = run_program("compare " + folder.file("m.onnx") + " " + code);
  EXPECT_EQ(compared.status, 0) << compared.text;
  for (const char* size : {"batch=1 seq=5\n", "batch=1 seq=9\n", "batch=3 seq=5\n", "batch=3 seq=9\n"})
    EXPECT_NE(compared.text.find(size), std::string::npos) << size << compared.text;
  EXPECT_NE(run_program("run " + code + " --shape batch=3").text.find("y f32[3,5,8]"), std::string::npos);
  EXPECT_NE(run_program("run " + code + " --shape batch=7").text.find("y f32[7,5,8]"), std::string::npos);
  EXPECT_NE(run_program("run " + code + " --shape seq=4").text.find("y f32[1,4,8]"), std::string::npos);
  EXPECT_NE(run_program("run " + code + " --shape seq=0").text.find("y f32[1,0,8]"), std::string::npos);
  const Outcome none = run_program("run " + code + " --shape seq=2147483648");
  EXPECT_EQ(none.status, 1);
  EXPECT_EQ(none.text,
            "gopt: " + code + ": there is no code for batch=1 seq=2147483648: seq is from 0 to 2147483647\n");
}

TEST(Specialize, AFolderOfAnySizeRunsAsItsModelDoes) {
  TestFolder folder;
  write_model(kModel, folder.file("m.onnx"));
  const std::string code = folder.file("code");
  const Outcome made = run_program(optimize(folder, "--emit " + code + " --maximum batch=9 --maximum seq=40"));
  ASSERT_EQ(made.status, 0) << made.text;
  for (const char* size : {"--shape batch=2 --shape seq=7", "--shape batch=9 --shape seq=40", "--shape seq=1", ""}) {
    const Outcome compared = run_program("compare " + folder.file("m.onnx") + " " + code + " " + size);
    EXPECT_EQ(compared.status, 0) << size << compared.text;
  }
  EXPECT_NE(run_program("run " + code + " --shape batch=2 --shape seq=7").text.find("y f32[2,7,8]"), std::string::npos);
  EXPECT_EQ(run_program("bench " + code + " --shape batch=4 --shape seq=7 --runs 2").status, 0);
  const Outcome larger = run_program("run " + code + " --shape batch=10");
  EXPECT_EQ(larger.status, 1);
  EXPECT_NE(larger.text.find("there is no code for batch=10 seq=40: batch is from 0 to 9"), std::string::npos)
      << larger.text;
}

// Kernels are timed at fixed sizes: who asks for times is told that there are none.
TEST(Specialize, CostsOfAnySizeAreNotMeasured) {
  TestFolder folder;
  write_model(kModel, folder.file("m.onnx"));
  const std::string flags = " " + folder.file("m.onnx") + " --cost measured --no-measure --check off --cache " +
                            folder.file("times") + " --emit " + folder.file("code");
  const Outcome made = run_program("optimize" + flags);
  EXPECT_EQ(made.status, 0) << made.text;
  EXPECT_NE(made.text.find("of a model whose sizes are open costs are analytic"), std::string::npos) << made.text;
}

// Where no code can be made for any size, that for named sizes is there.
TEST(Specialize, WhatHasNoCodeForAnySizeSaysSo) {
  TestFolder folder;
  write_model(
      "graph two\n  input x : f32[n,4]\n  input z : f32[m,4]\n  a = Concat(x, x) {axis=0}\n"
      "  b = Concat(z, z, z) {axis=0}\n  y = Add(a, b)\n  output y = y\nend\n",
      folder.file("m.onnx"));
  const std::string code = folder.file("code");
  const Outcome any = run_program(optimize(folder, "--emit " + folder.file("any")));
  EXPECT_EQ(any.status, 0);
  EXPECT_NE(any.text.find("node `Add` (Add): extents f32[?] are not numbers, nor follow from the extents that stay "
                          "open: 2*n and 3*m may be "
                          "equal, or one of them 1; fix them with --shape"),
            std::string::npos)
      << any.text;
  const Outcome made = run_program("optimize --cost analytic " + folder.file("m.onnx") + " --emit " + code +
                                   " --specialize n=3,m=2 --specialize n=6,m=4");
  ASSERT_EQ(made.status, 0) << made.text;
  EXPECT_NE(made.text.find("no code for any size: "), std::string::npos) << made.text;
  const Outcome other = run_program("run " + code + " --shape n=5");
  EXPECT_EQ(other.status, 1);
  EXPECT_NE(other.text.find("there is no code for n=5 m=2, but for n=3 m=2, n=6 m=4"), std::string::npos) << other.text;
}

// Two names at one axis of a sum are taken to be one, with a warning.
TEST(Specialize, ExtentsThatMeetAreTakenToBeEqual) {
  TestFolder folder;
  write_model("graph two\n  input x : f32[n,4]\n  input z : f32[m,4]\n  y = Add(x, z)\n  output y = y\nend\n",
              folder.file("m.onnx"));
  const std::string code = folder.file("code");
  const Outcome any = run_program(optimize(folder, "--emit " + code));
  ASSERT_EQ(any.status, 0) << any.text;
  EXPECT_NE(any.text.find("m is taken to be n, to which node `Add` (Add) broadcasts it"), std::string::npos)
      << any.text;
  EXPECT_EQ(run_program("run " + code + " --shape n=5").status, 0);
  const Outcome apart = run_program("run " + code + " --shape n=5 m=1");
  EXPECT_EQ(apart.status, 1);
  EXPECT_NE(apart.text.find("the code has no open extent 'm'"), std::string::npos) << apart.text;
}

TEST(Specialize, WordsOfTheSameSymbolsAddUp) {
  TestFolder folder;
  write_model(kModel, folder.file("m.onnx"));
  const std::string code = folder.file("code");
  const Outcome made = run_program(
      optimize(folder, "--no-measure --emit " + code + " --specialize batch=1,seq=9 --specialize batch=3,seq=5"));
  ASSERT_EQ(made.status, 0) << made.text;
  EXPECT_NE(run_program("run " + code + " --shape seq=9").text.find("y f32[1,9,8]"), std::string::npos);
  EXPECT_NE(run_program("run " + code + " --shape batch=3").text.find("y f32[3,5,8]"), std::string::npos);
  EXPECT_EQ(run_program("run " + code + " --shape batch=1 --shape seq=5").status, 0);
  EXPECT_EQ(run_program("run " + code + " --shape batch=4 --shape seq=9").status, 0);
}

struct Row {
  const char *name, *flags, *message;
};
std::ostream& operator<<(std::ostream& os, const Row& row) { return os << row.name; }
class Refused : public testing::TestWithParam<Row> {};

TEST_P(Refused, SaysWhatWouldDo) {
  TestFolder folder;
  write_model(kModel, folder.file("m.onnx"));
  const Outcome outcome = run_program(optimize(folder, GetParam().flags + (" --emit " + folder.file("code"))));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find(GetParam().message), std::string::npos) << outcome.text;
  EXPECT_EQ(folder.count(), 1U);
}

const Row kRows[] = {
    {"open", "--specialize batch=1,2", "input x is f32[1,seq,8] at batch=1: give what is open with --specialize, too"},
    {"word", "--specialize batch=1,two", "--specialize batch=1,two: expected SYMBOL=1,8"},
    {"empty", "--specialize batch=", "--specialize batch=: expected SYMBOL=1,8"},
    {"unknown", "--shape seq=4 --specialize n=4",
     "--specialize n: the model has no open extent or input of that name; its open extents are batch"},
    {"twice", "--shape seq=4 --specialize batch=1,1", "--specialize gives batch=1 twice"},
    {"mixed", "--specialize batch=1,seq=5 --specialize batch=2", "--specialize gives batch with"},
    {"many", "--specialize batch=1,2,3,4,5,6,7,8,9 --specialize seq=1,2,3,4,5,6,7,8,9", "more than 64 sizes"},
    {"onnx", "--shape seq=4 --specialize batch=1 -o out.onnx", "an ONNX file keeps its open extents"},
    {"report", "--shape seq=4 --specialize batch=1 --report r.json", "--report is of one size"},
    {"maximum", "--maximum batch=x", "--maximum batch=x: expected SYMBOL=32"},
    {"no_extent", "--maximum n=4", "a maximum is given of 'n', which is no open extent of the model"},
    {"cuda", "--shape seq=4 --specialize batch=1 --target cuda", "--target cpu alone"},
};
INSTANTIATE_TEST_SUITE_P(Specialize, Refused, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gopt
