// The commands of rulegen: what they print and write, and their exit statuses.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>

#include "held_program.h"
#include "program.h"

namespace gopt {
namespace {

constexpr const char* kTrue = R"(rule associate
  var a f32[n,m]
  var b f32[m,k]
  var c f32[k,l]
  left
    x = MatMul(a, b)
    y = MatMul(x, c)
    return y
  right
    x = MatMul(b, c)
    y = MatMul(a, x)
    return y
end

rule add-broadcasts
  var a f32[n]
  var b f32[m]
  left
    x = Concat(a, b) {axis=0}
    y = Relu(x)
    return y
  right
    x = Relu(a)
    y = Relu(b)
    z = Concat(x, y) {axis=0}
    return z
end

rule same-extent
  var a f32[n]
  var b f32[m]
  left
    x = Relu(a)
    y = Relu(b)
    return x, y
  right
    s = Add(a, b)
    t = Sub(s, b)
    x = Relu(t)
    y = Relu(b)
    return x, y
end
)";
constexpr const char* kFalse = R"(rule commute
  var a f32[n,n]
  var b f32[n,n]
  left
    x = MatMul(a, b)
    return x
  right
    x = MatMul(b, a)
    return x
end
)";

class RulegenTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) { return write_file(folder_.file(name), text); }
  TestFolder folder_;
};

TEST_F(RulegenTest, AnUnknownSubcommandIsNamed) {
  const Outcome outcome = run_rulegen("frob");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("'frob'"), std::string::npos) << outcome.text;
  for (const char* name : {"verify", "show", "audit", "check-log"})
    EXPECT_NE(outcome.text.find(name), std::string::npos) << outcome.text;
}

TEST_F(RulegenTest, VerifySumsUpAndSaysWhatIsNotProved) {
  const Outcome good = run_rulegen("verify " + write("t.rules", kTrue));
  EXPECT_EQ(good.status, 0) << good.text;
  EXPECT_NE(good.text.find("3 proved, 0 refuted, 0 unknown"), std::string::npos) << good.text;
  EXPECT_NE(good.text.find("median"), std::string::npos) << good.text;
  EXPECT_NE(good.text.find("p99"), std::string::npos) << good.text;
  EXPECT_EQ(good.text.find('\r'), std::string::npos) << "no bar outside a terminal";
  const Outcome bad = run_rulegen("verify " + write("f.rules", kFalse));
  EXPECT_EQ(bad.status, 1);
  EXPECT_NE(bad.text.find("commute: refuted: "), std::string::npos) << bad.text;
  EXPECT_NE(bad.text.find(" against "), std::string::npos) << bad.text;
}

TEST_F(RulegenTest, JsonHasARowForEachRuleInFileOrder) {
  const std::string json = folder_.file("out.json");
  const Outcome outcome =
      run_rulegen("verify --threads 2 --json " + json + " " + write("t.rules", kTrue) + " " + write("f.rules", kFalse));
  EXPECT_EQ(outcome.status, 1) << outcome.text;
  const nlohmann::json rows = nlohmann::json::parse(read_file(json));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0]["name"], "associate");
  EXPECT_EQ(rows[0]["verdict"], "proved");
  EXPECT_TRUE(rows[0]["conditions"].is_array());
  EXPECT_TRUE(rows[0]["conditions"].empty());
  EXPECT_TRUE(rows[0]["milliseconds"].is_number());
  EXPECT_EQ(rows[2]["name"], "same-extent");
  EXPECT_EQ(rows[2]["conditions"], nlohmann::json::array({"n == m"}));
  EXPECT_EQ(rows[3]["verdict"], "refuted");
  EXPECT_TRUE(rows[3].contains("counterexample"));
  EXPECT_EQ(run_rulegen("verify --json " + json + " " + folder_.file("t.rules")).status, 1) << "nothing is overwritten";
}

TEST_F(RulegenTest, WhatIsWrittenIsNothingElse) {
  const std::string rules = write("t.rules", kTrue), before = read_file(rules);
  ASSERT_FALSE(before.empty());
  for (const std::string& command :
       {"verify " + rules + " --force --json " + folder_.file("./t.rules"),
        "derive " + rules + " --force --rules " + rules + " --json " + rules,
        "derive --minimal --force --rules " + rules + " --core " + folder_.file("c") + " --shortcut " +
            folder_.file("c"),
        "--max-ops 1 --family scale --force --out " + folder_.file("o") + " --report " + folder_.file("o")}) {
    const Outcome outcome = run_rulegen(command);
    EXPECT_EQ(outcome.status, 1) << command;
    EXPECT_NE(outcome.text.find("is named twice"), std::string::npos) << command << "\n" << outcome.text;
  }
  EXPECT_EQ(read_file(rules), before);
}

TEST_F(RulegenTest, MalformedRulesDoNotKeepOthersFromBeingProved) {
  const std::string unknown =
      "rule frob\n  var x f32[n]\n  left\n    y = Frob(x)\n    return y\n  right\n    return x\nend\n";
  const std::string unended = "rule unended\n  var x f32[n]\n  left\n    y = Relu(x)\n    return y\n";
  const std::string good =
      "rule 1-good\n  var x f32[n]\n  left\n    y = Relu(x)\n    return y\n  right\n    y = Relu(x)\n    return "
      "y\nend\n";
  const std::string rules = write("m.rules", unknown + kFalse + "frob\n" + unended + good + unknown);
  const std::string json = folder_.file("out.json");
  const Outcome outcome = run_rulegen("verify --json " + json + " " + rules);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("m.rules:4: rule `frob`: 'Frob' is no operator"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("1 proved, 1 refuted, 0 unknown, 4 invalid"), std::string::npos) << outcome.text;
  const std::vector<std::pair<std::string, std::string>> expected{{"frob", "invalid"},  {"commute", "refuted"},
                                                                  {"", "invalid"},      {"unended", "invalid"},
                                                                  {"1-good", "proved"}, {"frob", "invalid"}};
  const nlohmann::json rows = nlohmann::json::parse(read_file(json));
  ASSERT_EQ(rows.size(), expected.size());
  for (size_t i = 0; i < expected.size(); i++) {
    EXPECT_EQ(rows[i]["name"], expected[i].first) << i;
    EXPECT_EQ(rows[i]["verdict"], expected[i].second) << i;
  }
  EXPECT_NE(rows[5]["reason"].get<std::string>().find("the name is taken"), std::string::npos) << rows[5];
  // Malformed alone, or a file that is not there, are errors too; what can be read is proved.
  EXPECT_EQ(run_rulegen("verify " + write("u.rules", good + unknown)).status, 1);
  const Outcome missing =
      run_rulegen("verify --json " + folder_.file("2.json") + " nowhere.rules " + write("g.rules", good));
  EXPECT_EQ(missing.status, 1);
  EXPECT_EQ(nlohmann::json::parse(read_file(folder_.file("2.json"))).size(), 1u);
}

// Interrupted when exactly so many rules are decided, by either signal and on any number of threads.
TEST_F(RulegenTest, WhatIsDecidedIsWrittenWhenInterrupted) {
  const std::string files =
      write("f.rules", kFalse) + " " + std::string(GOPT_RULES_FOLDER) + "/hand.rules " + write("t.rules", kTrue);
  for (const auto& [ending, threads, decided] : {std::tuple(SIGINT, "1", 1), {SIGTERM, "2", 3}, {SIGINT, "3", 7}}) {
    const std::string json = folder_.file(std::to_string(decided) + ".json");
    const HeldOutcome outcome = interrupt_after(
        decided, ending, RULEGEN_PROGRAM " verify --threads " + std::string(threads) + " --json " + json + " " + files,
        folder_.file("printed.txt"));
    ASSERT_TRUE(outcome.was_held) << outcome.text;
    ASSERT_TRUE(WIFEXITED(outcome.status));
    EXPECT_EQ(WEXITSTATUS(outcome.status), 128 + ending) << outcome.text;
    EXPECT_NE(outcome.text.find("commute: refuted: "), std::string::npos) << outcome.text;
    EXPECT_NE(outcome.text.find("interrupted: " + std::to_string(decided) + " rules were decided"), std::string::npos)
        << outcome.text;
    const nlohmann::json rows = nlohmann::json::parse(read_file(json));
    ASSERT_GT(rows.size(), 10u) << "every rule has a row";
    for (size_t i = 0; i < rows.size(); i++) {
      const bool is_decided = i < static_cast<size_t>(decided);
      EXPECT_EQ(rows[i].contains("reason") && rows[i]["reason"] == "interrupted", !is_decided) << i << rows[i];
      EXPECT_EQ(rows[i]["verdict"] == "unknown", !is_decided) << i;
    }
  }
}

TEST_F(RulegenTest, AHoldThatIsNoneIsAnError) {
  const Outcome outcome = run_command("GOPT_HOLD=soon " RULEGEN_PROGRAM " verify " + write("t.rules", kTrue));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("GOPT_HOLD=soon: expected a number"), std::string::npos) << outcome.text;
}

TEST_F(RulegenTest, VerdictsDoNotDependOnThreads) {
  const std::string rules = std::string(GOPT_RULES_FOLDER) + "/hand.rules";
  for (const char* threads : {"1", "2"}) {
    const std::string copy = write(std::string(threads) + ".rules", read_file(rules));
    ASSERT_EQ(run_rulegen("verify --write --threads " + std::string(threads) + " " + copy).status, 0);
  }
  EXPECT_EQ(read_file(folder_.file("1.rules")), read_file(folder_.file("2.rules")));
}

TEST_F(RulegenTest, ShowPrintsAlgebra) {
  const std::string rules = write("t.rules", kTrue);
  const Outcome outcome = run_rulegen("show associate --rules " + rules);
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("MatMul(MatMul(a, b), c) = MatMul(a, MatMul(b, c))"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("a: f32[n,m]"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("proved: "), std::string::npos) << outcome.text;
  EXPECT_NE(run_rulegen("show same-extent --rules " + rules).text.find("if n == m"), std::string::npos);
  const Outcome refuted = run_rulegen("show commute --rules " + write("f.rules", kFalse));
  EXPECT_NE(refuted.text.find("counterexample: "), std::string::npos) << refuted.text;
  EXPECT_EQ(run_rulegen("show nothing --rules " + rules).status, 1);
  const Outcome shipped = run_rulegen("show sin-cos-squares");
  EXPECT_EQ(shipped.status, 0) << shipped.text;
  EXPECT_NE(shipped.text.find("x: f32[...]"), std::string::npos) << shipped.text;
}

TEST_F(RulegenTest, ObligationsStandAlone) {
  const std::string smt = folder_.file("smt");
  ASSERT_EQ(run_rulegen("verify --smt2 " + smt + " " + write("t.rules", kTrue)).status, 0);
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(smt)) {
    files++;
    const std::string text = read_file(entry.path().string());
    EXPECT_EQ(text.rfind("; rule ", 0), 0u) << text;
    EXPECT_NE(text.find("(set-logic "), std::string::npos);
    EXPECT_NE(text.find("(set-info :status unsat)"), std::string::npos);
    EXPECT_NE(text.find("(check-sat)"), std::string::npos);
  }
  EXPECT_GT(files, 0u);
  EXPECT_TRUE(std::filesystem::exists(smt + "/associate.0.smt2"));
}

TEST_F(RulegenTest, AnotherSolverAgrees) {
  if (!has_cvc5()) GTEST_SKIP() << "cvc5 is not installed";
  const std::string logs = folder_.file("logs");
  const std::string rules = write("t.rules", kTrue);
  const Outcome outcome = run_rulegen("verify --write --cross-check --log " + logs + " " + rules);
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("0 undecided within its limit, 0 disagree"), std::string::npos) << outcome.text;
  const Outcome checked = run_rulegen("check-log --cross-check --rules " + rules + " " + logs + "/*.log");
  EXPECT_EQ(checked.status, 0) << checked.text;
  EXPECT_NE(checked.text.find("0 undecided within its limit, 0 disagree"), std::string::npos) << checked.text;
}

TEST_F(RulegenTest, AMissingSolverIsSaid) {
  const std::string rules = write("t.rules", kTrue);
  const char* path = std::getenv("PATH");
  const std::string before = path ? path : "";
  setenv("PATH", "/nonexistent", 1);
  const Outcome outcome = run_rulegen("verify --cross-check " + rules);
  setenv("PATH", before.c_str(), 1);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("needs cvc5"), std::string::npos) << outcome.text;
}

}  // namespace
}  // namespace gopt
