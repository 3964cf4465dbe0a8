// Partial equivalence: the region is derived, proved, and by evaluation at all positions of small sizes the largest on
// which the sides agree.
#include <algorithm>

#include "regions/region_search.h"
#include "rule_files.h"

namespace gopt {

using namespace verifier;

namespace {

RewriteRule partial_rule(const std::string& name) {
  for (const RewriteRule& rule : rules_of_file(GOPT_TEST_RULES "/partial.rules"))
    if (rule.name == name) return rule;
  throw std::runtime_error("no rule " + name);
}

std::string text_of(const RewriteRule& rule) {
  std::string text = to_string(rule.condition);
  for (size_t o = 0; o < rule.regions.size(); o++)
    for (const Box& box : rule.regions[o]) text += "; " + std::to_string(o) + " " + to_string(box);
  return text;
}

struct Expected {
  std::string rule, region;
};
void PrintTo(const Expected& e, std::ostream* out) { *out << e.rule; }

class PartialRule : public ::testing::TestWithParam<Expected> {};
TEST_P(PartialRule, RegionIsDerivedAndProved) {
  const auto partial = prove_partial(partial_rule(GetParam().rule));
  ASSERT_TRUE(partial.ok()) << partial.error().message;
  EXPECT_EQ(text_of(partial->rule), GetParam().region);
  EXPECT_TRUE(partial->is_exact);
  EXPECT_TRUE(partial->rule.proof.has_value());
}
// Other sizes and inputs than the derivation looked at, 0 and 6 among them: equal inside, different outside.
TEST_P(PartialRule, IsEqualInsideAndDiffersOutside) {
  const auto partial = prove_partial(partial_rule(GetParam().rule));
  ASSERT_TRUE(partial.ok()) << partial.error().message;
  const RewriteRule& rule = partial->rule;
  const auto left = meaning_of(rule.left), right = meaning_of(rule.right);
  size_t inside = 0, outside = 0;
  for (const RegionSample& sample : sample_region(rule, *left, *right, 0, {{0, 6}, {}}, 40, 4711)) {
    for (size_t flat = 0; flat < sample.agrees.size(); flat++) {
      const std::vector<int64_t> position = position_at(sample, flat);
      const bool in = std::any_of(rule.regions[0].begin(), rule.regions[0].end(),
                                  [&](const Box& box) { return contains(box, position, sample.sizes); });
      (in ? inside : outside)++;
      EXPECT_TRUE(!in || sample.agrees[flat]) << rule.name;
    }
    // A size at which the sides agree on everything (no channels, say) tells nothing.
    if (std::find(sample.agrees.begin(), sample.agrees.end(), false) == sample.agrees.end()) continue;
    EXPECT_TRUE(covers_agreement(rule.regions[0], {sample})) << rule.name;
  }
  EXPECT_GT(inside, 30u);
  EXPECT_GT(outside, 30u);
}
INSTANTIATE_TEST_SUITE_P(
    Rules, PartialRule,
    ::testing::Values(Expected{"two-3x3-same-are-one-5x5", "true; 0 [0:n, 0:1, 1:h-1, 1:w-1]"},
                      Expected{"two-3x3-without-cropping", "true; 0 [0:n, 0:o, 1:h-1, 1:w-1]"},
                      Expected{"conv-over-concat-rows", "true; 0 [0:n, 0:o, 0:h-1]; 0 [0:n, 0:o, h+1:g+h]"},
                      Expected{"conv-over-concat-rows-2d",
                               "true; 0 [0:n, 0:o, 0:h-1, 0:w]; 0 [0:n, 0:o, h+1:g+h, 0:w]"},
                      Expected{"image-cut", "true; 0 [0:b, 0:o, 0:h, 0:w-p]; 0 [0:b, 0:o, 0:h, p+w:2*w]"},
                      Expected{"bias-before-padding", "true; 0 [0:n, 0:o, 1:h-1]"},
                      Expected{"shifted", "true; 0 [0:n-1]"}),
    [](const auto& info) {
      std::string name = info.param.rule;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST(Partial, ParityOfAStrideIsACondition) {
  const auto partial = prove_partial(partial_rule("strided-over-concat"));
  ASSERT_TRUE(partial.ok()) << partial.error().message;
  EXPECT_NE(to_string(partial->rule.condition).find("h == 2*(h//2)"), std::string::npos) << text_of(partial->rule);
  EXPECT_EQ(partial->rule.regions[0].size(), 2u) << text_of(partial->rule);
}

// At some sizes the border of every second image agrees, too: what holds at all sizes is the inner part of each.
TEST(Partial, APatternOfFewImagesIsNoRegion) {
  const auto partial = prove_partial(partial_rule("images-in-a-row"));
  ASSERT_TRUE(partial.ok()) << partial.error().message;
  EXPECT_NE(print_rule(partial->rule).find("  region 0 [0:2*b, 0:o, 0:h, p:w-p]\n"), std::string::npos)
      << print_rule(partial->rule);
  EXPECT_FALSE(partial->is_exact);
}

TEST(Partial, SidesThatAgreeNowhereHaveNoRegion) {
  const std::set<std::string> names{"relu-through-add", "softmax-over-the-wrong-axis", "concat-order-swapped"};
  size_t tried = 0;
  for (const RewriteRule& rule : rules_of_file(GOPT_TEST_RULES "/false.rules")) {
    if (!names.count(rule.name)) continue;
    tried++;
    EXPECT_FALSE(prove_partial(rule).ok()) << rule.name;
  }
  EXPECT_EQ(tried, names.size());
}

TEST(Partial, ARegionThatIsTooLargeIsRefuted) {
  RewriteRule rule = partial_rule("bias-before-padding");
  rule.regions = {{{{Index(0), symbol("n")}, {Index(0), symbol("o")}, {Index(0), symbol("h") - Index(1)}}}};
  const Verification v = verify_rule(rule);
  EXPECT_EQ(v.verdict, Verdict::Refuted) << v.reason;
  VerifyOptions options;
  options.rlimit = 2'000'000;
  rule.regions[0][0][2] = {Index(1), symbol("h") - Index(1)};
  EXPECT_EQ(verify_rule(rule, options).verdict, Verdict::Proved);
}

TEST(Partial, RegionsArePartOfTheRulesText) {
  const auto partial = prove_partial(partial_rule("conv-over-concat-rows"));
  ASSERT_TRUE(partial.ok()) << partial.error().message;
  const std::string text = print_rule(partial->rule);
  EXPECT_NE(text.find("  region 0 [0:n, 0:o, h+1:g+h]\n"), std::string::npos) << text;
  const RewriteRule again = rule_of(text);
  EXPECT_EQ(print_rule(again), text);
  EXPECT_TRUE(again.is_partial());
  RewriteRule whole = again;
  whole.regions.clear();
  EXPECT_NE(whole.content_hash(), again.content_hash());
}

TEST(Partial, ARegionOfAnotherRankIsAnError) {
  const std::string text =
      "rule x\nvar x f32[a,b]\nleft\ny = Relu(x)\nreturn y\nright\ny = Neg(x)\nreturn y\nregion 0 [0:a]\nend\n";
  const auto rules = parse_rules(text, "t");
  ASSERT_FALSE(rules.ok());
  EXPECT_NE(rules.error().message.find("1 ranges"), std::string::npos) << rules.error().message;
}

// Sides that agree at every other place of each of four axes: too many boxes to look at, none worth it.
TEST(Regions, TooManyBoxesAreNone) {
  const auto rules = parse_rules(
      "rule scattered\n  var x f32[a,b,c,d]\n  left\n    y = Relu(x)\n    return y\n  right\n    y = Neg(x)\n"
      "    return y\nend\n",
      "test");
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  constexpr int64_t kExtent = 12;
  verifier::RegionSample sample;
  for (const char* name : {"a", "b", "c", "d"}) sample.sizes[symbol_atom(name)] = kExtent;
  sample.dims.assign(4, kExtent);
  for (int64_t flat = 0; flat < kExtent * kExtent * kExtent * kExtent; flat++) {
    int64_t sum = 0;
    for (int64_t rest = flat; rest > 0; rest /= kExtent) sum += rest % kExtent;
    sample.agrees.push_back(sum % 2 == 0);
  }
  EXPECT_TRUE(verifier::find_boxes(rules->front(), 0, {sample}).empty());
}

}  // namespace
}  // namespace gopt
