// Rules at any rank: those that are shipped are proved and hold in instances of ranks, permutations and subsets drawn
// at random; those that hold at few ranks only are not proved.
#include <algorithm>
#include <cmath>
#include <random>

#include "gopt/interpreter.h"
#include "gopt/scheme.h"
#include "random_tensor.h"
#include "rule_files.h"
#include "rules/rule_meaning.h"

namespace gopt {

using namespace verifier;

namespace {

constexpr const char* kShipped = GOPT_SHIPPED_RULES "/ranks.rules";

class RankRule : public ::testing::TestWithParam<NamedRule> {};
TEST_P(RankRule, IsProvedAsTheFileSays) {
  const Verification v = verify_rule(GetParam().rule);
  ASSERT_EQ(to_string(v.verdict), "proved") << v.reason;
  EXPECT_EQ(v.proof, GetParam().rule.proof);
}

class FalseRankRule : public ::testing::TestWithParam<NamedRule> {};
TEST_P(FalseRankRule, IsNotProved) {
  const Verification v = verify_rule(GetParam().rule);
  EXPECT_EQ(to_string(v.verdict), GetParam().rule.origin) << v.reason;
  EXPECT_EQ(v.counterexample.has_value(), v.verdict == Verdict::Refuted);
  EXPECT_FALSE(v.proof.has_value());
}
TEST_P(FalseRankRule, IsNotProvedWithoutSampling) {
  VerifyOptions options;
  options.samples = 0;
  options.rlimit = 4'000'000;
  EXPECT_NE(to_string(verify_rule(GetParam().rule, options).verdict), "proved");
}
INSTANTIATE_TEST_SUITE_P(Rules, FalseRankRule, ::testing::ValuesIn(named_rules(GOPT_TEST_RULES "/ranks_false.rules")),
                         test_name);

std::vector<Index> shuffled(int count, std::mt19937_64& random) {
  std::vector<Index> places;
  for (int k = 0; k < count; k++) places.emplace_back(k);
  std::shuffle(places.begin(), places.end(), random);
  return places;
}

RankAssignment random_ranks(const Scheme& scheme, std::mt19937_64& random) {
  RankAssignment ranks;
  for (const std::string& list : scheme.lists) {
    const int length = ranks.lengths[list] = static_cast<int>(random() % (scheme.lists.size() == 1 ? 7 : 4));
    std::vector<Index> left = shuffled(length, random);
    for (const AxisSymbol& symbol : scheme.symbols) {
      if (symbol.list != list || symbol.kind == AxisSymbolKind::Integers) continue;
      std::vector<Index>& places = ranks.places[symbol.name];
      if (symbol.kind == AxisSymbolKind::Permutation) places = shuffled(length, random);
      while (symbol.kind == AxisSymbolKind::Subset && !left.empty() && random() % 3) {
        places.push_back(left.back());
        left.pop_back();
      }
    }
  }
  return ranks;
}

bool is_small(const Graph& graph) {
  for (const NodePtr& node : graph.nodes())
    for (const TensorType& type : node->outputs)
      if (!type.has_static_shape() || element_count(type.static_shape()) > 3000) return false;
  return true;
}

// 0 among the numbers of a reshape's shape says another thing than an extent that is 0.
bool may_be_empty(const RewriteRule& rule) {
  for (const Graph* side : {&rule.left, &rule.right})
    for (const NodePtr& node : side->nodes())
      if (node->is(OpKind::Reshape)) return false;
  return true;
}

// Both sides' values for random numbers in place of symbols; nothing where none were found for which the left is
// defined.
std::optional<std::pair<std::vector<Tensor>, std::vector<Tensor>>> values_of(const RewriteRule& rule,
                                                                             std::mt19937_64& random) {
  const uint64_t fewest = may_be_empty(rule) ? 0 : 1;
  for (int attempt = 0; attempt < 200; attempt++) {
    Substitution sizes;
    for (AtomId id : rule_symbols(rule)) sizes[id] = static_cast<int64_t>(fewest + random() % (1 + attempt % 4));
    if (!substitute(rule.condition, sizes).is_true()) continue;
    const std::vector<double> floats(float_variables(rule).size(), 0.25);
    const auto left = instantiate(rule.left, sizes, floats, ElementType::Float64);
    if (!left || !is_small(*left)) continue;
    const auto right = instantiate(rule.right, sizes, floats, ElementType::Float64);
    EXPECT_TRUE(right.ok()) << rule.name << ": " << right.error().message;
    if (!right) return std::nullopt;
    std::map<std::string, Tensor> inputs;
    // Where roots and quotients are defined.
    for (const Value& input : left->inputs()) inputs[input.node->name] = random_tensor(random, input.type(), 0.5, 1.5);
    const auto before = interpret(*left, inputs), after = interpret(*right, inputs);
    if (!before) continue;
    EXPECT_TRUE(after.ok()) << rule.name << ": " << after.error().message;
    if (after) return std::pair(*before, *after);
  }
  return std::nullopt;
}

TEST_P(RankRule, HoldsInInstancesOfRandomRanks) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  int evaluated = 0;
  for (int draw = 0; draw < 40 && evaluated < 12; draw++) {
    const RankAssignment ranks = random_ranks(*GetParam().rule.scheme, random);
    const auto instance = instance_of(GetParam().rule, ranks);
    ASSERT_TRUE(instance.ok()) << to_string(ranks) << ": " << instance.error().message;
    const auto values = values_of(*instance, random);
    if (!values) continue;
    evaluated++;
    ASSERT_EQ(values->first.size(), values->second.size());
    for (size_t k = 0; k < values->first.size(); k++) {
      const Tensor &a = values->first[k], &b = values->second[k];
      ASSERT_EQ(a.dims(), b.dims()) << to_string(ranks);
      const std::vector<double> x = a.to_doubles(), y = b.to_doubles();
      for (size_t i = 0; i < x.size(); i++)
        ASSERT_TRUE(x[i] == y[i] || std::abs(x[i] - y[i]) <= 1e-9 * std::max(1.0, std::abs(x[i])) ||
                    (std::isnan(x[i]) && std::isnan(y[i])))
            << to_string(ranks) << ": " << x[i] << " and " << y[i];
    }
  }
  EXPECT_GE(evaluated, 4);
}
INSTANTIATE_TEST_SUITE_P(Shipped, RankRule, ::testing::ValuesIn(named_rules(kShipped)), test_name);

TEST(Ranks, AHundredRulesAreOfEveryRank) {
  std::map<OpKind, int> rules_with;
  const auto rules = load_rules(kShipped);
  ASSERT_TRUE(rules.ok());
  EXPECT_TRUE(rules->warnings.empty());
  for (const RewriteRule& rule : rules->rules) {
    ASSERT_TRUE(rule.scheme) << rule.name;
    std::set<OpKind> ops;
    for (const SchemeNode& node : rule.scheme->left.nodes) ops.insert(node.op);
    for (OpKind op : ops) rules_with[op]++;
  }
  EXPECT_GE(rules->rules.size(), 100u);
  for (OpKind op : {OpKind::Transpose, OpKind::ReduceSum, OpKind::Slice, OpKind::Pad, OpKind::Concat, OpKind::Expand,
                    OpKind::Reshape})
    EXPECT_GE(rules_with[op], 5) << op_info(op).name;
}

const Scheme& scheme_of(const std::string& name) {
  static const std::vector<RewriteRule> rules = rules_of_file(kShipped);
  const auto found =
      std::find_if(rules.begin(), rules.end(), [&](const RewriteRule& rule) { return rule.name == name; });
  if (found == rules.end()) throw std::runtime_error("no rule " + name);
  return *found->scheme;
}
int bound_of(const std::string& name) { return scheme_of(name).bound; }
size_t proofs_of(const std::string& name) { return ranks_to_prove(scheme_of(name)).size(); }

// Counted by hand: places of a variable that are to be told apart, pads that are to be passed outside.
TEST(Ranks, BoundsCountReadsAndPads) {
  EXPECT_EQ(bound_of("ranks-slice-of-slice"), 1);   // x is read twice
  EXPECT_EQ(bound_of("ranks-slice-of-add"), 2);     // x and y are, each
  EXPECT_EQ(bound_of("ranks-pad-of-pad"), 2);       // outside of the outer or inner pad, and of the right one
  EXPECT_EQ(bound_of("ranks-add-of-pads"), 3);      // outside of three
  EXPECT_EQ(bound_of("ranks-relu-of-reshape"), 1);  // a list as one axis
}

TEST(Ranks, ProofsAreOfEveryCombinationOfAListsParts) {
  EXPECT_EQ(proofs_of("ranks-reduce-sum-twice"), 8u);  // axes of r, of s, of neither: one or none of each
  EXPECT_EQ(proofs_of("ranks-add-of-pads"), 4u);
  EXPECT_EQ(proofs_of("ranks-expand-of-expand"), 8u);
}

// What a list may not be part of, since few instances would not tell of all others.
struct Refused {
  const char* name;
  const char* lines;
  const char* why;
};
void PrintTo(const Refused& row, std::ostream* out) { *out << row.name; }
class RefusedScheme : public ::testing::TestWithParam<Refused> {};
TEST_P(RefusedScheme, IsMalformed) {
  const std::string text = "rule x\n" + std::string(GetParam().lines) + "\nend\n";
  const auto rules = parse_rules(text, "F");
  ASSERT_FALSE(rules.ok());
  EXPECT_NE(rules.error().message.find(GetParam().why), std::string::npos) << rules.error().message;
}
INSTANTIATE_TEST_SUITE_P(
    Rows, RefusedScheme,
    ::testing::Values(
        Refused{"RankAsExtent",
                "axes A\nvar x f32[A...,rank.A]\nleft\ny = Relu(x)\nreturn y\nright\ny = Relu(x)\nreturn y",
                "'rank.A' is not to be said here"},
        Refused{"RankAsBound",
                "axes A\nvar x f32[A...,n]\nleft\ny = Slice(x) {starts=[0], ends=[rank.A], axes=[rank.A]}\nreturn "
                "y\nright\ny "
                "= Slice(x) {starts=[0], ends=[rank.A], axes=[rank.A]}\nreturn y",
                "'rank.A' is not to be said here"},
        Refused{"RankAsAttribute",
                "axes A\nvar x f32[A...]\nleft\ny = Cast(x) {to=rank.A}\nreturn y\nright\ny = Cast(x) "
                "{to=rank.A}\nreturn y",
                "'rank.A' is not to be said here"},
        Refused{"AxisWithinAList",
                "axes A\nvar x f32[A...,n]\nleft\ny = Softmax(x) {axis=0}\nreturn y\nright\ny = Softmax(x) "
                "{axis=0}\nreturn y",
                "no single axis is at 0"},
        Refused{
            "ListsMeet",
            "axes A B\nvar x f32[A...]\nvar y f32[B...]\nleft\nz = Add(x, y)\nreturn z\nright\nz = Add(y, x)\nreturn z",
            "a list of axes meets another axis"},
        Refused{
            "ListMeetsAnAxis",
            "axes A\nvar x f32[A...,n]\nvar y f32[m,n]\nleft\nz = Add(x, y)\nreturn z\nright\nz = Add(y, x)\nreturn z",
            "a list of axes meets another axis"},
        Refused{"PadOfAWholeList",
                "axes A\nvar x f32[A...]\nleft\ny = Pad(x) {pads=[one.A...,zero.A...]}\nreturn y\nright\nreturn x",
                "have no integers of their own"},
        Refused{"ReshapeOfIntegers",
                "axes A B\nintegers s of A\nvar x f32[A...]\nleft\ny = Reshape(x) {shape=[B...]}\nz = Relu(y)\nreturn "
                "z\nright\nreturn x",
                "have integers of their own"},
        Refused{"ReductionOverIntegers",
                "axes A\nintegers s t of A\nvar x f32[A...]\nleft\ny = Pad(x) {pads=[s...,t...]}\nz = ReduceSum(y) "
                "{axes=[A...]}\nreturn z\nright\nz = ReduceSum(x) {axes=[A...]}\nreturn z",
                "have integers of their own"},
        Refused{"ReshapeOfPermuted",
                "axes A\npermutation p of A\nvar x f32[A...]\nleft\ny = Transpose(x) {perm=[p...]}\nz = Reshape(y) "
                "{shape=[size.A]}\nreturn z\nright\nz = Reshape(x) {shape=[size.A]}\nreturn z",
                "are in another order"},
        Refused{"InsertedOutOfOrder",
                "axes A B\nvar x f32[A...,B...]\nleft\ny = Unsqueeze(x) {axes=[rank.A,0]}\nreturn y\nright\ny = "
                "Unsqueeze(x) {axes=[rank.A,0]}\nreturn y",
                "no axis begins at rank.A"},
        Refused{"NoSuchOperator", "axes A\nvar x f32[A...,n,n]\nleft\ny = Trilu(x)\nreturn y\nright\nreturn x",
                "Trilu lets no list of axes through"},
        Refused{
            "UndeclaredName",
            "axes A\nvar x f32[A...]\nleft\ny = Relu(x)\nz = Transpose(y) {perm=[A.q...]}\nreturn z\nright\nreturn x",
            "'A.q' says nothing of a list"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gopt
