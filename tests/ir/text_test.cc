// The text form: what is printed parses to the same graph, and what is malformed says where and why.
#include "gopt/text.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "gopt/text_reader.h"
#include "random_nodes.h"

namespace gopt {
namespace {

struct ErrorRow {
  const char* name;
  const char* text;
  const char* message;
};
std::ostream& operator<<(std::ostream& os, const ErrorRow& row) { return os << row.name; }

class TextErrorTest : public testing::TestWithParam<ErrorRow> {};
TEST_P(TextErrorTest, SaysWhereAndWhy) {
  auto graph = parse_graph(GetParam().text);
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.error().message, GetParam().message);
}

const ErrorRow kErrorRows[] = {
    {"Empty", "", "line 1, column 1: expected 'graph'"},
    {"NoName", "graph\nend", "line 1, column 6: expected a name"},
    {"NoEnd", "graph g\ninput x : f32[2]\n", "line 3, column 1: expected 'end'"},
    {"NoOutput", "graph g\ninput x : f32[2]\nend", "line 3, column 4: the graph has no output"},
    {"TextAfterEnd", "graph g\ninput x : f32[2]\noutput y = x\nend\nmore",
     "line 5, column 1: expected nothing after 'end'"},
    {"TwoStatementsOnALine", "graph g\ninput x : f32[2] output y = x\nend",
     "line 2, column 18: expected the end of the line"},
    {"UndefinedValue", "graph g\ninput x : f32[2]\ny = Neg(z)\noutput y = y\nend",
     "line 3, column 10: 'z' is not defined"},
    {"DefinedTwice", "graph g\ninput x : f32[2]\nx = Neg(x)\noutput x = x\nend",
     "line 3, column 11: 'x' is defined twice"},
    {"UnknownOperator", "graph g\ny = Frobnicate()\noutput y = y\nend",
     "line 2, column 15: 'Frobnicate' is no operator"},
    {"InputIsNoOperator", "graph g\ny = Input()\noutput y = y\nend", "line 2, column 10: 'Input' is no operator"},
    {"WrongArity", "graph g\ninput x : f32[2]\ny = Add(x)\noutput y = y\nend",
     "line 3, column 11: Add: 1 inputs, expected 2"},
    {"ShapesThatDoNotFit", "graph g\ninput x : f32[2]\ninput z : f32[3]\ny = Add(x, z)\noutput y = y\nend",
     "line 4, column 14: Add(f32[2], f32[3]): extents 2 and 3 are equal: this does not hold"},
    {"UnknownElementType", "graph g\ninput x : float[2]\noutput y = x\nend",
     "line 2, column 16: 'float' is no element type"},
    {"UnclosedShape", "graph g\ninput x : f32[2\noutput y = x\nend", "line 2, column 16: expected ','"},
    {"UnknownAttribute", "graph g\ninput x : f32[2]\ny = Neg(x) {slope=1}\noutput y = y\nend",
     "line 3, column 19: Neg has no attribute 'slope'"},
    {"AttributeTwice", "graph g\ninput x : f32[2]\ny = Softmax(x) {axis=0, axis=0}\noutput y = y\nend",
     "line 3, column 31: attribute 'axis' is given twice"},
    {"AttributeOfAnotherKind", "graph g\ninput x : f32[2]\ny = Softmax(x) {axis=[0]}\noutput y = y\nend",
     "line 3, column 22: expected an integer"},
    {"FloatThatIsNone", "graph g\ninput x : f32[2]\ny = Elu(x) {alpha=much}\noutput y = y\nend",
     "line 3, column 19: expected a number"},
    {"FloatVariableInAGraph", "graph g\ninput x : f32[2]\ny = Elu(x) {alpha=$a}\noutput y = y\nend",
     "line 3, column 21: '$a' is no float variable"},
    {"IntegerBeyond64Bits", "graph g\ninput x : f32[99999999999999999999]\noutput y = x\nend",
     "line 2, column 15: the integer exceeds 64 bits"},
    {"ProductBeyond64Bits", "graph g\ninput x : f32[9000000000*9000000000]\noutput y = x\nend",
     "line 2, column 36: index arithmetic exceeds 64 bits"},
    {"DivisionByZero", "graph g\ninput x : f32[n//0]\noutput y = x\nend", "line 2, column 19: division by zero"},
    {"TooFewElements", "graph g\nconstant c = f32[3] {1, 2}\noutput y = c\nend",
     "line 2, column 27: the constant has 2 elements, its shape 3"},
    {"TooManyElementsToCount", "graph g\nconstant c = f32[4294967296,4294967296] {1}\noutput y = c\nend",
     "line 2, column 44: a tensor has more than 2^59 elements"},
    {"NegativeExtent", "graph g\nconstant c = f32[-1] {}\noutput y = c\nend", "line 2, column 21: a negative extent"},
    {"NegativeExtentOfAnInput", "graph g\ninput x : f32[-1]\noutput y = x\nend",
     "line 2, column 18: a negative extent"},
    {"SymbolicConstant", "graph g\nconstant c = f32[n] {1}\noutput y = c\nend",
     "line 2, column 20: a constant has a static shape and elements that are numbers"},
    {"WeightWithoutData", "graph g\nweight w : f32[2]\noutput y = w\nend",
     "line 2, column 18: weight 'w' has no data: text alone does not hold large tensors"},
    {"StringNotClosed", "graph \"g\nend", "line 1, column 9: a string is not closed"},
    {"OpaqueNode", "graph g\ninput x : f32[2]\ny = opaque \"d\" \"T\"(x) : f32[2]\noutput y = y\nend",
     "line 3, column 11: 'opaque' is no operator"},
    {"TooManyOutputs", "graph g\ninput x : f32[2]\na, b = Neg(x)\noutput y = a\nend",
     "line 3, column 14: Neg: 2 outputs asked for, it has 1"},
};
INSTANTIATE_TEST_SUITE_P(Rows, TextErrorTest, testing::ValuesIn(kErrorRows),
                         [](const auto& info) { return info.param.name; });

TEST(Text, AWeightOfAnotherTypeIsAnError) {
  const std::string text = "graph g\nweight w : f32[2]\noutput y = w\nend";
  EXPECT_TRUE(parse_graph(text, {{"w", Tensor::from_values<double>(ElementType::Float32, {2}, {1, 2})}}).ok());
  auto graph = parse_graph(text, {{"w", Tensor::vector_i64({1, 2})}});
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.error().message, "line 2, column 18: weight 'w' is i64[2], the text says f32[2]");
}

TEST(Text, DeepNestingIsAnErrorAndNoOverflow) {
  for (const char* open : {"(", "-", "-("}) {
    std::string nested;
    for (int k = 0; k < 200'000; k++) nested += open;
    EXPECT_FALSE(parse_graph("graph g\ninput x : f32[" + nested + "1]\noutput y = x\nend").ok());
    TextReader reader(nested);
    EXPECT_THROW(reader.cond(), TextError);
  }
  std::string negations;
  for (int k = 0; k < 200'000; k++) negations += "not ";
  TextReader reader(negations);
  EXPECT_THROW(reader.cond(), TextError);
}

// A parenthesis opens a condition or an index; trying both at each level must not take time that doubles with depth.
TEST(Text, NestedParenthesesTakeNoExponentialTime) {
  const std::string text = std::string(60, '(') + "n" + std::string(60, ')') + " >= 2";
  TextReader reader(text);
  EXPECT_EQ(reader.cond(), at_least(symbol("n"), Index(2)));
}

// ---- round trips ----

// A chain of random nodes over inputs and constants, with names that need quotes among them.
Graph random_graph(uint64_t seed) {
  RandomNodes random(seed);
  GraphBuilder b;
  b.metadata().name = random.one_in(2) ? "a graph, \"quoted\"" : "";
  static const char* kNames[] = {"",      "x",  "a.b",   "1st",    "two words", "quote\"", "back\\slash", "line\nbreak",
                                 "#hash", "_",  "input", "output", "end",       "weight",  "constant",    "naïve",
                                 "v0",    "v1", "true",  "a-b"};
  const auto name = [&] { return std::string(kNames[random.uniform(0, std::size(kNames) - 1)]); };
  std::vector<Value> made;
  int inputs = 0;
  for (int k = 0; k < 12; k++) {
    const RandomNode node =
        random.node(all_ops()[static_cast<size_t>(random.uniform(0, static_cast<int64_t>(all_ops().size()) - 1))]);
    if (std::any_of(node.inputs.begin(), node.inputs.end(), [](const Tensor& t) { return t.count() > 64; })) continue;
    std::vector<Value> arguments;
    for (const Tensor& t : node.inputs) {
      Value argument;
      for (const Value& v : made)
        if (v.type() == t.tensor_type() && random.one_in(2)) argument = v;
      if (!argument && random.one_in(2)) argument = b.constant(t, name());
      if (!argument) argument = b.input(name() + std::to_string(inputs++), t.tensor_type());
      arguments.push_back(argument);
    }
    std::vector<std::string> output_names;
    for (int output = 0; output < node.output_count; output++) output_names.push_back(name());
    auto added = b.add(node.kind, arguments, node.attributes, node.output_count, name(), output_names);
    if (!added) continue;
    for (int output = 0; output < node.output_count; output++) made.push_back({*added, output});
  }
  if (made.empty()) made.push_back(b.constant(Tensor::scalar_f32(1)));
  for (size_t k = 0; k < made.size(); k++) b.output(name() + std::to_string(k), made[k]);
  return b.build();
}

TEST(Text, RandomGraphsPrintAndParseToThemselves) {
  std::set<OpKind> printed;
  for (uint64_t seed = 0; seed < 600; seed++) {
    const Graph graph = random_graph(seed);
    const std::string text = print_graph(graph);
    const auto parsed = parse_graph(text);
    ASSERT_TRUE(parsed.ok()) << parsed.error().message << "\n" << text;
    EXPECT_EQ(parsed->hash(), graph.hash()) << text;
    EXPECT_EQ(print_graph(*parsed), text);
    for (const NodePtr& node : graph.nodes()) printed.insert(node->op);
  }
  for (OpKind kind : all_ops()) EXPECT_TRUE(printed.contains(kind)) << op_info(kind).name << " was never printed";
}

TEST(Text, SymbolicTypesPrintAndParseToThemselves) {
  GraphBuilder b;
  const Index odd = symbol("batch size"), plain = symbol("n"), quoted = symbol("a-b");
  const Value x = b.input("x", {ElementType::Float32, Shape{odd, plain * Index(2) + Index(1), quoted}});
  b.output("y", *b.apply(OpKind::Relu, {x}));
  b.output("half",
           *b.apply(OpKind::Reshape, {x}, {{"shape", std::vector<Index>{odd * quoted, plain * Index(2) + Index(1)}}}));
  const Graph graph = b.build();
  const auto parsed = parse_graph(print_graph(graph));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message << "\n" << print_graph(graph);
  EXPECT_EQ(parsed->hash(), graph.hash()) << print_graph(graph);
}

TEST(Text, UnknownShapesPrintAndParse) {
  const std::string text = "graph g\n  input x : f32[?]\n  output y = x\nend\n";
  const auto parsed = parse_graph(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(print_graph(*parsed), text);
}

TEST(Text, NumbersComeBackBitForBit) {
  const std::vector<double> values{0.1, -0.0, 1e-45, 3.4028234663852886e38, 16777217.0, INFINITY, -INFINITY};
  GraphBuilder b;
  b.output("f64", b.constant(Tensor::from_values(ElementType::Float64, {7}, values)));
  b.output("f32", b.constant(Tensor::from_values(ElementType::Float32, {7}, values)));
  b.output("f16", b.constant(Tensor::from_values(ElementType::Float16, {7}, values)));
  b.output("i64", b.constant(Tensor::vector_i64({INT64_MIN, INT64_MAX})));
  const auto parsed = parse_graph(print_graph(b.build()));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->hash(), b.build().hash());
}

TEST(Text, LargeConstantsAreWeightsByName) {
  GraphBuilder b;
  const Tensor large = Tensor::from_values(ElementType::Float32, {100}, std::vector<double>(100, 0.5));
  b.output("y", b.constant(large, "the weight"));
  const std::string text = print_graph(b.build());
  EXPECT_NE(text.find("weight \"the weight\" : f32[100]"), std::string::npos) << text;
  const auto parsed = parse_graph(text, {{"the weight", large}});
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->hash(), b.build().hash());
}

// Random damage to a text gives a graph or an error, and nothing else.
TEST(Text, DamagedTextIsAnErrorAndNoCrash) {
  int accepted = 0, refused = 0;
  for (uint64_t seed = 0; seed < 3000; seed++) {
    std::string text = print_graph(random_graph(seed % 40));
    RandomNodes random(seed + 1'000'000);
    for (int64_t damages = random.uniform(1, 4); damages > 0; damages--) {
      const auto at = static_cast<size_t>(random.uniform(0, static_cast<int64_t>(text.size()) - 1));
      static const std::string kBytes = "()[]{},=:$#\"\\-*/%._ 0179eEinfa\n\t\xff";
      switch (random.uniform(0, 3)) {
        case 0: text.erase(at, static_cast<size_t>(random.uniform(1, 5))); break;
        case 1:
          text.insert(at, 1, kBytes[static_cast<size_t>(random.uniform(0, static_cast<int64_t>(kBytes.size()) - 1))]);
          break;
        case 2:
          text[at] = kBytes[static_cast<size_t>(random.uniform(0, static_cast<int64_t>(kBytes.size()) - 1))];
          break;
        default: text.resize(at); break;
      }
      if (text.empty()) break;
    }
    const auto graph = parse_graph(text);
    graph.ok() ? accepted++ : refused++;
    if (!graph.ok()) {
      EXPECT_EQ(graph.error().message.rfind("line ", 0), 0u) << graph.error().message;
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace gopt
