// `rulegen derive`: what it prints and writes, that it is the same on any number of threads, and that nothing false
// is derived.
#include <nlohmann/json.hpp>

#include "gopt/definition.h"
#include "gopt/derivation.h"
#include "gopt/verifier.h"
#include "program.h"

namespace gopt {
namespace {

constexpr const char* kGoals = R"(rule three-sums
  var a f32[n]
  var b f32[n]
  var c f32[n]
  left
    x = Add(a, b)
    y = Add(x, c)
    return y
  right
    x = Add(c, b)
    y = Add(a, x)
    return y
end

rule not-so
  var a f32[n]
  var b f32[n]
  left
    x = Sub(a, b)
    return x
  right
    x = Sub(b, a)
    return x
end

rule of-other-operators
  var a f32[n,m]
  left
    x = Erf(a)
    y = Erf(x)
    z = Transpose(y) {perm=[1,0]}
    return z
  right
    x = Transpose(a) {perm=[1,0]}
    y = Erf(x)
    z = Erf(y)
    return z
end
)";

constexpr const char* kBase = R"(rule associate
  var a f32[...]
  var b f32[...]
  var c f32[...]
  left
    x = Add(a, b)
    y = Add(x, c)
    return y
  right
    x = Add(b, c)
    y = Add(a, x)
    return y
end

rule four-sums
  var a f32[...]
  var b f32[...]
  var c f32[...]
  var d f32[...]
  left
    x = Add(a, b)
    y = Add(x, c)
    z = Add(y, d)
    return z
  right
    x = Add(d, c)
    y = Add(x, b)
    z = Add(y, a)
    return z
end

rule relu-twice
  var a f32[...]
  left
    x = Relu(a)
    y = Relu(x)
    return y
  right
    x = Relu(a)
    return x
end
)";

// (x + y) * w = x * w + y * w.
constexpr const char* kThroughAsTaso = R"({"rules": [{"id": 1,
 "src": [{"op": "ewadd", "p": {}, "in": [[-1, 0], [-2, 0]]}, {"op": "ewmul", "p": {}, "in": [[0, 0], [-3, 0]]}],
 "dst": [{"op": "ewmul", "p": {}, "in": [[-1, 0], [-3, 0]]}, {"op": "ewmul", "p": {}, "in": [[-2, 0], [-3, 0]]},
         {"op": "ewadd", "p": {}, "in": [[0, 0], [1, 0]]}],
 "out": [[[1, 0], [2, 0]]]}]})";

class DeriveTest : public ::testing::Test {
 protected:
  void SetUp() override {
    base_ = write_file(folder_.file("base.rules"), kBase);
    ASSERT_EQ(run_rulegen("verify --write " + base_).status, 0);
    goals_ = write_file(folder_.file("goals.rules"), kGoals);
  }
  TestFolder folder_;
  std::string base_, goals_;
};

TEST_F(DeriveTest, SaysWhatFollowsAndHow) {
  const std::string json = folder_.file("out.json");
  const Outcome outcome = run_rulegen("derive --rules " + base_ + " " + goals_ + " --json " + json);
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  for (const char* part : {"not-so: left out, it is refuted", "three-sums: follows in 1 step\n", "by associate",
                           "of-other-operators: saturated: does not follow", "2 rules by 3: 1 follow"})
    EXPECT_NE(outcome.text.find(part), std::string::npos) << part << "\n" << outcome.text;
  const nlohmann::json rows = nlohmann::json::parse(read_file(json));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0]["derivation"][0]["rule"], "associate");
  EXPECT_EQ(rows[2]["name"], "not-so");
  EXPECT_EQ(rows[2]["verdict"], "left out");
  EXPECT_NE(rows[2]["reason"].get<std::string>().find("it is refuted: "), std::string::npos) << rows[2];
  EXPECT_EQ(run_rulegen("derive --rules " + base_ + " " + goals_ + " --json " + json).status, 1) << "overwritten";
}

// Hashes are right, and nothing was proved.
std::string forged(const std::string& text) {
  const auto parsed = parse_rules(text, "forged");
  EXPECT_TRUE(parsed.ok());
  std::vector<RewriteRule> rules = *parsed;
  for (RewriteRule& rule : rules)
    rule.proof = ProofRecord{definitions_hash(rule), 3, "z3 4.8.12", "0123456789abcdef", rule.content_hash()};
  return print_rules(rules);
}
constexpr const char* kFalseSides =
    "\n  left\n    x = Sub(a, b)\n    return x\n  right\n    x = Sub(b, a)\n    return x\nend\n";
constexpr const char* kFalseGoal =
    "rule goal\n  var a f32[n]\n  var b f32[n]\n  left\n    x = Sub(a, b)\n    y = Neg(x)\n    return y\n  right\n    "
    "x = Sub(b, a)\n"
    "    y = Neg(x)\n    return y\nend\n";

TEST_F(DeriveTest, ARuleThatIsNotProvedAgainIsNotUsed) {
  const std::string variables = "\n  var a f32[...]\n  var b f32[...]";
  const std::string base = write_file(folder_.file("forged.rules"), forged("rule made-up" + variables + kFalseSides));
  const std::string goals = write_file(folder_.file("goal.rules"), forged(kFalseGoal));
  for (const char* learn : {"", " --learn"}) {
    const Outcome outcome = run_rulegen("derive --rules " + base + " --rules " + base_ + " " + goals + learn);
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    EXPECT_NE(outcome.text.find("rule `made-up` is not used, although its record says that it is proved: it is false"),
              std::string::npos)
        << outcome.text;
    EXPECT_NE(outcome.text.find("1 rules by 4: 0 follow"), std::string::npos) << outcome.text;
    EXPECT_NE(outcome.text.find("0 rules were used, all proved again; 1 were not and are left out"), std::string::npos)
        << outcome.text;
  }
  // A false rule that follows from itself is not learned for those after it.
  const std::string both = write_file(
      folder_.file("both.rules"), forged("rule made-up" + variables + kFalseSides + std::string("\n") + kFalseGoal));
  const Outcome learned = run_rulegen("derive --learn --rules " + base_ + " " + both);
  EXPECT_NE(learned.text.find("2 rules by 3: 0 follow"), std::string::npos) << learned.text;
}

TEST_F(DeriveTest, MinimalSplitsADatabase) {
  const std::string core = folder_.file("core.rules"), shortcut = folder_.file("shortcut.rules");
  const Outcome outcome =
      run_rulegen("derive --minimal --rules " + base_ + " --core " + core + " --shortcut " + shortcut);
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find(
                "3 rules, proved by their records: 2 core (0 of them not derived within the limits), 1 shortcuts"),
            std::string::npos)
      << outcome.text;
  const auto kept = parse_rules(read_file(core), "core"), others = parse_rules(read_file(shortcut), "shortcut");
  ASSERT_TRUE(kept.ok() && others.ok());
  ASSERT_EQ(kept->size(), 2u);
  ASSERT_EQ(others->size(), 1u);
  EXPECT_EQ(others->at(0).name, "four-sums");
  EXPECT_TRUE(others->at(0).proof.has_value());
  EXPECT_NE(read_file(shortcut).find("by associate"), std::string::npos);
  // What is left is minimal, and gives the rest.
  EXPECT_NE(run_rulegen("derive --minimal --rules " + core).text.find("0 shortcuts"), std::string::npos);
  EXPECT_NE(run_rulegen("derive --learn --brief --rules " + core + " " + shortcut).text.find("1 rules by 2: 1 follow"),
            std::string::npos);
}

// The same three rules in two files: however they are given, FILE is found and all of the database is read.
TEST_F(DeriveTest, TheDatabaseMayBeSeveralFiles) {
  const std::string text = read_file(base_);
  const size_t second = text.find("rule four-sums");
  ASSERT_NE(second, std::string::npos);
  const std::string a = write_file(folder_.file("a.rules"), text.substr(0, second));
  const std::string b = write_file(folder_.file("b.rules"), text.substr(second));
  for (const std::string& files :
       {goals_ + " --rules " + a + " " + b, "--rules " + a + " " + b + " " + goals_, "--rules " + base_ + " " + goals_,
        goals_ + " --rules " + a + " --rules " + b, "--rules " + a + " --rules " + b + " " + goals_,
        "--rules " + a + " " + goals_ + " --rules " + b, "--rules " + a + " " + b + " --brief " + goals_}) {
    const Outcome outcome = run_rulegen("derive " + files);
    EXPECT_EQ(outcome.status, 0) << files << "\n" << outcome.text;
    EXPECT_NE(outcome.text.find("2 rules by 3: 1 follow"), std::string::npos) << files << "\n" << outcome.text;
  }
  EXPECT_NE(
      run_rulegen("derive --minimal --rules " + a + " " + b).text.find("3 rules, proved by their records: 2 core"),
      std::string::npos);
  const Outcome two = run_rulegen("derive " + goals_ + " " + a + " --rules " + b);
  EXPECT_EQ(two.status, 1);
  EXPECT_NE(two.text.find("derive takes one FILE"), std::string::npos) << two.text;
  const Outcome no_database = run_rulegen("derive --minimal " + goals_ + " --rules " + b);
  EXPECT_NE(no_database.text.find("it takes no FILE"), std::string::npos) << no_database.text;
}

// ((a + b) + c) + ... = ((... + c) + b) + a
std::string turned_sum(const std::string& name, const std::string& summands) {
  std::string text = "rule " + name + "\n", left, right;
  for (char summand : summands) text += std::string("  var ") + summand + " f32[...]\n";
  const auto side = [](const std::string& order) {
    std::string lines, sum(1, order[0]);
    for (size_t i = 1; i < order.size(); i++) {
      const std::string next = "s" + std::to_string(i);
      lines += "    " + next + " = Add(" + sum + ", " + order[i] + ")\n";
      sum = next;
    }
    return lines + "    return " + sum + "\n";
  };
  return text + "  left\n" + side(summands) + "  right\n" + side({summands.rbegin(), summands.rend()}) + "end\n\n";
}

TEST_F(DeriveTest, WhatWasLearntIsUsed) {
  const std::string text = kBase, associate = text.substr(0, text.find("rule four-sums"));
  const std::string base = write_file(folder_.file("associate.rules"), associate);
  ASSERT_EQ(run_rulegen("verify --write " + base).status, 0);
  const std::string goals =
      write_file(folder_.file("learn.rules"), turned_sum("four", "abcd") + turned_sum("five", "abcde"));
  const std::string command = "derive --iterations 1 " + goals + " --rules " + base;
  EXPECT_NE(run_rulegen(command).text.find("five: not derived within the limits: 1 iterations"), std::string::npos);
  const Outcome learning = run_rulegen(command + " --learn");
  EXPECT_NE(learning.text.find("five: follows"), std::string::npos) << learning.text;
  EXPECT_NE(learning.text.find("by four"), std::string::npos) << learning.text;
}

TEST_F(DeriveTest, IsTheSameOnAnyNumberOfThreads) {
  const std::string database = GOPT_RULES_FOLDER "/core.rules";
  const std::string goals = GOPT_RULES_FOLDER "/hand.rules";
  const auto run = [&](const std::string& threads) {
    return run_rulegen("derive --nodes 400 --threads " + threads + " --rules " + database + " " + goals, "2>/dev/null")
        .text;
  };
  const std::string one = run("1");
  EXPECT_NE(one.find(" follow (at most "), std::string::npos) << one;
  EXPECT_EQ(one, run("3"));
}

TEST_F(DeriveTest, LimitsAreToldFromSaturation) {
  const std::string rules = " --rules " GOPT_RULES_FOLDER "/core.rules ";
  const Outcome limited = run_rulegen("derive --nodes 10 --brief" + rules + base_);
  EXPECT_NE(limited.text.find("four-sums: not derived within the limits: more than 10 nodes"), std::string::npos)
      << limited.text;
}

TEST_F(DeriveTest, WrongFilesAreErrorsThatSayWhere) {
  const std::string broken = write_file(folder_.file("broken.rules"), "rule x\n  left\n");
  const Outcome goal = run_rulegen("derive --rules " + base_ + " " + broken);
  EXPECT_EQ(goal.status, 1);
  EXPECT_NE(goal.text.find("broken.rules:"), std::string::npos) << goal.text;
  const Outcome database = run_rulegen("derive --rules " + broken + " " + goals_);
  EXPECT_EQ(database.status, 1);
  EXPECT_NE(database.text.find("broken.rules:"), std::string::npos) << database.text;
  const Outcome json = run_rulegen("derive --format taso-json --rules " + base_ + " " + goals_);
  EXPECT_EQ(json.status, 1);
  EXPECT_NE(json.text.find("this is not JSON"), std::string::npos) << json.text;
  EXPECT_EQ(run_rulegen("derive --rules " + base_).status, 1) << "no FILE";
  EXPECT_EQ(run_rulegen("derive " + goals_).status, 1) << "no database";
}

TEST_F(DeriveTest, AMalformedRuleDoesNotKeepOthersFromBeingDerived) {
  const std::string mixed = write_file(folder_.file("mixed.rules"), "rule x\n  left\nend\n\n" + std::string(kGoals));
  const std::string json = folder_.file("mixed.json");
  const Outcome outcome = run_rulegen("derive --rules " + base_ + " " + mixed + " --json " + json);
  EXPECT_EQ(outcome.status, 1) << outcome.text;
  EXPECT_NE(outcome.text.find("mixed.rules:"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("three-sums: follows in 1 step\n"), std::string::npos) << outcome.text;
  const nlohmann::json rows = nlohmann::json::parse(read_file(json));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[2]["name"], "x");
  EXPECT_NE(rows[2]["reason"].get<std::string>().find("it is malformed: "), std::string::npos) << rows[2];
}

// Our own rules in TASO's form: what is proved of them and follows from what is shipped.
TEST_F(DeriveTest, ReadsTasosForm) {
  const std::string command = "derive --format taso-json --rules " GOPT_RULES_FOLDER "/core.rules " GOPT_TASO_RULES;
  const Outcome outcome = run_rulegen(command);
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("taso-2: left out, it is refuted"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find(": follows in "), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("taso-21: follows in "), std::string::npos) << outcome.text;
  EXPECT_EQ(run_rulegen(command + " --any-kind --respect-kinds").status, 1);
}

// The database knows how a product by weights goes through a sum; a form without kinds means any values.
TEST_F(DeriveTest, AFormWithoutKindsMeansAnyValues) {
  const std::string database = folder_.file("weights.rules"), goals = folder_.file("goals.json");
  write_file(database, R"(rule through
  var x f32[...]
  var y f32[...]
  var w f32[...] weight
  left
    a = Add(x, y)
    z = Mul(a, w)
    return z
  right
    a = Mul(x, w)
    b = Mul(y, w)
    z = Add(a, b)
    return z
end
)");
  ASSERT_EQ(run_rulegen("verify --write " + database).status, 0);
  write_file(goals, kThroughAsTaso);
  const std::string command = "derive --format taso-json --rules " + database + " " + goals;
  EXPECT_NE(run_rulegen(command).text.find(" 1 follow "), std::string::npos);
  EXPECT_NE(run_rulegen(command + " --respect-kinds").text.find(" 0 follow "), std::string::npos);
}

// Wrong rules, made by changing right sides: where samples tell the sides of one apart, it does not follow.
TEST_F(DeriveTest, NothingFalseFollows) {
  const auto database = load_rules(GOPT_RULES_FOLDER "/core.rules");
  ASSERT_TRUE(database.ok()) << database.error().message;
  const DerivationRules rules(database->rules);
  DerivationLimits limits;
  limits.nodes = 300;
  limits.any_kind = true;
  int wrong = 0;
  for (uint64_t seed = 0; wrong < 60 && seed < 600; seed++) {
    const auto mutant = mutate_right_side(database->rules[(seed * 7919) % database->rules.size()], seed);
    if (!mutant || !find_counterexample(*mutant, 20, seed)) continue;
    wrong++;
    const Derivation found = derive_rule(*mutant, rules, {}, limits);
    if (found.verdict != Derivation::Verdict::Follows) continue;
    EXPECT_FALSE(find_counterexample(found.goal, 200, seed).has_value()) << print_rule(*mutant);
  }
  EXPECT_EQ(wrong, 60);
}

}  // namespace
}  // namespace gopt
