// Rows computed by hand guard the definitions themselves: stages that share a definition would agree on a mistake.
#include "gopt/interpreter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gopt/text.h"

namespace gopt {
namespace {

struct Row {
  const char* name;
  const char* graph;  // between "graph g" and "end"; its constants are the inputs
  std::vector<double> expected;
};
std::ostream& operator<<(std::ostream& os, const Row& row) { return os << row.name; }

class InterpreterTest : public testing::TestWithParam<Row> {};

TEST_P(InterpreterTest, GivesHandComputedValues) {
  auto graph = parse_graph(std::string("graph g\n") + GetParam().graph + "\nend\n");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  auto outputs = interpret(*graph, {});
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  const std::vector<double> values = (*outputs)[0].to_doubles();
  ASSERT_EQ(values.size(), GetParam().expected.size());
  for (size_t i = 0; i < values.size(); i++) {
    const double expected = GetParam().expected[i];
    const bool is_none = std::isnan(expected) && std::isnan(values[i]);
    const double limit = 1e-6 * std::max(1.0, std::isfinite(expected) ? std::fabs(expected) : 1.0);
    EXPECT_TRUE(is_none || values[i] == expected || std::fabs(values[i] - expected) <= limit)
        << "element " << i << " is " << values[i];
  }
}

const Row kRows[] = {
    {"Add",
     "constant a = f32[2] {1, 2}\nconstant b = f32[2,1] {10, 20}\ny = Add(a, b)\noutput y = y",
     {11, 12, 21, 22}},
    {"DivTruncatesIntegers",
     "constant a = i64[2] {7, -7}\nconstant b = i64[] {2}\ny = Div(a, b)\noutput y = y",
     {3, -3}},
    {"ModFollowsDivisor", "constant a = i64[2] {7, -7}\nconstant b = i64[] {3}\ny = Mod(a, b)\noutput y = y", {1, 2}},
    {"Where",
     "constant c = bool[2] {1, 0}\nconstant a = f32[2] {1, 2}\nconstant b = f32[] {9}\ny = Where(c, a, b)\noutput y = "
     "y",
     {1, 9}},
    {"CastTruncates", "constant a = f32[3] {1.9, -1.9, 2}\ny = Cast(a) {to=7}\noutput y = y", {1, -1, 2}},
    // 2.5 and 3.5 go to the even neighbour before the zero point is added; what is beyond the type is cut off.
    {"QuantizeRoundsHalvesToEven",
     "constant a = f32[5] {1.25, 1.75, -0.3, 99, -9}\nconstant s = f32[] {0.5}\nconstant z = u8[] {3}\ny = Quantize(a, "
     "s, z)\noutput y = y",
     {5, 7, 2, 201, 0}},
    {"QuantizeSaturates",
     "constant a = f32[2,2] {100, -100, 3, -3}\nconstant s = f32[2,1] {0.5, 2}\nconstant z = i8[2,1] {10, -1}\ny = "
     "Quantize(a, s, z)\noutput y = y",
     {127, -128, 1, -3}},
    {"Dequantize",
     "constant a = i8[3] {-128, 0, 127}\nconstant s = f32[3] {0.5, 1, 2}\nconstant z = i8[] {-3}\ny = Dequantize(a, s, "
     "z)\noutput y = y",
     {-62.5, 3, 260}},
    {"Clip", "constant a = f32[3] {-1, 3, 9}\ny = Clip(a) {min=0, max=6}\noutput y = y", {0, 3, 6}},
    {"MatMul",
     "constant a = f32[2,2] {1, 2, 3, 4}\nconstant b = f32[2,1] {5, 6}\ny = MatMul(a, b)\noutput y = y",
     {17, 39}},
    {"GemmTransposed",
     "constant a = f32[2,1] {1, 2}\nconstant b = f32[2,2] {3, 4, 5, 6}\nconstant c = f32[2] {1, 1}\ny = Gemm(a, b, c) "
     "{alpha=2, beta=10, transA=1, transB=1}\noutput y = y",
     {32, 44}},
    {"ConvPadded",
     "constant x = f32[1,1,3] {1, 2, 3}\nconstant w = f32[1,1,3] {1, 10, 100}\ny = Conv(x, w) {pads=[1,1]}\noutput y = "
     "y",
     {210, 321, 32}},
    {"ConvStridedDilated",
     "constant x = f32[1,1,5] {1, 2, 3, 4, 5}\nconstant w = f32[1,1,2] {1, 10}\ny = Conv(x, w) {strides=[2], "
     "dilations=[2]}\noutput y = y",
     {31, 53}},
    {"ConvGrouped",
     "constant x = f32[1,2,1] {3, 5}\nconstant w = f32[2,1,1] {10, 100}\nconstant b = f32[2] {1, 2}\ny = Conv(x, w, b) "
     "{group=2}\noutput y = y",
     {31, 502}},
    {"ConvTransposeStrided",
     "constant x = f32[1,1,2] {1, 2}\nconstant w = f32[1,1,3] {1, 10, 100}\ny = ConvTranspose(x, w) "
     "{strides=[2]}\noutput y = y",
     {1, 10, 102, 20, 200}},
    {"MaxPoolPadded",
     "constant x = f32[1,1,3] {-1, -2, -3}\ny = MaxPool(x) {kernel_shape=[3], pads=[1,1]}\noutput y = y",
     {-1, -1, -2}},
    {"MaxPoolCeil",
     "constant x = f32[1,1,4] {1, 2, 3, 4}\ny = MaxPool(x) {kernel_shape=[3], strides=[2], ceil_mode=1}\noutput y = y",
     {3, 4}},
    {"AveragePoolWithoutPadding",
     "constant x = f32[1,1,2] {2, 4}\ny = AveragePool(x) {kernel_shape=[3], pads=[1,1]}\noutput y = y",
     {3, 3}},
    {"AveragePoolWithPadding",
     "constant x = f32[1,1,2] {3, 6}\ny = AveragePool(x) {kernel_shape=[3], pads=[1,1], count_include_pad=1}\noutput y "
     "= y",
     {3, 3}},
    {"GlobalAveragePool", "constant x = f32[1,2,1,2] {1, 3, 5, 9}\ny = GlobalAveragePool(x)\noutput y = y", {2, 7}},
    {"BatchNormalization",
     "constant x = f32[1,2,1] {3, 5}\nconstant s = f32[2] {2, 1}\nconstant b = f32[2] {1, 0}\nconstant m = f32[2] {1, "
     "5}\nconstant v = f32[2] {3, 0}\ny = BatchNormalization(x, s, b, m, v) {epsilon=1.0}\noutput y = y",
     {3, 0}},
    {"LayerNormalization",
     "constant x = f32[1,2] {1, 3}\nconstant s = f32[2] {1, 2}\ny = LayerNormalization(x, s) {epsilon=0.0}\noutput y = "
     "y",
     {-1, 2}},
    {"Softmax", "constant x = f32[2,2] {0, 0, 1000, 1000}\ny = Softmax(x)\noutput y = y", {0.5, 0.5, 0.5, 0.5}},
    {"SoftmaxOverRows", "constant x = f32[2,1] {0, 1.0986122887}\ny = Softmax(x) {axis=0}\noutput y = y", {0.25, 0.75}},
    {"ReduceMean",
     "constant x = f32[2,2] {1, 2, 3, 6}\ny = ReduceMean(x) {axes=[1], keepdims=0}\noutput y = y",
     {1.5, 4.5}},
    {"ReduceMaxAll", "constant x = f32[2,2] {1, 7, 3, 6}\ny = ReduceMax(x)\noutput y = y", {7}},
    {"Concat",
     "constant a = f32[1,2] {1, 2}\nconstant b = f32[1,1] {3}\ny = Concat(a, b) {axis=1}\noutput y = y",
     {1, 2, 3}},
    {"SplitSecondPart", "constant x = f32[3] {1, 2, 3}\na, b = Split(x) {split=[1,2]}\noutput y = b", {2, 3}},
    {"SliceByTheLongestStepBack",
     "constant x = f32[4] {1, 2, 3, 4}\ny = Slice(x) {starts=[2], ends=[-9], axes=[0], "
     "steps=[-9223372036854775808]}\noutput y = y",
     {3}},
    {"SliceBackward",
     "constant x = f32[4] {1, 2, 3, 4}\ny = Slice(x) {starts=[-1], ends=[-9], axes=[0], steps=[-2]}\noutput y = y",
     {4, 2}},
    {"Transpose", "constant x = f32[2,3] {1, 2, 3, 4, 5, 6}\ny = Transpose(x)\noutput y = y", {1, 4, 2, 5, 3, 6}},
    {"ReshapeInfers",
     "constant x = f32[2,3] {1, 2, 3, 4, 5, 6}\nr = Reshape(x) {shape=[3,-1]}\ny = Transpose(r)\noutput y = y",
     {1, 3, 5, 2, 4, 6}},
    {"Expand", "constant x = f32[2,1] {1, 2}\ny = Expand(x) {shape=[2,2]}\noutput y = y", {1, 1, 2, 2}},
    {"Repeat",
     "constant x = f32[2,2] {1, 2, 3, 4}\ny = Repeat(x) {repeats=[2,3]}\noutput y = y",
     {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4}},
    {"PadConstant", "constant x = f32[2] {1, 2}\ny = Pad(x) {pads=[1,1], value=9}\noutput y = y", {9, 1, 2, 9}},
    {"PadReflect",
     "constant x = f32[3] {1, 2, 3}\ny = Pad(x) {mode=\"reflect\", pads=[2,1]}\noutput y = y",
     {3, 2, 1, 2, 3, 2}},
    {"PadWrapsWhatIsLeft",
     "constant x = f32[5] {10, 11, 12, 13, 14}\ny = Pad(x) {mode=\"wrap\", pads=[-1,3]}\noutput y = y",
     {11, 12, 13, 14, 11, 12, 13}},
    {"PadWrapsWhatIsLeftBefore",
     "constant x = f32[5] {10, 11, 12, 13, 14}\ny = Pad(x) {mode=\"wrap\", pads=[3,-1]}\noutput y = y",
     {11, 12, 13, 10, 11, 12, 13}},
    {"PadLeavesNothing", "constant x = f32[2] {10, 11}\ny = Pad(x) {mode=\"wrap\", pads=[-1,-1]}\noutput y = y", {}},
    {"PadCrops", "constant x = f32[3] {1, 2, 3}\ny = Pad(x) {pads=[-1,0]}\noutput y = y", {2, 3}},
    {"GatherNegative",
     "constant x = f32[3] {1, 2, 3}\nconstant i = i64[2] {-1, 0}\ny = Gather(x, i)\noutput y = y",
     {3, 1}},
    {"ScatterKeepsTheLast",
     "constant x = f32[3,2] {1, 2, 3, 4, 5, 6}\nconstant p = i64[3,1] {2, 0, 2}\n"
     "constant u = f32[3,2] {10, 20, 30, 40, nan, 60}\ny = ScatterAlong(x, p, u)\noutput y = y",
     {30, 40, 3, 4, NAN, 60}},
    {"ScatterAddsAll",
     "constant x = f32[2,3] {1, 2, 3, 4, 5, 6}\nconstant p = i64[2,2] {2, 2, 0, 5}\n"
     "constant u = f32[2,2] {10, 20, 30, 40}\ny = ScatterAlong(x, p, u) {axis=1, reduction=\"add\"}\noutput y = y",
     {1, 2, 33, 34, 5, 6}},
    {"ScatterTakesTheLargest",
     "constant x = i64[2] {7, -9}\nconstant p = i32[3] {1, 1, 0}\nconstant u = i64[3] {-3, -5, 6}\n"
     "y = ScatterAlong(x, p, u) {reduction=\"max\"}\noutput y = y",
     {7, -3}},
    {"GatherElements",
     "constant x = f32[2,2] {1, 2, 3, 4}\nconstant i = i64[2,1] {1, 0}\ny = GatherElements(x, i) {axis=1}\noutput y = "
     "y",
     {2, 3}},
    {"Shape", "constant x = f32[2,3] {1, 2, 3, 4, 5, 6}\ny = Shape(x)\noutput y = y", {2, 3}},
    {"Range",
     "constant a = i64[] {5}\nconstant b = i64[] {0}\nconstant d = i64[] {-2}\ny = Range(a, b, d)\noutput y = y",
     {5, 3, 1}},
    {"ConstantOfShape", "y = ConstantOfShape() {shape=[2], value=i64[1] {7}}\noutput y = y", {7, 7}},
    {"Erf", "constant x = f32[2] {0, 1}\ny = Erf(x)\noutput y = y", {0, 0.8427007929}},
    {"Gelu", "constant x = f32[2] {0, 1}\ny = Gelu(x)\noutput y = y", {0, 0.8413447461}},
    {"DepthToSpace",
     "constant x = f32[1,4,1,1] {1, 2, 3, 4}\ny = DepthToSpace(x) {blocksize=2}\noutput y = y",
     {1, 2, 3, 4}},
    {"Trilu", "constant x = f32[2,2] {1, 2, 3, 4}\ny = Trilu(x)\noutput y = y", {1, 2, 0, 4}},
    {"FillLike", "constant x = f32[2] {1, 2}\ny = FillLike(x) {value=3}\noutput y = y", {3, 3}},
    {"SignOfNoNumber", "constant x = f32[4] {nan, inf, -inf, -0.0}\ny = Sign(x)\noutput y = y", {NAN, 1, -1, 0}},
    {"ReduceLogSumExpOfInfinities",
     "constant x = f32[5,2] {inf, 1, -inf, -inf, inf, -inf, -inf, 2, nan, inf}\ny = ReduceLogSumExp(x) {axes=[1], "
     "keepdims=0}\noutput y = y",
     {INFINITY, -INFINITY, INFINITY, 2, NAN}},
    {"ReduceLogSumExpDoesNotOverflow",
     "constant x = f32[2,2] {1000, 1000, 3e38, 1}\ny = ReduceLogSumExp(x) {axes=[1], keepdims=0}\noutput y = y",
     {1000.6931471806, 3e38}},
    {"EmptySum", "constant x = f32[2,0] {}\ny = ReduceSum(x) {axes=[1], keepdims=0}\noutput y = y", {0, 0}},
};

INSTANTIATE_TEST_SUITE_P(Operators, InterpreterTest, testing::ValuesIn(kRows),
                         [](const auto& info) { return info.param.name; });

TEST(Interpreter, LongAxesRunInBlocks) {
  std::vector<double> x(1000);
  for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<double>(i % 17);
  GraphBuilder b;
  const Value c = b.constant(Tensor::from_values<double>(ElementType::Float32, {1000}, x));
  b.output("y", *b.apply(OpKind::Pad, {c}, {{"pads", std::vector<Index>{3, 2}}}));
  auto y = interpret(b.build(), {});
  ASSERT_TRUE(y.ok()) << y.error().message;
  const std::vector<double> values = (*y)[0].to_doubles();
  ASSERT_EQ(values.size(), 1005u);
  for (size_t i = 0; i < values.size(); i++) EXPECT_EQ(values[i], i < 3 || i >= 1003 ? 0 : x[i - 3]);
}

TEST(Interpreter, SaysWhatIsWrong) {
  auto graph = parse_graph(
      "graph g\ninput x : f32[2]\nconstant i = i64[1] {5}\ny = Gather(x, i)\nconstant j = i64[2] {0, 5}\nz = Gather(x, "
      "j)\noutput y = z\nend");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  auto missing = interpret(*graph, {});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message, "input x is missing");
  auto shape = interpret(*graph, {{"x", Tensor::from_values<double>(ElementType::Float32, {3}, {1, 2, 3})}});
  ASSERT_FALSE(shape.ok());
  EXPECT_EQ(shape.error().message, "input x is f32[3], expected f32[2]");
  auto bounds = interpret(*graph, {{"x", Tensor::from_values<double>(ElementType::Float32, {2}, {1, 2})}});
  ASSERT_FALSE(bounds.ok());
  EXPECT_NE(bounds.error().message.find("index 5 is out of bounds for an extent of 2"), std::string::npos)
      << bounds.error().message;
}

TEST(Interpreter, ATensorBeyondAllMemoryIsAnError) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer ends the program where operator new would throw";
#endif
  for (const char* shape : {"1099511627776,1048576", "4294967296,4294967296", "1073741824,1073741824,16"}) {
    auto graph = parse_graph("graph g\ny = ConstantOfShape() {shape=[" + std::string(shape) + "]}\noutput y = y\nend");
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    auto outputs = interpret(*graph, {});
    ASSERT_FALSE(outputs.ok());
    EXPECT_NE(outputs.error().message.find("there is no memory for a tensor of f32["), std::string::npos)
        << outputs.error().message;
  }
}

// Beyond 2^53 no double holds them: each operator in 64 bits, with a sign and without.
TEST(Interpreter, ComputesWideIntegersExactly) {
  constexpr uint64_t kLarge = (uint64_t{1} << 63) + 5, kSmall = (uint64_t{1} << 40) + 1;
  constexpr auto kSigned = static_cast<int64_t>(kLarge);
  struct Case {
    OpKind op;
    uint64_t expected_unsigned;
    int64_t expected_signed;
  };
  const Case cases[] = {
      {OpKind::Div, kLarge / kSmall, kSigned / static_cast<int64_t>(kSmall)},
      {OpKind::Mod, kLarge % kSmall,
       kSigned % static_cast<int64_t>(kSmall) + static_cast<int64_t>(kSmall)},  // of the divisor's sign
      {OpKind::Max, kLarge, static_cast<int64_t>(kSmall)},
      {OpKind::Min, kSmall, kSigned},
      {OpKind::Less, 0, 1},
      {OpKind::Mul, kLarge * kSmall, static_cast<int64_t>(kLarge * kSmall)},
  };
  for (const auto& [op, expected_unsigned, expected_signed] : cases) {
    for (const ElementType type : {ElementType::UInt64, ElementType::Int64}) {
      GraphBuilder b;
      const auto number = [&](uint64_t value) {
        return b.constant(Tensor::from_values<int64_t>(type, {1}, {static_cast<int64_t>(value)}));
      };
      const auto y = b.add(op, {number(kLarge), number(kSmall)});
      ASSERT_TRUE(y.ok()) << y.error().message;
      const auto value = evaluate_constant({*y, 0});
      ASSERT_TRUE(value.ok()) << value.error().message;
      const int64_t expected = type == ElementType::UInt64 ? static_cast<int64_t>(expected_unsigned) : expected_signed;
      EXPECT_EQ(value->to_ints(), std::vector<int64_t>{expected}) << op_info(op).name << " of " << to_string(type);
    }
  }
}

// Neighbours that are one number as doubles.
TEST(Interpreter, TellsNeighboursAmongWideIntegers) {
  for (const ElementType type : {ElementType::Int64, ElementType::UInt64}) {
    const uint64_t low = type == ElementType::UInt64 ? uint64_t{1} << 63 : uint64_t{1} << 53;
    const auto value_of = [&](OpKind op, bool swapped) {
      GraphBuilder b;
      const auto number = [&](uint64_t value) {
        return b.constant(Tensor::from_values<int64_t>(type, {}, {static_cast<int64_t>(value)}));
      };
      const Value first = number(low + (swapped ? 1 : 0)), second = number(low + (swapped ? 0 : 1));
      const auto value = evaluate_constant({*b.add(op, {first, second}), 0});
      EXPECT_TRUE(value.ok());
      return value.ok() ? static_cast<uint64_t>(value->to_ints()[0]) : 0;
    };
    EXPECT_EQ(value_of(OpKind::Less, false), 1u) << to_string(type);
    EXPECT_EQ(value_of(OpKind::Less, true), 0u) << to_string(type);
    EXPECT_EQ(value_of(OpKind::Equal, false), 0u) << to_string(type);
    EXPECT_EQ(value_of(OpKind::Max, false), low + 1) << to_string(type);
    EXPECT_EQ(value_of(OpKind::Max, true), low + 1) << to_string(type);
    EXPECT_EQ(value_of(OpKind::Min, false), low) << to_string(type);
    EXPECT_EQ(value_of(OpKind::Sub, true), 1u) << to_string(type);
  }
}

// Reductions and casts to numbers of other kinds look at the sign too.
TEST(Interpreter, ReducesAndConvertsWideIntegersExactly) {
  constexpr uint64_t kLarge = (uint64_t{1} << 63) + 4096;
  GraphBuilder b;
  const Value x =
      b.constant(Tensor::from_values<int64_t>(ElementType::UInt64, {3}, {static_cast<int64_t>(kLarge), 7, INT64_MAX}));
  const auto number = [](const Result<NodePtr>& node) {
    const auto tensor = evaluate_constant({*node, 0});
    return tensor.ok() ? tensor->to_doubles()[0] : NAN;
  };
  EXPECT_EQ(number(b.add(OpKind::ReduceMin, {x}, {{"axes", std::vector<Index>{0}}})), 7);
  EXPECT_EQ(number(b.add(OpKind::ReduceMax, {x}, {{"axes", std::vector<Index>{0}}})), static_cast<double>(kLarge));
  EXPECT_EQ(number(b.add(OpKind::Cast, {x}, {{"to", Index(11)}})), static_cast<double>(kLarge));
}

}  // namespace
}  // namespace gopt
