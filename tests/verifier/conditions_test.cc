// Conditions: the weakest formula under which a rule holds is derived and proved; by evaluation at all small sizes it
// turns away no match for which the rule holds and accepts none for which it does not.
#include <algorithm>

#include "conditions/condition_search.h"
#include "conditions/size_table.h"
#include "rule_files.h"

namespace gopt {

using namespace verifier;

namespace {

std::map<std::string, RewriteRule> conditional_rules() {
  std::map<std::string, RewriteRule> rules;
  for (RewriteRule& rule : rules_of_file(GOPT_TEST_RULES "/conditional.rules"))
    rules.emplace(rule.name, std::move(rule));
  return rules;
}

std::string text_of(const Environment& sizes) {
  std::string text;
  for (const auto& [symbol, value] : sizes) text += atom(symbol).name + "=" + std::to_string(value) + " ";
  return text;
}

struct Expected {
  std::string rule, condition;
};
void PrintTo(const Expected& e, std::ostream* out) { *out << e.rule; }

class DerivedConditions : public ::testing::TestWithParam<Expected> {};
TEST_P(DerivedConditions, AreTheWeakestAndProved) {
  const RewriteRule rule = conditional_rules().at(GetParam().rule);
  const Verification v = verify_rule(rule);
  ASSERT_EQ(to_string(v.verdict), "proved") << v.reason;
  EXPECT_EQ(to_string(v.condition), GetParam().condition);
}
INSTANTIATE_TEST_SUITE_P(
    Rules, DerivedConditions,
    ::testing::Values(
        Expected{"mean-over-empty-axis", "n >= 1 or (m == 0)"}, Expected{"count-times-reciprocal-is-one", "n >= 1"},
        Expected{"softmax-values-empty-axis", "n >= 1 or (m == 0) or (d == 0)"},
        Expected{"strided-sums", "(h == 2*(h//2)) or (c == 0) or (n == 0) or (o == 0)"},
        Expected{"concat-split-equal-parts", "((a+b+1)//2) == a"},
        Expected{"sum-of-split-halves", "(a == ((a+b+1)//2)) or (m == 0)"},
        Expected{"two-groups-unequal", "(o == p) or (n == 0) or (c == 0)"},
        Expected{"mean-of-concat-is-mean-of-means", "(a == b) or (m == 0 and a >= 1 and b >= 1)"},
        Expected{"sum-of-expanded-over-count-of-possibly-nothing", "b >= 1 or (a == 0)"},
        Expected{"enlarge-under-tensorflow-same-with-stride", "(h == 2*(h//2)+1) or (n == 0) or (c == 0) or (o == 0)"},
        Expected{"average-pool-of-four-by-parts", "h == 4*(h//4)"},
        Expected{"mean-through-average-pool-of-five", "h == 5*(h//5)"},
        Expected{"quotient-through-padded-conv", "c >= 1 or (n == 0) or (o == 0)"},
        Expected{"transposed-conv-axes-with-pads-kept", "q == p"}, Expected{"crop-front", "a >= 0 or 0 >= c"}),
    [](const auto& info) {
      std::string name = info.param.rule;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// m = 1766319049 and n = 226153980 are the first sizes that satisfy it: that there are none may not be said.
TEST(NeverApplies, IsNotSaidOfSizesThatWereNotFound) {
  for (const std::string right : {"Relu(x)", "Identity(x)"}) {
    const Verification v =
        verify_rule(rule_of("rule a\n  var x f32[m,n]\n  left\n    y = Relu(x)\n    z = Relu(y)\n"
                            "    return z\n  right\n    z = " +
                            right + "\n    return z\n  when m*m == 61*n*n+1 and n >= 1\nend\n"));
    EXPECT_EQ(to_string(v.verdict), "unknown") << v.reason;
    EXPECT_NE(v.reason.find("no sizes were found"), std::string::npos) << v.reason;
  }
}
TEST(NeverApplies, IsSaidOfSizesThatThereAreNot) {
  const Verification w =
      verify_rule(rule_of("rule a\n  var x f32[m,k]\n  left\n    y = Relu(x)\n    return y\n  right\n    y = Relu(x)\n"
                          "    return y\n  when 2*m == 4*k+1\nend\n"));
  EXPECT_EQ(to_string(w.verdict), "refuted") << w.reason;
  EXPECT_NE(w.reason.find("no sizes satisfy the condition"), std::string::npos) << w.reason;
}
// Where variables are empty and outputs are not, there is something to say.
TEST(NeverApplies, IsNotSaidOfProductsOverNothing) {
  const std::string left = "rule a\n  var x f32[m,k]\n  var y f32[k,n]\n  left\n    z = MatMul(x,y)\n    return z\n";
  const std::string zero = "    z = ConstantOfShape() {shape=[m,n]}\n", end = "  when k == 0\nend\n";
  EXPECT_EQ(to_string(verify_rule(rule_of(left + "  right\n" + zero + "    return z\n" + end)).verdict), "proved");
  const Verification wrong = verify_rule(
      rule_of(left + "  right\n    constant one = f32[] {1}\n" + zero + "    t = Add(z, one)\n    return t\n" + end));
  EXPECT_EQ(to_string(wrong.verdict), "refuted") << wrong.reason;
  EXPECT_TRUE(wrong.counterexample.has_value());
}

// An element of i that the left side does not gather at may lie outside.
TEST(GatheredIndices, AreNotAddedByTheRightSide) {
  const std::string variables = "rule a\n  var x f32[a,b]\n  var i i64[m]\n";
  const std::string sliced = "    j = Slice(i) {starts=[0],ends=[k],axes=[0]}\n    z = Gather(x,j)\n    return z\n";
  const std::string whole = "    y = Gather(x,i)\n    z = Slice(y) {starts=[0],ends=[k],axes=[0]}\n    return z\n";
  EXPECT_EQ(to_string(verify_rule(rule_of(variables + "  left\n" + whole + "  right\n" + sliced + "end\n")).verdict),
            "proved");
  const Verification v = verify_rule(rule_of(variables + "  left\n" + sliced + "  right\n" + whole + "end\n"));
  EXPECT_EQ(to_string(v.verdict), "unknown");
  EXPECT_NE(v.reason.find("may lie outside"), std::string::npos) << v.reason;
}

// t may be 1, which sizes that are taken to be equal where they are broadcast leave out.
TEST(NeverApplies, IsNotSaidWhereAnExtentMayBeOne) {
  const auto rules = parse_rules(R"(
rule a
  var x f32[n,k]
  var y f32[m,k]
  var s f32[t,k]
  left
    u = Concat(x,y) {axis=0}
    v = Add(u,s)
    return v
  right
    a = Add(x,s)
    b = Add(y,s)
    v = Concat(a,b) {axis=0}
    return v
  when t == 1 and n >= 2 and m >= 2
end
)",
                                 "test");
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  const Verification v = verify_rule(rules->front());
  EXPECT_EQ(to_string(v.verdict), "unknown") << v.reason;
  EXPECT_NE(v.reason.find("for one that is 1, write 1"), std::string::npos) << v.reason;
}

// The table is made again with other inputs and more positions than the derivation looked at.
void expect_exact(const RewriteRule& rule, size_t max_assignments) {
  const Verification v = verify_rule(rule);
  ASSERT_EQ(to_string(v.verdict), "proved") << v.reason;
  const auto left = meaning_of(rule.left), right = meaning_of(rule.right);
  ASSERT_TRUE(left && right);
  SizeTableOptions options;
  options.max_assignments = max_assignments;
  options.max_rows = 300;
  options.positions = 60;
  options.seed = 77;
  const SizeTable table = tabulate_sizes(rule, *left, *right, options);
  const auto mismatch = find_mismatch(table, v.condition);
  EXPECT_FALSE(mismatch.has_value()) << rule.name << ": " << to_string(v.condition) << " at "
                                     << text_of(mismatch->sizes)
                                     << (mismatch->holds ? "turns away what holds" : "accepts what does not hold");
}

class ExactCondition : public ::testing::TestWithParam<NamedRule> {};
TEST_P(ExactCondition, AtAllSmallSizes) { expect_exact(GetParam().rule, 20'000); }
INSTANTIATE_TEST_SUITE_P(Conditional, ExactCondition,
                         ::testing::ValuesIn(named_rules(GOPT_TEST_RULES "/conditional.rules")), test_name);

class ExactConditionSampled : public ::testing::TestWithParam<NamedRule> {};
TEST_P(ExactConditionSampled, AtSmallSizes) { expect_exact(GetParam().rule, 1'000); }
INSTANTIATE_TEST_SUITE_P(Shipped, ExactConditionSampled,
                         ::testing::ValuesIn(named_rules(GOPT_SHIPPED_RULES "/hand.rules")), test_name);
INSTANTIATE_TEST_SUITE_P(True, ExactConditionSampled, ::testing::ValuesIn(named_rules(GOPT_TEST_RULES "/true.rules")),
                         test_name);

TEST(Conditions, AreListedClauseByClause) {
  const Verification v = verify_rule(rule_of(
      "rule x\nvar x f32[m,a]\nvar y f32[m,b]\nleft\nt = Concat(x, y) {axis=1}\nz = ReduceMax(t) {axes=[1]}\n"
      "return z\nright\ns = ReduceMax(x) {axes=[1]}\nt = ReduceMax(y) {axes=[1]}\nz = Max(s, t)\nreturn z\nend\n"));
  ASSERT_EQ(v.conditions.size(), 2u);
  EXPECT_EQ(to_string(v.conditions[0]), "a >= 1");
  EXPECT_EQ(to_string(v.conditions[1]), "b >= 1");
}

TEST(Conditions, ThatPinASymbolMakeNoRule) {
  // Pools that count padding and those that do not agree without padding only.
  const Verification pool = verify_rule(
      rule_of("rule x\nvar x f32[n,c,h,w]\nleft\nz = AveragePool(x) {kernel_shape=[3,3], pads=[p,p,p,p], "
              "count_include_pad=1}\nreturn z\nright\nz = AveragePool(x) {kernel_shape=[3,3], pads=[p,p,p,p]}\n"
              "return z\nend\n"));
  EXPECT_EQ(pool.verdict, Verdict::Refuted) << to_string(pool.condition);
  EXPECT_TRUE(pool.counterexample.has_value());
  // A matrix is its transpose where it has one row and one column.
  const Verification transpose =
      verify_rule(rule_of("rule x\nvar x f32[a,a]\nleft\ny = Identity(x)\nreturn y\nright\ny = Transpose(x) "
                          "{perm=[1,0]}\nreturn y\nend\n"));
  EXPECT_EQ(transpose.verdict, Verdict::Refuted) << to_string(transpose.condition);
}

// Rows over one symbol n, 0 to 15, that hold where `holds` says.
std::vector<SizeRow> rows_over_n(const std::function<bool(int64_t)>& holds) {
  std::vector<SizeRow> rows;
  for (int64_t n = 0; n < 16; n++) rows.push_back({{{symbol_atom("n"), n}}, holds(n), n > 0});
  return rows;
}
std::string found_for(const std::function<bool(int64_t)>& holds) {
  const auto found = find_condition(rows_over_n(holds), condition_atoms({symbol_atom("n")}, {}, {}, {}),
                                    {{equal(symbol("n"), Index(0)), 1}});
  return found ? to_string(found->condition()) : "none";
}

TEST(ConditionSearch, FindsTheSmallestFormulaOfTheTable) {
  EXPECT_EQ(found_for([](int64_t) { return true; }), "true");
  EXPECT_EQ(found_for([](int64_t n) { return n >= 2; }), "n >= 2");
  EXPECT_EQ(found_for([](int64_t n) { return n % 3 == 1; }), "n == 3*(n//3)+1");
  EXPECT_EQ(found_for([](int64_t n) { return n <= 1; }), "(n == 1) or (n == 0)");
  EXPECT_EQ(found_for([](int64_t n) { return n == 0 || n % 2 == 1; }), "(n == 2*(n//2)+1) or (n == 0)");
}
TEST(ConditionSearch, SaysSoWhereTheLanguageHasNoFormula) {
  EXPECT_EQ(found_for([](int64_t n) { return n == 1 || n == 4 || n == 5 || n == 11; }), "none");
}

}  // namespace
}  // namespace gopt
