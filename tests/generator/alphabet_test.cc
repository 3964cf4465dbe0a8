// The text that families are described by.
#include "alphabet.h"

#include <gtest/gtest.h>

namespace gopt::generator {
namespace {

TEST(Alphabet, ReadsAFamily) {
  const auto families = parse_alphabet(R"(
# a comment
family f
size m 2 3
size p 1 0 0 2
activation 2 [...,2*m-p,m]   # and another
weight 1 []
constant 0 0.5
max-ops 3
max-weight-ops 2
op Add
op Split outputs=2 axis=-1 split=[m,m-p]
op Unsqueeze weights-only axes=[1]
op LeakyRelu alpha=0.25
)",
                                       "text");
  ASSERT_TRUE(families.ok()) << families.error().message;
  ASSERT_EQ(families->size(), 1u);
  const Family& family = families->front();
  EXPECT_EQ(family.name, "f");
  ASSERT_EQ(family.sizes.size(), 2u);
  EXPECT_EQ(family.sizes[0].values[1], 3);
  EXPECT_EQ(family.sizes[1].low, 0);
  EXPECT_EQ(family.sizes[1].high, 2);
  ASSERT_EQ(family.classes.size(), 2u);
  EXPECT_TRUE(family.classes[0].has_prefix);
  EXPECT_EQ(family.classes[0].count, 2);
  EXPECT_EQ(family.classes[0].type.shape->front(), Index(2) * symbol("m") - symbol("p"));
  EXPECT_EQ(family.classes[1].kind, VariableKind::Weight);
  EXPECT_TRUE(family.classes[1].type.shape->empty());
  EXPECT_EQ(family.constants, (std::vector<double>{0, 0.5}));
  EXPECT_EQ(family.max_ops, 3);
  EXPECT_EQ(family.max_weight_ops, 2);
  ASSERT_EQ(family.ops.size(), 4u);
  EXPECT_EQ(family.ops[1].outputs, 2);
  EXPECT_TRUE(family.ops[2].on_weights_only);
  EXPECT_EQ(std::get<double>(family.ops[3].attributes.at("alpha")), 0.25);
}

TEST(Alphabet, ReadsArgumentsOfNamedClasses) {
  const auto families = parse_alphabet(R"(
family f
exponentials
size c 2 3
activation 1 [1,c]
weight 1 [c] as scale
weight 1 [c] as other
max-vars 6
op BatchNormalization inputs=5 args=_,scale,other,other,other epsilon=$eps
composite Twice weights-only inputs=1 args=scale
step FillLike in0 value=$eps
)",
                                       "text");
  ASSERT_TRUE(families.ok()) << families.error().message;
  const Family& family = families->front();
  EXPECT_TRUE(family.has_exponentials);
  EXPECT_EQ(family.max_variables, 6);
  EXPECT_EQ(family.classes[1].name, "scale");
  EXPECT_EQ(family.ops[0].classes, (std::vector<int>{-1, 1, 2, 2, 2}));
  EXPECT_EQ(family.ops[1].class_of(0), 1);
  EXPECT_EQ(std::get<FloatVariable>(family.ops[0].attributes.at("epsilon")).name, "eps");
  EXPECT_EQ(std::get<double>(substituted(family.ops[0].attributes, {}).at("epsilon")), kFloatVariable);
}

TEST(Alphabet, AnOperatorStandsOnce) {
  const auto families =
      parse_alphabet("family f\nop Add\nop Softmax axis=-1\nop Softmax axis=-1 weights-only\n", "text");
  ASSERT_FALSE(families.ok());
  EXPECT_NE(families.error().message.find("text:4: "), std::string::npos) << families.error().message;
  EXPECT_NE(families.error().message.find("Softmax"), std::string::npos) << families.error().message;
}

TEST(Alphabet, TheBuiltInOneIsWellFormed) {
  const auto families = parse_alphabet(built_in_alphabet(), "alphabet.txt");
  ASSERT_TRUE(families.ok()) << families.error().message;
  EXPECT_GE(families->size(), 8u);
  for (const Family& family : *families) {
    EXPECT_FALSE(family.ops.empty()) << family.name;
    // What need not be equal is unequal in one assignment at least. Sizes of unequal ranges are of unequal kinds.
    for (const Size& a : family.sizes)
      for (const Size& b : family.sizes) {
        if (a.symbol == b.symbol || a.low != b.low || a.high != b.high) continue;
        EXPECT_TRUE(a.values[0] != b.values[0] || a.values[1] != b.values[1])
            << family.name << " " << atom(a.symbol).name << " " << atom(b.symbol).name;
      }
  }
}

struct BadText {
  std::string name, text, part;
};
std::ostream& operator<<(std::ostream& out, const BadText& row) { return out << row.name; }

class BadAlphabet : public testing::TestWithParam<BadText> {};

TEST_P(BadAlphabet, IsAnErrorWithItsLine) {
  const auto families = parse_alphabet(GetParam().text, "a.txt");
  ASSERT_FALSE(families.ok());
  EXPECT_NE(families.error().message.find(GetParam().part), std::string::npos) << families.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadAlphabet,
    testing::Values(BadText{"Empty", "# nothing\n", "no family"}, BadText{"NoFamily", "op Add\n", "a.txt:1"},
                    BadText{"UnknownOperator", "family f\nop Addition\n", "Addition"},
                    BadText{"UnknownAttribute", "family f\nop Relu slope=1\n", "slope"},
                    BadText{"UnknownKeyword", "family f\nshape m\n", "shape"},
                    BadText{"SizeWithoutNumbers", "family f\nsize m 2\n", "a.txt:2"},
                    BadText{"OpenBracket", "family f\nactivation 1 [m,\n", "a.txt:2"},
                    BadText{"CompositeOfNothing", "family f\ncomposite Both\n", "Both"},
                    BadText{"CompositeWithAnOperatorsName", "family f\ncomposite Relu\n", "Relu"},
                    BadText{"StepAlone", "family f\nstep Relu in0\n", "a.txt:2"},
                    BadText{"StepOfALaterStep", "family f\ncomposite C\nstep Relu step0\n", "step0"},
                    BadText{"StepWithTooFewArguments", "family f\ncomposite C\nstep Add in0\n", "a.txt:3"},
                    BadText{"WeightsOfACommutativeOperator", "family f\nop Add weights-from=1\n", "weights-from"},
                    BadText{"ArgumentOfNoClass", "family f\nop Sub args=_,scale\n", "scale"},
                    BadText{"TooFewArgumentClasses", "family f\nweight 1 [] as s\nop Sub args=s\n", "a.txt:3"},
                    BadText{"ArgumentsOfACommutativeOperator", "family f\nweight 1 [] as s\nop Add args=_,s\n", "args"},
                    BadText{"TwoClassesOfOneName", "family f\nweight 1 [] as s\nweight 1 [] as s\n", "a.txt:3"},
                    BadText{"TwoFloatVariables", "family f\nop LeakyRelu alpha=$a\nop Elu alpha=$b\n",
                            "float variable"},
                    BadText{"TooMuch", "family f\nmax-ops 3 4\n", "end of the line"}),
    [](const testing::TestParamInfo<BadText>& info) { return info.param.name; });

}  // namespace
}  // namespace gopt::generator
