// rulegen correct: full rules of partial ones, which hold wherever they say they do.
#include "gopt/verifier.h"
#include "program.h"

namespace gopt {
namespace {

constexpr const char* kTwo = R"(rule shift-before-conv
  var x f32[n,c,w]
  var b f32[c,1] weight
  var u f32[o,c,k] weight
  left
    y = Add(x, b)
    z = Conv(y, u) {pads=[p,q]}
    return z
  right
    m = Mul(u, b)
    s = ReduceSum(m) {axes=[1,2], keepdims=0}
    z = Conv(x, u, s) {pads=[p,q]}
    return z
end

rule nowhere
  var x f32[n]
  left
    y = Relu(x)
    return y
  right
    y = Neg(x)
    return y
end

rule everywhere
  var x f32[n]
  left
    a = Relu(x)
    y = Relu(a)
    return y
  right
    y = Relu(x)
    return y
end
)";

TEST(Correct, FindsTheRegionAndProvesTheWhole) {
  const TestFolder folder;
  const std::string in = write_file(folder.file("in.rules"), kTwo), out = folder.file("out.rules");
  const Outcome outcome = run_rulegen("correct " + in + " -o " + out);
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("nowhere"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("1 of 3 rules are corrected and proved, 1 hold as they stand, 1 left out"),
            std::string::npos)
      << outcome.text;
  const auto database = load_rules(out);
  ASSERT_TRUE(database.ok()) << database.error().message;
  EXPECT_TRUE(database->warnings.empty());
  ASSERT_EQ(database->rules.size(), 2u);
  EXPECT_EQ(database->rules[0].name, "shift-before-conv-corrected");
  EXPECT_EQ(to_string(database->rules[0].condition), "p >= 1 and w >= k and q >= 1");
  EXPECT_EQ(database->rules[1].name, "everywhere");
  EXPECT_EQ(run_rulegen("correct " + in + " -o " + out).status, 1) << "the file is there";
}

// In a region without places anything is so.
TEST(Correct, ARegionThatIsAlwaysEmptyIsNone) {
  const TestFolder folder;
  for (const char* range : {"0:0", "n:n", "n:0", "2:1", "n+1:n"}) {
    const std::string rule =
        "rule nothing\n  var x f32[n]\n  left\n    y = Relu(x)\n    return y\n  right\n    y = "
        "Neg(x)\n    return y\n  region 0 [" +
        std::string(range) + "]\nend\n";
    const Outcome outcome = run_rulegen("verify " + write_file(folder.file("in.rules"), rule));
    EXPECT_EQ(outcome.status, 1) << range << outcome.text;
    EXPECT_NE(outcome.text.find("is empty at every size"), std::string::npos) << range << outcome.text;
  }
}

TEST(Correct, FilesThatCannotBeReadAreErrors) {
  const TestFolder folder;
  const Outcome missing = run_rulegen("correct " + folder.file("none.rules") + " -o " + folder.file("out.rules"));
  EXPECT_EQ(missing.status, 1);
  EXPECT_NE(missing.text.find("none.rules"), std::string::npos) << missing.text;
  EXPECT_FALSE(load_rules(folder.file("out.rules")).ok()) << "nothing is written";
}

// A part of the shipped file, from the partial rules that were enumerated.
TEST(Correct, EnumeratedRulesAreMadeAgain) {
  const TestFolder folder;
  const std::string out = folder.file("out.rules");
  const Outcome outcome = run_rulegen("correct " GOPT_RULES_FOLDER "/partial.rules -o " + out + " --threads 2");
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  const auto made = load_rules(out), shipped = load_rules(GOPT_RULES_FOLDER "/corrected.rules");
  ASSERT_TRUE(made.ok() && shipped.ok());
  EXPECT_TRUE(shipped->warnings.empty());
  EXPECT_GT(made->rules.size(), 12u);
  std::set<std::string> hashes;
  for (const RewriteRule& rule : shipped->rules) hashes.insert(rule.content_hash());
  for (const RewriteRule& rule : made->rules) EXPECT_TRUE(hashes.contains(rule.content_hash())) << rule.name;
}

}  // namespace
}  // namespace gopt
