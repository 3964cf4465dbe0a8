// Models that are code in pieces: strings, sequences and extents that depend on data lie between.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "../onnx/model_builder.h"
#include "program.h"

namespace gopt {
namespace {

using nlohmann::json;
constexpr int kString = onnx::TensorProto::STRING;

// Places of what is greater than 1 among e^x, and twice what lies there: NonZero gives as many as there are.
void write_places(TestModel& model) {
  model.input("x", {int64_t{2}, int64_t{3}});
  model.output("y", {std::string("found"), int64_t{2}});
  model.constant(float_tensor("one", {}, {1}));
  model.constant(float_tensor("two", {}, {2}));
  model.constant(float_tensor("table", {3, 2}));
  model.node("Exp", {"x"}, {"e"}).name("exp");
  model.node("Greater", {"e", "one"}, {"g"});
  model.node("NonZero", {"g"}, {"places"}).name("find");
  model.node("Gather", {"places", "column"}, {"columns"}).i("axis", 0);
  model.constant(int_tensor("column", {1}, true));
  model.node("Gather", {"table", "columns"}, {"rows"}).i("axis", 0);
  model.node("Mul", {"rows", "two"}, {"y"});
}

struct Case {
  const char* name;
  void (*write)(TestModel&);
  std::vector<std::string> steps;  // kind and what it takes and gives
  std::vector<const char*> says;
};
std::ostream& operator<<(std::ostream& os, const Case& c) { return os << c.name; }
class Pieces : public testing::TestWithParam<Case> {
 protected:
  Outcome emit(const std::string& flags = "") {
    return run_program("optimize --cost analytic " + folder_.file("m.onnx") + " --emit " + folder_.file("code") + " " +
                       flags);
  }
  TestFolder folder_;
};

std::string listed(const json& values) {
  std::string text;
  for (const json& value : values) text += (text.empty() ? "" : ",") + value["name"].get<std::string>();
  return text;
}

TEST_P(Pieces, ArePlannedAndChecked) {
  TestModel model;
  GetParam().write(model);
  model.save(folder_.file("m.onnx"));
  const Outcome made = emit("--report " + folder_.file("r.json"));
  ASSERT_EQ(made.status, 0) << made.text;
  for (const char* text : GetParam().says) EXPECT_NE(made.text.find(text), std::string::npos) << text << made.text;
  const json plan = json::parse(read_file(folder_.file("code/plan.json")));
  std::vector<std::string> steps;
  for (const json& step : plan["steps"]) {
    steps.push_back(step["kind"].get<std::string>() + ": " + listed(step["inputs"]) + " -> " + listed(step["outputs"]));
    if (step["kind"] == "code") {
      const std::string folder = step["folder"];
      EXPECT_TRUE(std::filesystem::exists(folder_.file("code/" + folder + "/model.h")));
      EXPECT_NE(made.text.find("code of " + folder + "   PASSED"), std::string::npos) << made.text;
    } else {
      EXPECT_TRUE(std::filesystem::exists(folder_.file("code/" + step["model"].get<std::string>())));
    }
  }
  EXPECT_EQ(steps, GetParam().steps);
  // What was written is replaced, and nothing else.
  write_file(folder_.file("code/notes"), "mine");
  EXPECT_EQ(emit().status, 1);
  const Outcome again = emit("--force");
  EXPECT_EQ(again.status, 0) << again.text;
  EXPECT_EQ(read_file(folder_.file("code/notes")), "mine");
  EXPECT_EQ(json::parse(read_file(folder_.file("code/plan.json"))), plan);
}

const Case kCases[] = {
    {"ExtentsFromData",
     write_places,
     {"code: x -> g", "yours: g -> places", "code: places -> y"},
     {"the model is code in pieces: node `find` (NonZero) has no definition here", "2 of code, 1 step is yours"}},
    {"Sequences",
     [](TestModel& model) {
       model.input("x", {int64_t{4}, int64_t{3}});
       model.output("y", {int64_t{2}, int64_t{3}});
       model.constant(int_tensor("half", {2}, true));
       model.constant(int_tensor("last", {1}, true));
       model.node("Exp", {"x"}, {"e"});
       model.node("SplitToSequence", {"e", "half"}, {"parts"}).i("axis", 0).name("cut");
       model.node("SequenceAt", {"parts", "last"}, {"part"}).name("take");
       model.value("part", {int64_t{2}, int64_t{3}});
       model.node("Neg", {"part"}, {"y"});
     },
     {"code: x -> e", "yours: e -> part", "code: part -> y"},
     {"node `cut` (SplitToSequence) has no definition here", "node `take` (SequenceAt) takes `parts`"}},
    {"Strings",
     [](TestModel& model) {
       model.input("x", {int64_t{4}});
       model.input("names", {int64_t{4}}, kString);
       model.output("y", {int64_t{4}});
       model.output("n", {int64_t{4}}, kString);
       model.node("Sin", {"x"}, {"s"});
       model.node("Cast", {"names"}, {"numbers"}).i("to", kFloat).name("read");
       model.node("Add", {"s", "numbers"}, {"y"});
       model.node("Identity", {"names"}, {"n"});
     },
     {"code: x -> s", "yours: names -> numbers", "code: s,numbers -> y"},
     {"(Cast)", "it reads `names` of type string"}},
    // What is found is counted, and nothing else is made of it: who counts takes what finds.
    {"Counts",
     [](TestModel& model) {
       model.input("x", {int64_t{5}, int64_t{4}});
       model.output("y", {std::string("k")}, kInt64);
       model.constant(int_tensor("one", {1}, true));
       model.constant(int_tensor("none", {0}, true));
       model.node("Cast", {"x"}, {"c"}).i("to", kBool);
       model.node("NonZero", {"c"}, {"z"}).name("find");
       model.node("Shape", {"z"}, {"s"});
       model.node("Gather", {"s", "one"}, {"k"}).i("axis", 0);
       model.node("Range", {"none", "k", "one"}, {"y"}).name("count");
     },
     {"code: x -> c", "yours: c -> z", "code: z -> k", "yours: k -> y"},
     {"node `find` (NonZero) has no definition here", "node `count` (Range)"}},
};
INSTANTIATE_TEST_SUITE_P(Models, Pieces, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(PiecesOfModels, BuildTogetherByTheirOwnCMakeFiles) {
  TestFolder folder;
  TestModel model;
  write_places(model);
  model.save(folder.file("m.onnx"));
  const Outcome made =
      run_program("optimize --cost analytic " + folder.file("m.onnx") + " --prefix net --emit " + folder.file("code"));
  ASSERT_EQ(made.status, 0) << made.text;
  write_file(folder.file("main.cc"), R"(
#include <cstdio>
#include "piece_0/model.h"
#include "piece_2/model.h"
#include "plan.h"
int main(int, char**) {
  for (const net_plan_step* step = net_plan; step->name; step++)
    std::printf("%s %s %s -> %s\n", step->name, step->prefix ? step->prefix : "yours", step->inputs[0], step->outputs[0]);
  const bool has_both = &net_0_run != nullptr && &net_2_run != nullptr;
  return has_both ? 0 : 1;
}
)");
  const std::string code = folder.file("code");
  const Outcome built =
      run_command("g++ -std=c++17 -O0 -fopenmp -I" + code + " " + folder.file("main.cc") + " $(ls " + code +
                  "/piece_0/*.cc " + code + "/piece_2/*.cc | grep -v example.cc) -ldnnl -o " + folder.file("program"));
  ASSERT_EQ(built.status, 0) << built.text;
  EXPECT_EQ(run_command(folder.file("program")).text,
            "piece_0 net_0 x -> g\nyours_1 yours g -> places\npiece_2 net_2 places -> y\n");
}

TEST(PiecesOfModels, AModelWithoutAnyCodeIsTheCallersAndAllCausesAreListed) {
  TestFolder folder;
  TestModel model;
  model.input("names", {int64_t{4}}, kString);
  model.input("more", {int64_t{4}}, kString);
  model.output("y", {int64_t{4}});
  model.output("z", {int64_t{4}});
  model.node("Cast", {"names"}, {"y"}).i("to", kFloat).name("first");
  model.node("Cast", {"more"}, {"z"}).i("to", kFloat).name("second");
  model.save(folder.file("m.onnx"));
  const Outcome made = run_program("optimize " + folder.file("m.onnx") + " --emit " + folder.file("code"));
  EXPECT_EQ(made.status, 0) << made.text;
  for (const char* text :
       {"nodes have no code", "node `first` (Cast)", "node `second` (Cast)", "0 of code, 2 steps are yours"})
    EXPECT_NE(made.text.find(text), std::string::npos) << text << made.text;
  for (const char* step : {"code/yours_0.onnx", "code/yours_1.onnx"})
    EXPECT_TRUE(std::filesystem::exists(folder.file(step))) << step;
}

TEST(PiecesOfModels, ARunTakesThePlanNotTheFolder) {
  TestFolder folder;
  TestModel model;
  write_places(model);
  model.save(folder.file("m.onnx"));
  ASSERT_EQ(
      run_program("optimize --cost analytic --no-measure " + folder.file("m.onnx") + " --emit " + folder.file("code"))
          .status,
      0);
  const Outcome ran = run_program("run " + folder.file("code"));
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.text.find("is a model in pieces"), std::string::npos) << ran.text;
}

}  // namespace
}  // namespace gopt
