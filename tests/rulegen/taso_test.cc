// Rules in TASO's form: some of our own in it, true and false, and files that are wrong.
#include <nlohmann/json.hpp>

#include "gopt/taso_json.h"
#include "gopt/verifier.h"
#include "program.h"

namespace gopt {
namespace {

TEST(Taso, RulesAreProvedAndRefutedAsExpected) {
  const std::string text = read_file(GOPT_TASO_RULES);
  const nlohmann::json file = nlohmann::json::parse(text);
  const auto rules = parse_taso_rules(text, "F");
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  ASSERT_EQ(rules->size(), file["rules"].size());
  for (size_t i = 0; i < rules->size(); i++) {
    const nlohmann::json& expected = file["rules"][i];
    const Verification v = verify_rule((*rules)[i]);
    EXPECT_EQ(to_string(v.verdict), expected["expect"]) << expected["says"] << "\n"
                                                        << print_rule((*rules)[i]) << v.reason;
    EXPECT_EQ(v.verdict == Verdict::Refuted, v.counterexample.has_value()) << expected["says"];
  }
}

TEST(Taso, WhatRulesNeedIsTheirCondition) {
  const auto rules = parse_taso_rules(R"([{"id": 7, "rank": {"-1": 4, "-2": 4, "-3": 4},
    "src": [{"op": "conv2d", "p": {"stride_h": 1, "stride_w": 1, "pad": 0, "acti": 0}, "in": [[-1,0],[-3,0]]},
            {"op": "conv2d", "p": {"stride_h": 1, "stride_w": 1, "pad": 0, "acti": 0}, "in": [[-2,0],[-3,0]]}],
    "dst": [{"op": "concat", "p": {"axis": 0}, "in": [[-1,0],[-2,0]]},
            {"op": "conv2d", "p": {"stride_h": 1, "stride_w": 1, "pad": 0, "acti": 0}, "in": [[0,0],[-3,0]]},
            {"op": "split", "p": {"axis": 0, "num_outputs": 2}, "in": [[1,0]]}],
    "out": [[[0,0],[2,0]], [[1,0],[2,1]]]}])",
                                      "F");
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  EXPECT_EQ(rules->at(0).name, "taso-7");
  const Verification v = verify_rule(rules->at(0));
  ASSERT_EQ(v.verdict, Verdict::Proved) << v.reason;
  EXPECT_FALSE(v.condition.is_true());
}

TEST(Taso, MergedGroupsNarrowTheSource) {
  const auto rules = parse_taso_rules(
      R"([{"src": [{"op": "conv2d", "p": {"stride_h": 1, "stride_w": 1, "pad": "valid"}, "in": [[-1,0],[-2,0]]}],
    "dst": [{"op": "merge_gconv", "p": {"merge_gconv_count": 2}, "in": [[-2,0]]},
            {"op": "conv2d", "p": {"stride_h": 1, "stride_w": 1, "pad": "valid"}, "in": [[-1,0],[0,0]]}],
    "out": [[[0,0],[1,0]]]}])",
      "F");
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  EXPECT_FALSE(find_counterexample(rules->at(0), 200, 5).has_value());
}

struct Row {
  const char* name;
  const char* text;
  const char* error;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

TEST(Taso, APermutationMayBeAList) {
  const auto rule = [](const std::string& parameters) {
    return parse_taso_rules(R"([{"src": [{"op": "transpose", "p": {)" + parameters + R"(}, "in": [[-1,0]]},
      {"op": "relu", "p": {}, "in": [[0,0]]}], "dst": [{"op": "relu", "p": {}, "in": [[-1,0]]},
      {"op": "transpose", "p": {)" +
                                parameters + R"(}, "in": [[0,0]]}], "out": [[[1,0],[1,0]]]}])",
                            "F");
  };
  const auto listed = rule(R"("perm": [2,0,1])"), numbered = rule(R"("perm": 19, "numdim": 3)");
  ASSERT_TRUE(listed.ok()) << listed.error().message;
  ASSERT_TRUE(numbered.ok()) << numbered.error().message;
  EXPECT_EQ(print_rule(listed->front()), print_rule(numbered->front()));
  for (const char* wrong :
       {R"("perm": [0,0])", R"("perm": [0,2])", R"("perm": [1,0], "numdim": 3)", R"("perm": [-1,0])"})
    EXPECT_FALSE(rule(wrong).ok()) << wrong;
}

class MalformedTaso : public ::testing::TestWithParam<Row> {};
TEST_P(MalformedTaso, IsAnErrorThatNamesTheRule) {
  const auto rules = parse_taso_rules(GetParam().text, "F");
  ASSERT_FALSE(rules.ok());
  EXPECT_NE(rules.error().message.find(GetParam().error), std::string::npos) << rules.error().message;
}
INSTANTIATE_TEST_SUITE_P(
    Taso, MalformedTaso,
    ::testing::Values(
        Row{"NoJson", "{", "F: this is not JSON"}, Row{"NoRules", "{\"n\": 1}", "F: no array of rules"},
        Row{"NotAnObject", "[3]", "F: entry 0, which has no id: a rule is an object"},
        Row{"NoSource", "[{}]", "F: entry 0, which has no id: 'src' is missing"},
        Row{"NoTarget", R"([{"id": 4, "src": []}])", "F: rule 4 (entry 0): 'dst' is missing"},
        Row{"UnknownOperator",
            R"([{"id": 17, "src": [{"op": "frob", "in": [[-1,0]]}], "dst": [], "out": [[[0,0],[-1,0]]]}])",
            "F: rule 17 (entry 0): source: operator 0 (frob): unknown operator 'frob'"},
        Row{"Reshape", R"([{"src": [{"op": "reshape", "in": [[-1,0]]}], "dst": [], "out": [[[0,0],[-1,0]]]}])",
            "does not say the shape"},
        Row{"Arity", R"([{"src": [{"op": "relu", "in": [[-1,0],[-2,0]]}], "dst": [], "out": [[[0,0],[-1,0]]]}])",
            "it has 2 inputs and needs 1"},
        Row{"ForwardReference", R"([{"src": [{"op": "relu", "in": [[0,0]]}], "dst": [], "out": [[[0,0],[-1,0]]]}])",
            "which is not before it"},
        Row{"NoSuchOutput", R"([{"src": [{"op": "relu", "in": [[-1,0]]}], "dst": [], "out": [[[0,1],[-1,0]]]}])",
            "operator 0 has no output 1"},
        Row{"MissingParameter",
            R"([{"src": [{"op": "conv2d", "p": {}, "in": [[-1,0],[-2,0]]}], "dst": [], "out": [[[0,0],[-1,0]]]}])",
            "parameter 'stride_h' is missing"},
        Row{"UnknownPadding",
            R"([{"id": "a", "src": [{"op": "conv2d", "p": {"pad": "full"}, "in": [[-1,0],[-2,0]]}], "dst": [], "out": []}])",
            "F: rule a (entry 0): parameter 'pad' cannot be 'full'"},
        Row{"AxisOutOfRange",
            R"([{"src": [{"op": "concat", "p": {"axis": 2, "numdim": 2}, "in": [[-1,0],[-2,0]]}], "dst": [], "out": [[[0,0],[-1,0]]]}])",
            "parameter 'axis' is 2"},
        Row{"NoPermutation",
            R"([{"src": [{"op": "transpose", "p": {"numdim": 2, "perm": 3}, "in": [[-1,0]]}], "dst": [], "out": [[[0,0],[-1,0]]]}])",
            "'perm' is no permutation"},
        Row{"RanksDiffer",
            R"([{"src": [{"op": "ewadd", "in": [[-1,0],[-2,0]]}], "dst": [], "out": [[[0,0],[-1,0]]], "rank": {"-1": 3, "-2": 2}}])",
            "operator 0 (ewadd): input 1 has 2 axes and needs 3, as many as input 0"},
        Row{"NoOutputs", R"([{"src": [], "dst": [], "out": []}])", "'out' is empty"},
        Row{"VariableOfTheTarget",
            R"([{"src": [{"op": "relu", "in": [[-1,0]]}], "dst": [{"op": "relu", "in": [[-2,0]]}], "out": [[[0,0],[0,0]]]}])",
            "variable 'v2' does not occur on the left side"},
        Row{"TwiceTheNumber",
            R"([{"id": 1, "src": [{"op": "relu", "in": [[-1,0]]}], "dst": [{"op": "relu", "in": [[-1,0]]}], "out": [[[0,0],[0,0]]]},
                {"id": 1, "src": [], "dst": [], "out": [[[-1,0],[-1,0]]]}])",
            "F: rule 1 (entry 1): entry 0 has the same id"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Taso, EachRuleIsReadByItself) {
  const auto parsed = parse_each_taso_rule(
      R"([3, {"id": 5, "src": [{"op": "relu", "in": [[-1,0]]}], "dst": [{"op": "relu", "in": [[-1,0]]}], "out": [[[0,0],[0,0]]]},
          {"id": 6, "src": [{"op": "frob", "in": [[-1,0]]}], "dst": [], "out": [[[0,0],[-1,0]]]}])",
      "F");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  ASSERT_EQ(parsed->rules.size(), 1u);
  ASSERT_EQ(parsed->malformed.size(), 2u);
  EXPECT_EQ(parsed->malformed[0].name, "taso-entry-0");
  EXPECT_EQ(parsed->malformed[0].next, 0u);
  EXPECT_EQ(parsed->malformed[1].name, "taso-6");
  EXPECT_EQ(parsed->malformed[1].next, 1u);
}

// An entry without an id is called by its place, which is no other's id.
TEST(Taso, AnEntryWithoutIdHasANameOfItsOwn) {
  const char* relu = R"("src": [{"op": "relu", "in": [[-1,0]]}], "dst": [{"op": "relu", "in": [[-1,0]]}],
      "out": [[[0,0],[0,0]]])";
  const auto rules = parse_taso_rules(
      std::string("[{\"id\": 1, ") + relu + "}, {" + relu + "}, {\"id\": 2, " + relu + "}, {" + relu + "}]", "F");
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  std::vector<std::string> names;
  for (const RewriteRule& rule : *rules) names.push_back(rule.name);
  EXPECT_EQ(names, (std::vector<std::string>{"taso-1", "taso-entry-1", "taso-2", "taso-entry-3"}));
}

TEST(Taso, TheProgramReportsTheError) {
  TestFolder folder;
  const std::string path = write_file(
      folder.file("r.json"), R"([{"id": 5, "src": [{"op": "frob", "in": []}], "dst": [], "out": [[[0,0],[0,0]]]}])");
  const Outcome outcome = run_rulegen("verify --format taso-json " + path);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("rule 5"), std::string::npos) << outcome.text;
}

}  // namespace
}  // namespace gopt
