// What is found: known rules, nothing that is false, the same every time.
#include <gtest/gtest.h>

#include <algorithm>

#include "gopt/generator.h"
#include "gopt/verifier.h"

namespace gopt {
namespace {

const auto accept_all = [](std::vector<RewriteRule>& rules) { return std::vector<bool>(rules.size(), true); };

GeneratedCandidates generate(const GeneratorLimits& limits) {
  auto found = generate_rules(limits, accept_all);
  EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().message);
  return found.ok() ? *std::move(found) : GeneratedCandidates();
}

GeneratorLimits with_alphabet(const std::string& text) {
  GeneratorLimits limits;
  limits.alphabet = text;
  limits.alphabet_name = "test";
  return limits;
}

// Operators of a side from its root down, as "Relu(Add)".
std::string outline(const Value& value) {
  const Node& node = *value.node;
  if (node.is(OpKind::Input)) return node.name;
  if (node.is(OpKind::Constant)) return "c";
  std::string text = op_info(node.op).name + "(";
  for (size_t i = 0; i < node.inputs.size(); i++) text += (i ? "," : "") + outline(node.inputs[i]);
  return text + ")";
}

std::string outline(const RewriteRule& rule) {
  return outline(rule.left.outputs()[0].value) + " = " + outline(rule.right.outputs()[0].value);
}

bool has(const GeneratedCandidates& found, const std::string& wanted) {
  return std::any_of(found.rules.begin(), found.rules.end(),
                     [&](const RewriteRule& rule) { return outline(rule) == wanted; });
}

std::string listing(const GeneratedCandidates& found) {
  std::string text;
  for (const RewriteRule& rule : found.rules) text += outline(rule) + "\n";
  return text;
}

struct Row {
  std::string name, family, wanted;
};
std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

class FoundInBuiltInAlphabet : public testing::TestWithParam<Row> {};

TEST_P(FoundInBuiltInAlphabet, IsFound) {
  GeneratorLimits limits;
  limits.families = {GetParam().family};
  const GeneratedCandidates found = generate(limits);
  EXPECT_TRUE(has(found, GetParam().wanted)) << listing(found);
}

INSTANTIATE_TEST_SUITE_P(
    Table, FoundInBuiltInAlphabet,
    testing::Values(Row{"ReluTwice", "elementwise", "Relu(Relu(x)) = Relu(x)"},
                    Row{"AddIsAssociative", "elementwise", "Add(Add(x,y),z) = Add(Add(x,z),y)"},
                    Row{"MaxOfZeroIsRelu", "elementwise", "Max(c,x) = Relu(x)"},
                    Row{"TransposeTwice", "matrix", "Transpose(Transpose(x)) = x"},
                    Row{"WeightsOfTwoProducts", "dense", "MatMul(MatMul(x,w),u) = MatMul(x,MatMul(w,u))"},
                    Row{"BiasIntoConvolution", "convolution", "Add(Conv(x,w),u) = Conv(x,w,Squeeze(u))"},
                    Row{"ScaleIntoConvolution", "convolution", "Mul(Conv(x,w),u) = Conv(x,Mul(Unsqueeze(u),w))"},
                    Row{"SoftmaxShift", "normalization", "Softmax(Add(w,x)) = Softmax(x)"},
                    Row{"ReluAndMaxPool", "pooling", "MaxPool(Relu(x)) = Relu(MaxPool(x))"},
                    Row{"SplitOfConcat", "movement", "Split(Concat(x,y)) = x"}),
    [](const testing::TestParamInfo<Row>& info) { return info.param.name; });

TEST(Generate, TheSameForASeed) {
  GeneratorLimits limits;
  limits.families = {"elementwise", "matrix"};
  const GeneratedCandidates first = generate(limits), second = generate(limits);
  EXPECT_EQ(print_rules(first.rules), print_rules(second.rules));
  EXPECT_GT(first.rules.size(), 20u);
}

TEST(Generate, AnotherSeedFindsTheSameClasses) {
  GeneratorLimits limits;
  limits.families = {"matrix"};
  const long classes = generate(limits).stats.classes;
  limits.seed = 99;
  EXPECT_EQ(generate(limits).stats.classes, classes);
}

TEST(Generate, CandidatesSurviveSampling) {
  GeneratorLimits limits;
  limits.families = {"matrix", "pooling", "convolution"};
  const GeneratedCandidates found = generate(limits);
  for (const RewriteRule& rule : found.rules) {
    EXPECT_TRUE(check_rule(rule).ok()) << print_rule(rule);
    const auto counterexample = find_counterexample(rule, 10, 3);
    EXPECT_FALSE(counterexample.has_value()) << print_rule(rule);
  }
}

TEST(Generate, WhatIsKeptPrunesWhatFollows) {
  GeneratorLimits limits;
  limits.families = {"elementwise"};
  const auto none =
      generate_rules(limits, [](std::vector<RewriteRule>& rules) { return std::vector<bool>(rules.size(), false); });
  ASSERT_TRUE(none.ok()) << none.error().message;
  EXPECT_TRUE(none->rules.empty());
  EXPECT_GT(none->stats.after_derivable, generate(limits).stats.after_derivable);
}

// A commutative operator gives no rule x + y = y + x; associativity is one rule, not one an order.
TEST(Generate, NoTrivialPairs) {
  const GeneratedCandidates found = generate(with_alphabet("family f\nactivation 3 [...]\nop Add\n"));
  EXPECT_EQ(found.rules.size(), 1u) << listing(found);
}

// Sizes that need not agree do not: no rule takes one for the other.
TEST(Generate, NoRuleBetweenUnequalSizes) {
  const GeneratedCandidates found = generate(with_alphabet(R"(
family f
size m 2 3
size n 3 2
activation 1 [m,n]
op ReduceSum axes=[0]
op ReduceSum axes=[1]
op Transpose perm=[1,0]
)"));
  for (const RewriteRule& rule : found.rules)
    EXPECT_FALSE(find_counterexample(rule, 20, 1).has_value()) << print_rule(rule);
}

TEST(Generate, UnknownFamilyIsAnError) {
  GeneratorLimits limits;
  limits.families = {"denser"};
  const auto found = generate_rules(limits, accept_all);
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().message.find("dense"), std::string::npos) << found.error().message;
}

}  // namespace
}  // namespace gopt
