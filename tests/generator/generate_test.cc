// What is found: known rules, nothing that is false, the same every time.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <set>
#include <thread>

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

// Operators of a side from its root down, as "Relu(x)".
std::string outline(const Value& value) {
  const Node& node = *value.node;
  if (node.is(OpKind::Input)) return node.name;
  if (node.is(OpKind::Constant)) return "c";
  std::string text = op_info(node.op).name + "(";
  for (size_t i = 0; i < node.inputs.size(); i++) text += (i ? "," : "") + outline(node.inputs[i]);
  return text + ")";
}

std::string outline(const Graph& side) {
  std::string text;
  for (const GraphOutput& output : side.outputs()) text += (text.empty() ? "" : ", ") + outline(output.value);
  return text;
}

std::string outline(const RewriteRule& rule) { return outline(rule.left) + " = " + outline(rule.right); }

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
  int max_ops = 2;
};
std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

class FoundInBuiltInAlphabet : public testing::TestWithParam<Row> {};

TEST_P(FoundInBuiltInAlphabet, IsFound) {
  GeneratorLimits limits;
  limits.families = {GetParam().family};
  limits.max_ops = GetParam().max_ops;
  const GeneratedCandidates found = generate(limits);
  EXPECT_TRUE(has(found, GetParam().wanted)) << listing(found);
}

INSTANTIATE_TEST_SUITE_P(
    Table, FoundInBuiltInAlphabet,
    testing::Values(
        Row{"ReluTwice", "elementwise", "Relu(Relu(x)) = Relu(x)"},
        Row{"AddIsAssociative", "elementwise", "Add(Add(x,y),z) = Add(Add(x,z),y)"},
        Row{"MaxOfZeroIsRelu", "elementwise", "Max(c,x) = Relu(x)"},
        Row{"TransposeTwice", "matrix", "Transpose(Transpose(x)) = x"},
        Row{"WeightsOfTwoProducts", "dense", "MatMul(MatMul(x,w),u) = MatMul(x,MatMul(w,u))"},
        Row{"BiasIntoConvolution", "convolution", "Add(Conv(x,w),u) = Conv(x,w,Squeeze(u))"},
        Row{"ScaleIntoConvolution", "convolution", "Mul(Conv(x,w),u) = Conv(x,Mul(Unsqueeze(u),w))"},
        Row{"SoftmaxShift", "normalization", "Softmax(Add(x,y)) = Softmax(y)"},
        Row{"ReluAndMaxPool", "pooling", "MaxPool(Relu(x)) = Relu(MaxPool(x))"},
        Row{"SplitOfConcat", "parts", "Split(Concat(x,y)) = x"},
        Row{"ProductsThatShareAnInput", "merge",
            "MatMul(x,w), MatMul(x,u) = Split(MatMul(x,Concat(w,u))), Split(MatMul(x,Concat(w,u)))"},
        Row{"ConvolutionsThatShareAnInput", "convolution-merge",
            "Conv(x,w), Conv(x,u) = Split(Conv(x,Concat(w,u))), Split(Conv(x,Concat(w,u)))"},
        Row{"OneByOneAfterConvolution", "convolution-compose",
            "Conv(Conv(x,w),u) = Conv(x,Reshape(MatMul(Squeeze(u),Reshape(w))))"},
        Row{"PadIntoConvolution", "convolution-enlarge", "Conv(Pad(x),y) = Conv(x,y)"},
        Row{"KernelsMadeEqual", "convolution-enlarge",
            "Conv(x,w), Conv(x,u) = Split(Conv(x,Concat(Pad(w),u))), Split(Conv(x,Concat(Pad(w),u)))", 3},
        Row{"AveragePoolIsDepthwise", "depthwise",
            "AveragePool(x) = Conv(x,Div(ConstantOfShape(),ReduceSum(ConstantOfShape())))"},
        Row{"SumIsAProductWithOnes", "reduction", "MatMul(x,ConstantOfShape()) = ReduceSum(x)"},
        Row{"BatchedProduct", "batched", "Reshape(MatMul(x,y)) = MatMul(Reshape(x),y)"},
        Row{"SumOfProductsByInnerExtent", "merge", "Add(MatMul(x,w),MatMul(y,u)) = MatMul(Concat(y,x),Concat(u,w))", 3},
        Row{"SumOfConvolutionsByChannels", "convolution-merge",
            "Add(Conv(x,w),Conv(y,u)) = Conv(Concat(y,x),Concat(u,w))", 3},
        Row{"DilatedConvolutionBySpaceToBatch", "space-to-batch",
            "Reshape(Transpose(Reshape(Conv(Reshape(Transpose(Reshape(x))),y)))) = Conv(x,y)", 3},
        Row{"SquaresOfSineAndCosine", "functions", "Sub(c,Mul(Sin(x),Sin(x))) = Mul(Cos(x),Cos(x))", 3},
        Row{"BatchNormalizationAsScaleAndShift", "batch-normalization",
            "BatchNormalization(x,w,u,v,s) = Add(Mul(Unsqueeze(Div(w,Sqrt(Add(s,FillLike(s))))),x),"
            "Unsqueeze(Sub(u,Mul(v,Div(w,Sqrt(Add(s,FillLike(s))))))))",
            3},
        Row{"BatchNormalizationIntoConvolution", "convolution-normalized",
            "BatchNormalization(Conv(x,w),u,v,s,w4) = "
            "Conv(x,Mul(w,Unsqueeze(Div(u,Sqrt(Add(w4,FillLike(w4)))))),"
            "Sub(v,Mul(s,Div(u,Sqrt(Add(w4,FillLike(w4)))))))"},
        Row{"QueriesKeysAndValues", "merge-three",
            "MatMul(x,w), MatMul(x,u), MatMul(x,v) = Split(MatMul(x,Concat(w,u,v))), "
            "Split(MatMul(x,Concat(w,u,v))), Split(MatMul(x,Concat(w,u,v)))"},
        Row{"ThreeConvolutionsThatShareAnInput", "convolution-merge-three",
            "Conv(x,w,u), Conv(x,v,s), Conv(x,w4,w5) = Split(Conv(x,Concat(w,v,w4),Concat(u,s,w5))), "
            "Split(Conv(x,Concat(w,v,w4),Concat(u,s,w5))), Split(Conv(x,Concat(w,v,w4),Concat(u,s,w5)))",
            3},
        Row{"ProductOfExponentials", "exponential", "Mul(Exp(x),Exp(y)) = Exp(Add(x,y))", 3},
        Row{"SigmoidOfTheOpposite", "exponential", "Sub(c,Sigmoid(x)) = Sigmoid(Neg(x))", 3},
        Row{"TanhAsSigmoid", "exponential", "Mul(Sigmoid(Add(x,x)),c) = Add(Tanh(x),c)", 3},
        Row{"SineAndCosine", "circle", "Add(Mul(Cos(x),Cos(x)),Mul(Sin(x),Sin(x))) = FillLike(x)", 3},
        Row{"IdentityKernel", "identity-kernel", "Conv(x,Pad(Unsqueeze(Trilu(Trilu(ConstantOfShape()))))) = x"},
        Row{"ScalarIntoConvolution", "convolution-scalar", "Mul(Conv(x,w),u) = Conv(x,Mul(u,w))"},
        Row{"ReluAndPaddedMaxPool", "pooling-padded", "MaxPool(Relu(x)) = Relu(MaxPool(x))"},
        Row{"ParallelConvolutionsAsGroups", "convolution-groups",
            "Concat(Conv(x,w),Conv(y,u)) = Conv(Concat(x,y),Concat(w,u))", 3}),
    [](const testing::TestParamInfo<Row>& info) { return info.param.name; });

TEST(Generate, BatchNormalizationIsFoundForAnyEpsilon) {
  GeneratorLimits limits;
  limits.families = {"convolution-normalized"};
  const GeneratedCandidates found = generate(limits);
  EXPECT_EQ(found.rules.size(), 2u) << listing(found);
  for (const RewriteRule& rule : found.rules) {
    EXPECT_EQ(float_variables(rule), std::vector<std::string>{"epsilon"});
    EXPECT_EQ(verify_rule(rule).verdict, Verdict::Proved) << print_rule(rule);
  }
}

// The softmax that divides by a sum of exponentials is the one that subtracts the largest first.
TEST(Generate, SoftmaxIsAQuotientOfExponentials) {
  const std::string family =
      "size m 2 3\nsize n 3 2\nactivation 1 [...,m,n]\nmax-weight-ops 0\nop Exp\nop Div\nop ReduceSum axes=[-1]\n"
      "op Softmax axis=-1\n";
  GeneratorLimits limits = with_alphabet("family f\nexponentials\n" + family),
                  without = with_alphabet("family f\n" + family);
  limits.max_ops = without.max_ops = 3;
  const std::string wanted = "Div(Exp(x),ReduceSum(Exp(x))) = Softmax(x)";
  EXPECT_TRUE(has(generate(limits), wanted)) << listing(generate(limits));
  EXPECT_FALSE(has(generate(without), wanted));
}

// What names axes by their number from the front is found under leading axes too.
TEST(Generate, TranspositionsHoldUnderLeadingAxes) {
  const GeneratedCandidates found = generate(with_alphabet(
      "family f\nsize a 2 3\nsize b 3 2\nsize c 4 5\nactivation 1 [...,a,b]\nactivation 1 [...,b,c]\nmax-weight-ops 0\n"
      "op Transpose perm=[1,0]\nop Relu\nop Concat inputs=2 axis=0\n"));
  int under_leading_axes = 0;
  for (const RewriteRule& rule : found.rules) {
    under_leading_axes += rule.variables.front().has_prefix;
    const Verification proof = verify_rule(rule);
    EXPECT_EQ(proof.verdict, Verdict::Proved) << print_rule(rule) << proof.reason;
  }
  EXPECT_TRUE(has(found, "Transpose(Transpose(x)) = x")) << listing(found);
  EXPECT_EQ(under_leading_axes, static_cast<int>(found.rules.size())) << print_rules(found.rules);
}

TEST(Generate, TheSameForASeed) {
  GeneratorLimits limits;
  limits.families = {"elementwise", "matrix"};
  const GeneratedCandidates first = generate(limits), second = generate(limits);
  EXPECT_EQ(print_rules(first.rules), print_rules(second.rules));
  EXPECT_GT(first.rules.size(), 20u);
}

TEST(Generate, TheSameForAnyNumberOfThreads) {
  GeneratorLimits limits;
  limits.families = {"matrix", "merge"};
  limits.max_ops = 3;
  const GeneratedCandidates one = generate(limits);
  limits.threads = 3;
  const GeneratedCandidates several = generate(limits);
  EXPECT_EQ(print_rules(one.rules), print_rules(several.rules));
  EXPECT_EQ(one.stats.classes, several.stats.classes);
}

// Ranks that are threads of this process.
class Meeting {
 public:
  explicit Meeting(int count) : barrier_(count), parts_(static_cast<size_t>(count)) {}
  std::vector<std::string> gather(int rank, std::string own) {
    parts_[static_cast<size_t>(rank)] = std::move(own);
    barrier_.arrive_and_wait();
    std::vector<std::string> all = parts_;
    barrier_.arrive_and_wait();
    return all;
  }

 private:
  std::barrier<> barrier_;
  std::vector<std::string> parts_;
};
class ThreadRanks : public Ranks {
 public:
  ThreadRanks(Meeting& meeting, int rank, int count) : meeting_(meeting), rank_(rank), count_(count) {}
  int rank() const override { return rank_; }
  int count() const override { return count_; }
  std::vector<std::string> gather(std::string own) override {
    records_ += own.size();
    return meeting_.gather(rank_, std::move(own));
  }
  size_t records() const { return records_; }  // bytes given

 private:
  Meeting& meeting_;
  int rank_, count_;
  size_t records_ = 0;
};

TEST(Generate, TheSameOnEveryOfSeveralRanks) {
  GeneratorLimits limits;
  limits.families = {"matrix", "merge"};
  limits.max_ops = 3;
  const GeneratedCandidates one = generate(limits);
  constexpr int kRanks = 3;
  Meeting meeting(kRanks);
  std::vector<GeneratedCandidates> found(kRanks);
  std::vector<size_t> records(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; rank++)
    threads.emplace_back([&, rank] {
      ThreadRanks ranks(meeting, rank, kRanks);
      GeneratorLimits own = limits;
      own.ranks = &ranks;
      found[static_cast<size_t>(rank)] = generate(own);
      records[static_cast<size_t>(rank)] = ranks.records();
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t rank = 0; rank < kRanks; rank++) {
    EXPECT_EQ(print_rules(found[rank].rules), print_rules(one.rules)) << "rank " << rank;
    EXPECT_EQ(found[rank].stats.candidates, one.stats.candidates);
    EXPECT_EQ(found[rank].stats.classes, one.stats.classes);
    EXPECT_EQ(found[rank].stats.after_derivable, one.stats.after_derivable);
    EXPECT_GT(records[rank], 10000u) << "rank " << rank << " does its part";
  }
}

// Pruning drops pairs, never classes.
TEST(Generate, TheSameClassesForAnyPruning) {
  GeneratorLimits limits;
  limits.families = {"merge"};
  const GeneratedCandidates pruned = generate(limits);
  size_t most = pruned.rules.size();
  for (Pruning pruning : {Pruning::Subgraph, Pruning::Renaming, Pruning::None}) {
    limits.pruning = pruning;
    const GeneratedCandidates found = generate(limits);
    EXPECT_EQ(found.stats.classes, pruned.stats.classes);
    EXPECT_GE(found.rules.size(), most);
    most = found.rules.size();
  }
}

// A file of rules has each name once.
TEST(Generate, ARuleOfTwoFamiliesComesOnce) {
  const std::string body = "activation 2 [...]\nop Relu\nop Neg\nop Add\n";
  GeneratorLimits limits = with_alphabet("family f\n" + body + "family g\n" + body);
  limits.pruning = Pruning::None;
  const GeneratedCandidates found = generate(limits);
  std::set<std::string> names;
  for (const RewriteRule& rule : found.rules) EXPECT_TRUE(names.insert(rule.name).second) << print_rule(rule);
  EXPECT_GT(names.size(), 3u);
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

// What is found with two shapes where three may differ is offered for three.
TEST(Generate, TypesAreAsGeneralAsTheOperatorsAllow) {
  const GeneratedCandidates found = generate(with_alphabet(R"(
family f
size m 2 3
size n 3 2
activation 3 [m,n]
op Concat inputs=2 axis=0
)"));
  ASSERT_FALSE(found.rules.empty());
  std::set<std::string> types;
  for (const RuleVariable& variable : found.rules[0].variables) types.insert(to_string(variable.type));
  EXPECT_EQ(types.size(), 3u) << print_rule(found.rules[0]);
}

// x / x = 1 holds for all values but one.
TEST(Generate, ZeroDivisorsAreTried) {
  const GeneratedCandidates found = generate(with_alphabet("family f\nactivation 1 [...]\nconstant 0 1\nop Div\n"));
  EXPECT_FALSE(has(found, "Div(x,x) = c")) << listing(found);
  EXPECT_FALSE(has(found, "Div(c,x) = c")) << listing(found);
}

// An argument that occurs twice is counted once.
TEST(Generate, SharedArguments) {
  const GeneratedCandidates two = generate(with_alphabet("family f\nactivation 2 [...]\nop Relu\nop Neg\nop Add\n"));
  EXPECT_TRUE(has(two, "Add(Neg(x),Neg(x)) = Neg(Add(x,x))")) << listing(two);
}

// A sum of one tensor with itself is an instance of a sum of two, and goes once that is found.
TEST(Generate, InstancesOfWhatIsFoundLaterGo) {
  GeneratorLimits limits =
      with_alphabet("family f\nactivation 2 [...,m]\nsize m 2 3\nop ReduceSum axes=[-1]\nop Add\n");
  const std::string instance = "Add(ReduceSum(x),ReduceSum(x)) = ReduceSum(Add(x,x))",
                    general = "Add(ReduceSum(x),ReduceSum(y)) = ReduceSum(Add(x,y))";
  const GeneratedCandidates two = generate(limits);
  EXPECT_TRUE(has(two, instance) || has(two, "ReduceSum(Add(x,x)) = Add(ReduceSum(x),ReduceSum(x))")) << listing(two);
  limits.max_ops = 3;
  const GeneratedCandidates three = generate(limits);
  EXPECT_TRUE(has(three, general)) << listing(three);
  EXPECT_FALSE(has(three, instance)) << listing(three);
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
