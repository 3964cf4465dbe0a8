// Rules files that somebody made up: every hash in their records is right, and nothing was proved.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gopt/definition.h"
#include "gopt/interpreter.h"
#include "gopt/rule.h"
#include "program.h"

namespace gopt {
namespace {

constexpr const char* kReluIsNothing = R"(rule relu-is-nothing
  var x f32[...]
  left
    y = Relu(x)
    return y
  right
    return x
end
)";
constexpr const char* kClipIsNothing = R"(rule clip-is-nothing
  var x f32[...]
  left
    y = Clip(x) {min=-50.0, max=50.0}
    return y
  right
    return x
end
)";
constexpr const char* kReluTwice = R"(rule relu-twice
  var x f32[...]
  left
    y = Relu(x)
    z = Relu(y)
    return z
  right
    y = Relu(x)
    return y
end
)";
// True where n == m, which it does not say.
constexpr const char* kWithoutCondition = R"(rule add-then-subtract
  var a f32[n]
  var b f32[m]
  left
    x = Relu(a)
    y = Neg(b)
    return x, y
  right
    s = Relu(a)
    d = Sub(a, b)
    y = Sub(d, a)
    return s, y
end
)";
constexpr const char* kWithoutMarks = R"(rule without-marks
  var x f32[...]
  left
    s = Sin(x)
    p = Mul(s, s)
    c = Cos(x)
    q = Mul(c, c)
    y = Add(p, q)
    return y
  right
    y = FillLike(x) {value=1.0}
    return y
end
)";

// The rule with a record whose hashes are all right.
RewriteRule forged(const std::string& text, RuleMarks marks = {}, int obligations = 2) {
  auto rules = parse_rules(text, "forged");
  if (!rules.ok()) throw std::runtime_error(rules.error().message);
  RewriteRule rule = rules->front();
  rule.marks = marks;
  rule.proof = ProofRecord{definitions_hash(rule), obligations, "z3 4.8.12", "0123456789abcdef", rule.content_hash()};
  return rule;
}

constexpr const char* kModel = R"(graph model
  input x : f32[4,8]
  a = Clip(x) {min=-50.0, max=50.0}
  b = Relu(a)
  c = Relu(b)
  y = Exp(c)
  output y = y
end
)";

class ForgedRule : public ::testing::Test {
 protected:
  std::string rules_file(const std::vector<RewriteRule>& rules) {
    write_file(folder_.file("forged.rules"), print_rules(rules));
    return folder_.file("forged.rules");
  }
  Outcome optimize(const std::string& model, const std::string& rules, const std::string& more = " --check off") {
    write_model(model, folder_.file("f.onnx"));
    return run_program("optimize --cost analytic --budget 1000h " + folder_.file("f.onnx") + " -o " +
                       folder_.file("y.onnx") + " --report " + folder_.file("r.json") + " --force --rules " + rules +
                       more);
  }
  Graph optimized() {
    auto model = import_onnx(folder_.file("y.onnx"));
    if (!model.ok()) throw std::runtime_error(model.error().message);
    return model->graph;
  }
  nlohmann::json report() { return nlohmann::json::parse(read_file(folder_.file("r.json"))); }
  TestFolder folder_;
};

int count(const Graph& graph, OpKind kind) {
  int n = 0;
  for (const NodePtr& node : graph.nodes()) n += node->is(kind) ? 1 : 0;
  return n;
}

TEST_F(ForgedRule, LoadsAndIsNotApplied) {
  const RewriteRule rule = forged(kReluIsNothing);
  const std::string file = rules_file({rule});
  const auto database = load_rules(file);
  ASSERT_TRUE(database.ok()) << database.error().message;
  ASSERT_EQ(database->rules.size(), 1u) << "the record is as good as any that can be read";
  const Outcome outcome = optimize(kModel, file);
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("warning: rule `relu-is-nothing` is not applied, although its record says that it is "
                              "proved: it is false: the sides differ"),
            std::string::npos)
      << outcome.text;
  EXPECT_NE(outcome.text.find("rules applied: none"), std::string::npos) << outcome.text;
  EXPECT_EQ(count(optimized(), OpKind::Relu), 2);
  EXPECT_EQ(report()["refused"][0]["rule"], "relu-is-nothing");
  EXPECT_TRUE(report()["applied"].empty());
}

TEST_F(ForgedRule, ALoosenedCheckDoesNotLetItThrough) {
  const Outcome outcome = optimize(kModel, rules_file({forged(kClipIsNothing)}), " --rtol 1000 --check auto");
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("rule `clip-is-nothing` is not applied"), std::string::npos) << outcome.text;
  EXPECT_EQ(count(optimized(), OpKind::Clip), 1);
}

// What true rules find beside them is what they find alone; the figures are the new proof's.
TEST_F(ForgedRule, DoesNotKeepTrueOnesFromBeingApplied) {
  const std::string all = rules_file({forged(kReluIsNothing), forged(kReluTwice, {}, 1234567), forged(kClipIsNothing)});
  const Outcome outcome = optimize(kModel, all);
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  const nlohmann::json found = report();
  ASSERT_EQ(found["applied"].size(), 1u) << outcome.text;
  EXPECT_EQ(found["applied"][0]["rule"], "relu-twice");
  EXPECT_LT(found["applied"][0]["proof"]["obligations"], 1000);
  EXPECT_NE(found["applied"][0]["proof"]["digest"], "0123456789abcdef");
  EXPECT_EQ(found["refused"].size(), 2u);
  EXPECT_EQ(outcome.text.find("1234567"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("rule `relu-twice` is proved, but not as its record says"), std::string::npos);
  const Graph beside = optimized();
  ASSERT_EQ(optimize(kModel, rules_file({forged(kReluTwice)})).status, 0);
  EXPECT_EQ(beside.hash(), optimized().hash());
  EXPECT_EQ(count(beside, OpKind::Relu), 1);
}

TEST_F(ForgedRule, OfTheConditionThatItsProofNeeds) {
  const Outcome shown =
      run_program("rules --show add-then-subtract --rules " + rules_file({forged(kWithoutCondition)}));
  EXPECT_EQ(shown.status, 1) << shown.text;
  EXPECT_NE(shown.text.find("proved only when"), std::string::npos) << shown.text;
}

TEST_F(ForgedRule, OfTheMarksThatItsProofGives) {
  const std::string model =
      "graph g\ninput x : f32[4]\ns = Sin(x)\nc = Cos(x)\np = Mul(s, s)\nq = Mul(c, c)\ny = Add(p, q)\noutput y = "
      "y\nend";
  const Outcome outcome = optimize(model, rules_file({forged(kWithoutMarks)}));
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_TRUE(report()["applied"].empty());
  EXPECT_NE(outcome.text.find("rule `without-marks` is not applied"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("it lacks marks"), std::string::npos) << outcome.text;
  const Outcome marked = optimize(
      model, rules_file({forged(kWithoutMarks, {.finite_only = true, .reassociates = true, .changes_rounding = true})}),
      " --check off --allow finite-only");
  EXPECT_EQ(marked.status, 0);
  EXPECT_EQ(marked.text.find("is not applied"), std::string::npos) << "more marks than it needs do no harm";
  EXPECT_EQ(report()["applied"].size(), 1u) << marked.text;
}

TEST_F(ForgedRule, IsShownForWhatItIs) {
  const std::string file = rules_file({forged(kReluIsNothing), forged(kReluTwice)});
  const Outcome shown = run_program("rules --show relu-is-nothing --rules " + file);
  EXPECT_EQ(shown.status, 1);
  EXPECT_NE(shown.text.find("rule `relu-is-nothing` is not proved, although its record says so"), std::string::npos)
      << shown.text;
  const Outcome good = run_program("rules --show relu-twice --rules " + file);
  EXPECT_EQ(good.status, 0);
  EXPECT_NE(good.text.find("proved again: "), std::string::npos) << good.text;
  EXPECT_NE(good.text.find("its record is of another proof"), std::string::npos) << good.text;
  const Outcome listed = run_program("rules --rules " + file);
  EXPECT_NE(listed.text.find("2 of 2 rules, proved by their records"), std::string::npos) << listed.text;
}

// The same name in two files would let one rule's proof stand for another.
TEST_F(ForgedRule, OfTheNameOfATrueOne) {
  RewriteRule other = forged(kReluIsNothing);
  other.name = "relu-twice";
  write_file(folder_.file("other.rules"), print_rule(other));
  const std::string good = rules_file({forged(kReluTwice)});
  EXPECT_EQ(optimize(kModel, good + " " + folder_.file("other.rules")).status, 1);
  EXPECT_NE(optimize(kModel, good + " " + folder_.file("other.rules")).text.find("rule relu-twice is in"),
            std::string::npos);
  write_file(folder_.file("both.rules"), print_rule(forged(kReluTwice)) + print_rule(other));
  EXPECT_EQ(optimize(kModel, folder_.file("both.rules")).status, 1);
}

}  // namespace
}  // namespace gopt
