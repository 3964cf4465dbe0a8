// `rulegen check-log`: a log is accepted as the proof of the rule that it is the proof of, whole and unchanged.
#include <functional>

#include "program.h"

namespace gopt {
namespace {

// Two outputs under a condition; leading axes; extents that may be 1.
constexpr const char* kRules = R"(rule two-outputs
  var a f32[n]
  var b f32[m]
  left
    x = Relu(a)
    y = Neg(b)
    return x, y
  right
    s = Add(a, b)
    d = Sub(s, b)
    x = Relu(d)
    y = Neg(b)
    return x, y
end

rule relu-twice
  var x f32[...,n]
  left
    y = Relu(x)
    z = Relu(y)
    return z
  right
    y = Relu(x)
    return y
end

rule add-broadcasts
  var x f32[n]
  var y f32[k]
  left
    s = Add(x, y)
    return s
  right
    s = Add(y, x)
    return s
end

rule associate
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

rule truth
  var a bool[n]
  var b bool[n]
  left
    x = And(a, b)
    y = Or(a, x)
    return y
  right
    y = Or(a, a)
    return y
end
)";

using Change = std::function<std::string(std::string)>;

std::string without_lines(std::string log, const std::string& start) {
  std::string kept;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);)
    if (line.rfind(start, 0) != 0) kept += line + "\n";
  EXPECT_NE(kept, log) << start;
  return kept;
}
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

class CheckLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(rules_, kRules);
    const Outcome proved = run_rulegen("verify --write --log " + logs_ + " " + rules_);
    ASSERT_EQ(proved.status, 0) << proved.text;
  }
  std::string log(const std::string& rule) const { return logs_ + "/" + rule + ".log"; }
  Outcome check(const std::string& arguments) const {
    return run_rulegen("check-log --rules " + rules_ + " " + arguments);
  }
  void expect_rejected(const std::string& path, const std::string& why) const {
    const Outcome outcome = check(path);
    EXPECT_EQ(outcome.status, 1) << outcome.text;
    EXPECT_NE(outcome.text.find("rejected: "), std::string::npos) << outcome.text;
    EXPECT_NE(outcome.text.find(why), std::string::npos) << why << "\n" << outcome.text;
  }
  // The log of the rule, changed.
  void expect_rejected_when(const std::string& rule, const std::string& why, const Change& change) const {
    const std::string before = read_file(log(rule));
    const std::string after = change(before);
    ASSERT_NE(after, before);
    write_file(log(rule), after);
    expect_rejected(log(rule), why);
    write_file(log(rule), before);
  }

  TestFolder folder_;
  const std::string rules_ = folder_.file("t.rules"), logs_ = folder_.file("logs");
};

TEST_F(CheckLogTest, AcceptsTheProofsOfTheRules) {
  const Outcome outcome = check("--verbose " + logs_ + "/*.log");
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("two-outputs: accepted"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("5 logs accepted, 0 rejected"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("0 of 5 rules have no log"), std::string::npos) << outcome.text;
  const Outcome one = check(log("truth"));
  EXPECT_NE(one.text.find("4 of 5 rules have no log"), std::string::npos) << one.text;
  const Outcome named = run_rulegen("check-log " + rules_ + " " + log("truth"));
  EXPECT_EQ(named.status, 0) << "a rules file is known by its name: " << named.text;
}

// An extent of 2 (n + m): positions are 2 q + r with q below n + m.
TEST_F(CheckLogTest, AcceptsPositionsByFactorsThatAreSums) {
  const std::string rules = folder_.file("sums.rules"), logs = folder_.file("sums");
  write_file(rules, R"(
rule halves
  var x f32[n,h]
  var y f32[m,h]
  left
    v0 = Concat(y, x) {axis=0}
    v1 = Concat(x, v0) {axis=0}
    v2 = Concat(v1, y) {axis=0}
    return v2
  right
    v0 = Concat(x, y) {axis=0}
    v1 = Concat(v0, v0) {axis=0}
    return v1
end
)");
  const Outcome proved = run_rulegen("verify --write --log " + logs + " " + rules);
  ASSERT_EQ(proved.status, 0) << proved.text;
  ASSERT_NE(read_file(logs + "/halves.log").find("%o0_0q"), std::string::npos) << "the log is not of such positions";
  const Outcome outcome = run_rulegen("check-log --rules " + rules + " " + logs + "/halves.log");
  EXPECT_EQ(outcome.status, 0) << outcome.text;
}

TEST_F(CheckLogTest, WantsTheRules) {
  const Outcome outcome = run_rulegen("check-log " + log("truth"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("--rules"), std::string::npos) << outcome.text;
  EXPECT_EQ(check("").status, 1);
  EXPECT_EQ(check(write_file(folder_.file("t.log"), "no log")).status, 1);
}

TEST_F(CheckLogTest, RejectsStepsThatDoNotHold) {
  expect_rejected_when("associate", "nothing shows that the terms of a class sum to 0",
                       [](const std::string& log) { return without_lines(log, "(cancels "); });
}

TEST_F(CheckLogTest, RejectsTheLogOfAnotherRule) {
  write_file(log("truth"), read_file(log("relu-twice")));
  expect_rejected(log("truth"), "named after another rule");
  write_file(log("truth"), replaced(read_file(log("relu-twice")), "(proof |relu-twice|", "(proof |truth|"));
  expect_rejected(log("truth"), "other content");
  write_file(log("nothing"), replaced(read_file(log("relu-twice")), "|relu-twice|", "nothing"));
  expect_rejected(log("nothing"), "no rule of the files given is named `nothing`");
}

// All hashes are right, and the steps are another rule's.
TEST_F(CheckLogTest, RejectsTheStepsOfAnotherRule) {
  const std::string own = read_file(log("two-outputs")), other = read_file(log("add-broadcasts"));
  expect_rejected_when("two-outputs", "", [&](const std::string&) {
    return own.substr(0, own.find('\n') + 1) + other.substr(other.find('\n') + 1);
  });
}

TEST_F(CheckLogTest, RejectsAProofOfSomeOutputs) {
  expect_rejected_when("two-outputs", "nothing is shown of output 1",
                       [](const std::string& log) { return without_lines(log, "(output 1 "); });
  // Twice the first one is not both.
  expect_rejected_when("two-outputs", "output 1", [](const std::string& log) {
    const size_t at = log.find("(output 0 "), end = log.find('\n', at) + 1;
    std::string first = log.substr(at, end - at);
    first.replace(0, 10, "(output 1 ");
    return without_lines(log, "(output 1 ") + first;
  });
}

TEST_F(CheckLogTest, RejectsAProofOfSomeCases) {
  const auto cut = [](const std::string& log, const std::string& from, const std::string& to) {
    const size_t begin = log.find(from), end = to.empty() ? log.size() : log.find(to);
    return log.substr(0, begin) + log.substr(end);
  };
  expect_rejected_when("relu-twice", "below one leading axis",
                       [&](const std::string& log) { return cut(log, "(case prefix prefix)", ""); });
  expect_rejected_when("relu-twice", "below no leading axes",
                       [&](const std::string& log) { return cut(log, "(case prefix)", "(case prefix prefix)"); });
  expect_rejected_when("relu-twice", "is one of the rule's own sizes", [&](const std::string& log) {
    return replaced(log, "(case prefix prefix)", "(case prefix n)");
  });
  // n == k or n == 1 or k == 1: without what is said where one of them is 1.
  const std::string proof = read_file(log("add-broadcasts"));
  ASSERT_NE(proof.find("(case one "), std::string::npos) << proof;
  expect_rejected_when("add-broadcasts", "nothing is shown of",
                       [&](const std::string& log) { return log.substr(0, log.rfind("(case one ")); });
  expect_rejected_when("add-broadcasts", "as it stands",
                       [&](const std::string& log) { return cut(log, "(case plain)", "(case one "); });
}

// Proved for few sizes, or for a part of the positions.
TEST_F(CheckLogTest, RejectsAProofOfSomeSizes) {
  for (const char* more : {"(>= (+ 1000 (* -1 n)))", "(>= (+ -7 (* 1 n)))", "false", "(>= (+ 9 (* 1 hidden)))"})
    expect_rejected_when("two-outputs", "nothing is shown of output 0", [&](const std::string& log) {
      return replaced(log, "(output 0 (and ", "(output 0 (and " + std::string(more) + " ");
    });
  expect_rejected_when("two-outputs", "for some of its positions alone", [&](const std::string& log) {
    return replaced(log, "(output 0 (and ", "(output 0 (and (>= (+ 3 (* -1 %o0_0))) ");
  });
  expect_rejected_when("two-outputs", "is not any position", [&](const std::string& log) {
    return replaced(log, "(at (+ (* 1 %o0_0)))", "(at (+ (* 1 n)))");
  });
  expect_rejected_when("two-outputs", "of what is no size",
                       [&](const std::string& log) { return replaced(log, "(where", "(where (%o0_0 (+ (* 1 n)))"); });
}

TEST_F(CheckLogTest, RejectsExpressionsThatTheDefinitionsDoNotGive) {
  expect_rejected_when("relu-twice", "is not what the operators' definitions say", [](const std::string& log) {
    const size_t at = log.find("(output 0 ");
    return log.substr(0, at) + replaced(log.substr(at), "(max ", "(max (const 0x0p+0) ");
  });
  expect_rejected_when("truth", "said to hold truth values",
                       [](const std::string& log) { return replaced(log, "(boolean 0)", "(boolean 0)\n(boolean 7)"); });
  write_file(log("relu-twice"),
             replaced(read_file(log("relu-twice")), "(rule |relu-twice|)", "(rule |relu-twice|)\n(boolean 0)"));
  expect_rejected(log("relu-twice"), "input 0 is said to hold truth values");
}

TEST_F(CheckLogTest, RejectsAnotherRecord) {
  expect_rejected_when("truth", "it is of a proof with digest 0123456789abcdef", [](std::string log) {
    const size_t at = log.find("(digest ") + 8;
    return log.replace(at, 16, "0123456789abcdef");
  });
  expect_rejected_when("truth", "definitions 0123456789abcdef", [](std::string log) {
    const size_t at = log.find("(definitions ") + 13;
    return log.replace(at, 16, "0123456789abcdef");
  });
  expect_rejected_when("two-outputs", "it is of 1 outputs, the rule has 2",
                       [](const std::string& log) { return replaced(log, "(outputs 2)", "(outputs 1)"); });
}

TEST_F(CheckLogTest, RejectsTheLogOfWhatTheFileNoLongerSays) {
  const std::string before = read_file(rules_);
  write_file(rules_, replaced(before, "  when n == m\n", ""));
  expect_rejected(log("two-outputs"), "other content");
  write_file(rules_, replaced(before, "when n == m", "when n >= m"));
  expect_rejected(log("two-outputs"), "other content");
  write_file(rules_, replaced(before, "    y = Or(a, a)", "    y = And(a, a)"));
  expect_rejected(log("truth"), "other content");
  write_file(rules_, kRules);
  expect_rejected(log("relu-twice"), "no record of a proof");
}

// A rules file whose hashes were made right again has no proof either: what is proved is the other condition's.
TEST_F(CheckLogTest, RejectsAProofUnderAnotherCondition) {
  const std::string hash_of_log = read_file(log("two-outputs"));
  const size_t at = hash_of_log.find("(rule ") + 6;
  const std::string own = hash_of_log.substr(at, 16);
  std::string weaker = read_file(rules_);
  weaker = replaced(weaker, "  when n == m\n", "");
  write_file(rules_, weaker);
  const std::string said = check(log("two-outputs")).text;
  const size_t other = said.find("the file's is ");
  ASSERT_NE(other, std::string::npos) << said;
  write_file(log("two-outputs"), replaced(hash_of_log, own, said.substr(other + 14, 16)));
  expect_rejected(log("two-outputs"), "nothing is");
}

}  // namespace
}  // namespace gopt
