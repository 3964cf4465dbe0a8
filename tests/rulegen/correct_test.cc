// rulegen correct: full rules of partial ones, which hold wherever they say they do.
#include <algorithm>

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

// A convolution of blocks of its image is turned round; what would only put a Relu beside a Relu is not.
TEST(Correct, BothWays) {
  constexpr const char* kRules = R"(rule blocks-to-dilated-1
  var x f32[b,i,2*h]
  var y f32[o,i,r]
  left
    v0 = Reshape(x) {shape=[b,i,h,2]}
    v1 = Transpose(v0) {perm=[3,0,1,2]}
    v2 = Reshape(v1) {shape=[2*b,i,h]}
    v3 = Conv(v2, y)
    v4 = Reshape(v3) {shape=[2,b,o,h-r+1]}
    v5 = Transpose(v4) {perm=[1,2,3,0]}
    v6 = Reshape(v5) {shape=[b,o,2*h-2*r+2]}
    return v6
  right
    v0 = Conv(x, y) {dilations=[2]}
    return v0
end

rule relu-twice-to-once
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
  const TestFolder folder;
  const std::string in = write_file(folder.file("in.rules"), kRules), out = folder.file("out.rules");
  const Outcome outcome = run_rulegen("correct " + in + " --both-ways -o " + out);
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  const auto database = load_rules(out);
  ASSERT_TRUE(database.ok()) << database.error().message;
  ASSERT_EQ(database->rules.size(), 3u) << outcome.text;
  EXPECT_TRUE(database->rules[2].name.starts_with("dilated-to-blocks-")) << database->rules[2].name;
  EXPECT_EQ(database->rules[2].left.nodes().back()->op, OpKind::Conv);
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

// PET's examples (OSDI'21), enumerated with symbols for kernels, pads and dilations, proved, and corrected where they
// hold in part.
struct WindowFamily {
  std::string family;
  std::set<std::string> left, right;  // operators of a rule that is found
};
void PrintTo(const WindowFamily& row, std::ostream* out) { *out << row.family; }

std::set<std::string> operators_of(const Graph& side) {
  std::set<std::string> names;
  for (const NodePtr& node : side.nodes())
    if (!node->is(OpKind::Input)) names.insert(op_info(node->op).name);
  return names;
}

class EnumeratedWindows : public testing::TestWithParam<WindowFamily> {};
TEST_P(EnumeratedWindows, AreFoundProvedAndCorrected) {
  const TestFolder folder;
  const std::string whole = folder.file("whole.rules"), part = folder.file("part.rules"),
                    out = folder.file("out.rules");
  const Outcome found =
      run_rulegen("--alphabet " GOPT_RULES_FOLDER "/../generator/windows.txt --family " + GetParam().family +
                  " --max-ops 3 --threads 2 --out " + whole + " --partial " + part);
  ASSERT_EQ(found.status, 0) << found.text;
  const Outcome made = run_rulegen("correct " + whole + " " + part + " --both-ways --threads 2 -o " + out);
  ASSERT_EQ(made.status, 0) << made.text;
  const auto database = load_rules(out);
  ASSERT_TRUE(database.ok()) << database.error().message;
  EXPECT_TRUE(std::ranges::any_of(database->rules, [&](const RewriteRule& rule) {
    return operators_of(rule.left) == GetParam().left && operators_of(rule.right) == GetParam().right;
  })) << made.text;
}
INSTANTIATE_TEST_SUITE_P(
    Pet, EnumeratedWindows,
    testing::Values(WindowFamily{"images-in-a-row", {"Conv"}, {"Concat", "Conv", "Reshape", "Slice", "Transpose"}},
                    WindowFamily{"image-cut", {"Conv"}, {"Concat", "Conv", "Reshape", "Slice", "Transpose"}},
                    WindowFamily{"dilated", {"Conv"}, {"Conv", "Reshape", "Transpose"}},
                    WindowFamily{"unequal-kernels", {"Conv"}, {"Concat", "Conv", "Pad", "Split"}}),
    [](const auto& info) {
      std::string name = info.param.family;
      std::ranges::replace(name, '-', '_');
      return name;
    });

}  // namespace
}  // namespace gopt
