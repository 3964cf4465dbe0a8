// Malformed rules files: one error each, with the file, the line and the rule.
#include <gtest/gtest.h>

#include "gopt/rule.h"

namespace gopt {
namespace {

struct Row {
  const char* name;
  const char* text;
  const char* error;  // how it starts
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class MalformedRules : public ::testing::TestWithParam<Row> {};
TEST_P(MalformedRules, AreAnError) {
  const auto rules = parse_rules(GetParam().text, "F");
  ASSERT_FALSE(rules.ok());
  EXPECT_EQ(rules.error().message.substr(0, std::string(GetParam().error).size()), GetParam().error)
      << rules.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    Rules, MalformedRules,
    ::testing::Values(
        Row{"NotARule", "graph main\n", "F:1: expected 'rule'"}, Row{"NoName", "rule\n", "F:1: expected a name"},
        Row{"NoEnd", "rule a\n  var x f32[n]\n", "F:3: rule `a`: expected 'end'"},
        Row{"NoLeft", "rule a\nend\n", "F:2: rule `a`: the rule has no left side"},
        Row{"NoRight", "rule a\nvar x f32[n]\nleft\ny = Relu(x)\nreturn y\nend\n",
            "F:6: rule `a`: the rule has no right side"},
        Row{"UnknownStatement", "rule a\n  lhs\nend\n", "F:2: rule `a`: 'lhs' is no part of a rule"},
        Row{"LeftTwice", "rule a\nvar x f32[n]\nleft\nreturn x\nleft\nreturn x\nend\n",
            "F:5: rule `a`: 'left' is given twice"},
        Row{"UnknownType", "rule a\nvar x real[n]\nend\n", "F:2: rule `a`: 'real' is no element type"},
        Row{"VariableTwice", "rule a\nvar x f32[n]\nvar x f32[n]\nleft\nreturn x\nend\n",
            "F:3: rule `a`: variable 'x' is declared twice"},
        Row{"VariableAfterSide", "rule a\nvar x f32[n]\nleft\nreturn x\nvar y f32[n]\nend\n",
            "F:5: rule `a`: variables are declared before the sides"},
        Row{"UnknownOperator", "rule a\nvar x f32[n]\nleft\ny = Frobnicate(x)\nreturn y\nend\n",
            "F:4: rule `a`: 'Frobnicate' is no operator"},
        Row{"UnboundValue", "rule a\nvar x f32[n]\nleft\ny = Relu(q)\nreturn y\nend\n",
            "F:4: rule `a`: 'q' is not defined"},
        Row{"Arity", "rule a\nvar x f32[n]\nleft\ny = Add(x)\nreturn y\nend\n", "F:4: rule `a`: Add"},
        Row{"Rank", "rule a\nvar x f32[n]\nleft\ny = Transpose(x) {perm=[1,0]}\nreturn y\nend\n",
            "F:4: rule `a`: Transpose"},
        Row{"UnknownAttribute", "rule a\nvar x f32[n]\nleft\ny = Relu(x) {slope=1}\nreturn y\nend\n",
            "F:4: rule `a`: Relu has no attribute 'slope'"},
        Row{"NoReturn", "rule a\nvar x f32[n]\nleft\ny = Relu(x)\nend\n", "F:5: rule `a`: expected 'return'"},
        Row{"ValueTwice", "rule a\nvar x f32[n]\nleft\nx = Relu(x)\nreturn x\nend\n",
            "F:4: rule `a`: 'x' is defined twice"},
        Row{"OutputCounts", "rule a\nvar x f32[n]\nleft\nreturn x\nright\nreturn x, x\nend\n",
            "F:7: rule `a`: the left side returns 1 values, the right side 2"},
        Row{"OutputRanks",
            "rule a\nvar x f32[n,m]\nleft\nreturn x\nright\ny = ReduceSum(x) {axes=[0], keepdims=0}\nreturn y\nend\n",
            "F:8: rule `a`: output 0 is f32[n,m] on the left side and f32[m] on the right side"},
        Row{"UnusedVariable",
            "rule a\nvar x f32[n]\nvar y f32[n]\nleft\nz = Relu(x)\nreturn z\nright\nz = Relu(y)\nreturn z\nend\n",
            "F:10: rule `a`: variable 'y' does not occur on the left side"},
        Row{"UnboundSymbol",
            "rule a\nvar x f32[n]\nleft\ny = Relu(x)\nreturn y\nright\ny = Relu(x)\nreturn y\nwhen q >= 1\nend\n",
            "F:10: rule `a`: symbol 'q' does not occur on the left side"},
        Row{"UndeclaredFloat", "rule a\nvar x f32[n]\nleft\ny = LeakyRelu(x) {alpha=$a}\nreturn y\nend\n",
            "F:4: rule `a`: '$a' is no float variable"},
        Row{"UnboundFloat",
            "rule a\nvar x f32[n]\nfloat a\nleft\ny = Relu(x)\nreturn y\nright\ny = LeakyRelu(x) {alpha=$a}\nreturn "
            "y\nend\n",
            "F:10: rule `a`: float variable '$a' does not occur on the left side"},
        Row{"FloatTwice", "rule a\nfloat e\nfloat e\nend\n", "F:3: rule `a`: float variable 'e' is declared twice"},
        Row{"UnknownMark", "rule a\nmarks exact\nend\n", "F:2: rule `a`: 'exact' is no mark"},
        Row{"BadCondition", "rule a\nwhen n\nend\n", "F:2: rule `a`: expected a comparison"},
        Row{"BadProof", "rule a\nproof definitions=\"x\" obligations=-1 solver=\"z\" digest=\"d\"\nend\n",
            "F:2: rule `a`: the number of obligations is out of range"},
        Row{"UnclosedString", "rule a\nproof definitions=\"x\nend\n", "F:2: rule `a`: a string is not closed"},
        Row{"DivisionByZero", "rule a\nvar x f32[n//0]\nend\n", "F:2: rule `a`: division by zero"},
        Row{"HugeNumber", "rule a\nvar x f32[99999999999999999999]\nend\n",
            "F:2: rule `a`: the integer exceeds 64 bits"},
        Row{"NameTwice",
            "rule a\nvar x f32[n]\nleft\ny = Relu(x)\nreturn y\nright\ny = Relu(x)\nreturn y\nend\nrule a\n",
            "F:10: rule `a`: the name is taken by an earlier rule"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gopt
