// Full rules made of partial ones: what they look like, that they are proved, and that what is made of wrong regions is
// not.
#include <random>

#include "rule_files.h"

namespace gopt {
namespace {

RewriteRule partial_rule(const std::string& name) {
  for (RewriteRule& rule : rules_of_file(GOPT_TEST_RULES "/partial.rules"))
    if (rule.name == name) return std::move(rule);
  throw std::runtime_error("no rule " + name);
}

RewriteRule corrected_rule(const std::string& name) {
  const auto partial = prove_partial(partial_rule(name));
  EXPECT_TRUE(partial.ok()) << partial.error().message;
  const auto full = corrected(partial->rule);
  EXPECT_TRUE(full.ok()) << full.error().message;
  return *full;
}

// Operators of the right side in order, each with what the name says.
std::map<std::string, int> operators_of(const Graph& side) {
  std::map<std::string, int> counts;
  for (const NodePtr& node : side.nodes())
    if (!node->is(OpKind::Input)) counts[op_info(node->op).name]++;
  return counts;
}

struct Expected {
  std::string rule;
  std::map<std::string, int> operators;
  std::string condition;
};
void PrintTo(const Expected& e, std::ostream* out) { *out << e.rule; }

class CorrectedRule : public ::testing::TestWithParam<Expected> {};
TEST_P(CorrectedRule, IsProvedAsAnOrdinaryRule) {
  RewriteRule full = corrected_rule(GetParam().rule);
  EXPECT_FALSE(full.is_partial());
  EXPECT_EQ(operators_of(full.right), GetParam().operators) << print_rule(full);
  const Verification v = prove_rule(full);
  EXPECT_EQ(v.verdict, Verdict::Proved) << v.reason;
  EXPECT_EQ(to_string(full.condition), GetParam().condition);
}
INSTANTIATE_TEST_SUITE_P(
    Rules, CorrectedRule,
    ::testing::Values(
        Expected{"bias-before-padding",
                 {{"Add", 3}, {"Concat", 1}, {"Conv", 3}, {"MatMul", 1}, {"ReduceSum", 1}, {"Slice", 2}},
                 "h >= 3"},
        // Rows at the seam are computed of the rows around it alone, by both convolutions of the left side.
        Expected{"conv-over-concat-rows", {{"Concat", 3}, {"Conv", 3}, {"Slice", 4}}, "h >= 2 and g >= 2"},
        // PET's batch to space: a Reshape cannot be narrowed to columns, what it makes is cut.
        Expected{"images-in-a-row",
                 {{"Concat", 1}, {"Conv", 3}, {"Reshape", 4}, {"Slice", 3}, {"Transpose", 2}},
                 "w >= 2*p and p >= 1"},
        // At the seam both sides of it are computed of the image as it was.
        Expected{"image-cut", {{"Concat", 1}, {"Conv", 2}, {"Reshape", 4}, {"Slice", 3}, {"Transpose", 2}}, "w >= p"},
        Expected{"two-3x3-without-cropping", {{"Concat", 2}, {"Conv", 10}, {"Slice", 4}}, "h >= 3 and w >= 3"}),
    [](const auto& info) {
      std::string name = info.param.rule;
      std::erase(name, '-');
      return name;
    });

TEST(Correction, HaloIsWhatTheWindowReaches) {
  const std::string text = print_rule(corrected_rule("bias-before-padding"));
  EXPECT_NE(text.find("Slice(x) {axes=[2], ends=[2], starts=[0], steps=[1]}"), std::string::npos) << text;
  EXPECT_NE(text.find("Slice(x) {axes=[2], ends=[h], starts=[h-2], steps=[1]}"), std::string::npos) << text;
}

TEST(Correction, NeedsAQuarterOfTheOutput) {
  const auto full = corrected(partial_rule("one-of-many"));
  ASSERT_FALSE(full.ok());
  EXPECT_NE(full.error().message.find("less than a quarter"), std::string::npos) << full.error().message;
}

TEST(Correction, NeedsARegion) {
  const auto full = corrected(partial_rule("shifted"));
  ASSERT_FALSE(full.ok());
  EXPECT_NE(full.error().message.find("has no region"), std::string::npos) << full.error().message;
}

// ---- wrong regions ----

// The proved partial rule with a bound of a box moved by one or two, or with a box that is larger.
RewriteRule with_wrong_region(RewriteRule rule, std::mt19937_64& random) {
  std::vector<Box>& boxes = rule.regions[0];
  Box& box = boxes[random() % boxes.size()];
  std::vector<Index*> bounds;
  const Shape& shape = *rule.left.outputs()[0].value.type().shape;
  for (size_t axis = 0; axis < box.size(); axis++) {
    if (box[axis].low != Index(0)) bounds.push_back(&box[axis].low);
    if (box[axis].high != shape[axis]) bounds.push_back(&box[axis].high);
  }
  Index& bound = *bounds[random() % bounds.size()];
  bound += Index(static_cast<int64_t>(random() % 5) - 2);
  return rule;
}

// The full rule with a number in one Slice or list of pads of its right side changed by one: a halo that is short, say.
std::optional<RewriteRule> with_wrong_halo(const RewriteRule& full, uint64_t seed) {
  return mutate_right_side(full, seed);
}

// None is proved that evaluation tells apart.
TEST(Correction, WrongOnesAreNotProved) {
  std::mt19937_64 random(17);
  size_t proved = 0, refuted = 0, tried = 0;
  for (const char* name : {"bias-before-padding", "conv-over-concat-rows"}) {
    const auto partial = prove_partial(partial_rule(name));
    ASSERT_TRUE(partial.ok());
    const auto right = corrected(partial->rule);
    ASSERT_TRUE(right.ok());
    for (int k = 0; k < 100; k++) {
      std::optional<RewriteRule> wrong;
      if (k % 2 == 0) {
        auto full = corrected(with_wrong_region(partial->rule, random));
        if (full) wrong = *std::move(full);
      } else {
        wrong = with_wrong_halo(*right, random());
      }
      if (!wrong) continue;
      tried++;
      const Verification v = prove_rule(*wrong);
      refuted += v.verdict == Verdict::Refuted;
      if (v.verdict != Verdict::Proved) continue;
      proved++;
      const auto difference = find_counterexample(*wrong, 200, random());
      EXPECT_FALSE(difference) << print_rule(*wrong) << to_string(*difference);
    }
  }
  EXPECT_GT(tried, 120u);
  EXPECT_GT(refuted, 40u);
  EXPECT_LT(proved, tried);
}

}  // namespace
}  // namespace gopt
