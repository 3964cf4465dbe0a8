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
    testing::Values(
        BadText{"Empty", "# nothing\n", "no family"}, BadText{"NoFamily", "op Add\n", "a.txt:1"},
        BadText{"UnknownOperator", "family f\nop Addition\n", "Addition"},
        BadText{"UnknownAttribute", "family f\nop Relu slope=1\n", "slope"},
        BadText{"UnknownKeyword", "family f\nshape m\n", "shape"},
        BadText{"SizeWithoutNumbers", "family f\nsize m 2\n", "a.txt:2"},
        BadText{"OpenBracket", "family f\nactivation 1 [m,\n", "a.txt:2"},
        BadText{"CompositeOfNothing", "family f\ncomposite Both\n", "a.txt:2: composite Both"},
        BadText{"CompositeWithAnOperatorsName", "family f\ncomposite Relu\n", "Relu"},
        BadText{"StepAlone", "family f\nstep Relu in0\n", "a.txt:2"},
        BadText{"StepOfALaterStep", "family f\ncomposite C\nstep Relu step0\n", "step0"},
        BadText{"StepWithTooFewArguments", "family f\ncomposite C\nstep Add in0\n", "a.txt:3"},
        BadText{"WeightsOfACommutativeOperator", "family f\nop Add weights-from=1\n", "weights-from"},
        BadText{"ArgumentOfNoClass", "family f\nop Sub args=_,scale\n", "scale"},
        BadText{"TooFewArgumentClasses", "family f\nweight 1 [] as s\nop Sub args=s\n", "a.txt:3"},
        BadText{"ArgumentsOfACommutativeOperator", "family f\nweight 1 [] as s\nop Add args=_,s\n", "args"},
        BadText{"TwoClassesOfOneName", "family f\nweight 1 [] as s\nweight 1 [] as s\n", "a.txt:3"},
        BadText{"TwoFloatVariables", "family f\nop LeakyRelu alpha=$a\nop Elu alpha=$b\n", "float variable"},
        BadText{"UndeclaredExtent", "family f\nsize m 2 3\nactivation 1 [q]\nop Relu\n",
                "a.txt:3: `q` is no size of family f"},
        BadText{"SizeOfAnotherFamily", "family e\nsize q 2 3\nop Relu\nfamily f\nactivation 1 [q]\nop Relu\n",
                "a.txt:5: `q` is no size of family f"},
        BadText{"UndeclaredAttribute", "family f\nop Slice starts=[q]\n", "a.txt:2: `q` is no size"},
        BadText{"UndeclaredAttributeOfAStep", "family f\ncomposite C\nstep Relu in0\nstep Transpose step0 perm=[q]\n",
                "a.txt:4: `q` is no size"},
        BadText{"NegativeExtent", "family f\nsize m 2 7\nactivation 1 [m-5]\nop Relu\n",
                "a.txt:3: extent m-5 of a variable is -3 with the first"},
        BadText{"EmptyExtent", "family f\nsize m 2 1\nactivation 1 [m-1]\nop Relu\n", "is 0 with the second values"},
        BadText{"NegativeSize", "family f\nsize m -1 3\n", "a.txt:2: size m is -1; give a number from 0 to 4096"},
        BadText{"HugeSize", "family f\nsize m 2 5000\n", "a.txt:2: size m is 5000"},
        BadText{"LowAboveHigh", "family f\nsize m 2 3 5 1\n", "a.txt:2: size m is drawn from 5 to 1"},
        BadText{"SizeTwice", "family f\nsize m 2 3\nsize m 3 2\n", "a.txt:3: size m stands twice"},
        BadText{"NoVariable", "family f\nsize m 2 3\nactivation 0 [m]\n", "a.txt:3: COUNT of variables is 0"},
        BadText{"TooManyVariables", "family f\nactivation 9 []\n", "a.txt:2: COUNT of variables is 9"},
        BadText{"TooManyElements", "family f\nsize m 2 100\nweight 1 [m,m]\nop Relu\n",
                "a.txt:3: a variable has 10000 elements with the second"},
        BadText{"TooManyElementsLater", "family f\nsize m 2 3 1 4000\nweight 1 [m,m]\nop Relu\n",
                "elements with the largest"},
        BadText{"TooHighAPower", "family f\nsize m 4096 4096\nactivation 1 [m*m*m*m*m*m*m*m]\nop Relu\n",
                "elements with the first"},
        BadText{"NumberBeyond64Bits", "family f\nactivation 1 [99999999999999999999]\n",
                "a.txt:2: expected a number of 64 bits"},
        BadText{"CoefficientBeyond64Bits", "family f\nop Slice starts=[9999999999*9999999999]\n",
                "a.txt:2: a coefficient exceeds"},
        BadText{"TwoFamiliesOfOneName", "family f\nop Relu\nfamily f\n", "a.txt:3: family f begins at line 1 already"},
        BadText{"FamilyOfNothing", "family e\nfamily f\nop Relu\n", "a.txt:1: family e has no operator"},
        BadText{"NegativeInputs", "family f\nop Concat inputs=-1 axis=0\n", "a.txt:2: inputs is -1"},
        BadText{"TooManyInputs", "family f\nop Concat inputs=6 axis=0\n",
                "a.txt:2: inputs is 6; give a number from 0 to 5"},
        BadText{"InputsThatTheOperatorHasNot", "family f\nop Relu inputs=2\n",
                "a.txt:2: Relu cannot have 2 inputs; it takes 1"},
        BadText{"TooManyInputsOfAComposite", "family f\ncomposite C inputs=6\n", "a.txt:2: inputs is 6"},
        BadText{"NoOutput", "family f\nop Split outputs=0 axis=0\n", "a.txt:2: outputs is 0"},
        BadText{"WeightsBeyondTheInputs", "family f\nop Sub weights-from=2\n",
                "a.txt:2: weights-from=2 is beyond the 2 inputs of Sub"},
        BadText{"ConstantThatIsNoNumber", "family f\nconstant nan\n", "a.txt:2: expected a finite number at `nan`"},
        BadText{"NoOperators", "family f\nmax-ops 0\n", "a.txt:2: max-ops is 0; give a number from 1 to 9"},
        BadText{"NoVariables", "family f\nmax-vars 0\n", "a.txt:2: max-vars is 0; give a number from 1 to 8"},
        BadText{"PartOfAnOperator", "family f\nmax-ops 2.5\n", "a.txt:2: 2.5 is no integer"},
        BadText{"NegativeWeightOperators", "family f\nmax-weight-ops -1\n", "a.txt:2: max-weight-ops is -1"},
        BadText{"NothingAfterTheName", "family f\nop Addition\n", "not `Addition` at the end of the line"},
        BadText{"SomethingAfterTheName", "family f\nop Addition inputs=2\n", "not `Addition` before `inputs=2`"},
        BadText{"TooMuch", "family f\nmax-ops 3 4\n", "end of the line"}),
    [](const testing::TestParamInfo<BadText>& info) { return info.param.name; });

}  // namespace
}  // namespace gopt::generator
