// Values of terms against the interpreter: a tape's approximate numbers are those that the definitions give, and its
// residues are the same numbers modulo the prime.
#include "tape.h"

#include <gtest/gtest.h>

#include <random>

#include "exponent.h"
#include "gopt/interpreter.h"

namespace gopt::generator {
namespace {

using Ints = std::vector<Index>;

struct Row {
  std::string name;
  OpKind op;
  Attributes attributes;
  std::vector<std::vector<int64_t>> dims;
  int output = 0, outputs = 1;
  bool is_rational = true;  // residues are the numbers themselves
};
std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

class TapeTest : public testing::TestWithParam<Row> {};

// numerator / denominator for a small denominator whose quotient has this residue; nothing where there is none.
bool is_residue_of(uint64_t residue, double value) {
  for (int64_t denominator : {1, 2, 3, 4, 6, 8, 9, 12, 16}) {
    const double scaled = value * static_cast<double>(denominator) * 65536;
    const auto numerator = static_cast<int64_t>(std::llround(scaled));
    if (std::abs(scaled - static_cast<double>(numerator)) > 1e-3) continue;
    const Scalar exact = scalar_from_ratio({numerator, numerator, numerator, numerator}, denominator * 65536);
    if (exact.residue[0] == residue) return true;
  }
  return false;
}

TEST_P(TapeTest, AgreesWithTheInterpreter) {
  const Row& row = GetParam();
  std::mt19937_64 random(5);
  GraphBuilder builder;
  std::vector<TensorType> types;
  std::vector<Value> inputs;
  std::vector<Values> values;
  std::map<std::string, Tensor> tensors;
  for (const auto& dims : row.dims) {
    types.push_back({ElementType::Float32, Shape(dims.begin(), dims.end())});
    const std::string name = "x" + std::to_string(inputs.size());
    inputs.push_back(builder.input(name, types.back()));
    std::vector<double> numbers;
    Values own;
    for (int64_t i = 0; i < element_count(dims); i++) {
      const auto numerator = static_cast<int64_t>(random() % 129) - 64;
      const int64_t nonzero = numerator == 0 ? 1 : numerator;
      own.push_back(scalar_from_ratio({nonzero, nonzero, nonzero, nonzero}, 16));
      numbers.push_back(static_cast<double>(nonzero) / 16);
    }
    values.push_back(std::move(own));
    tensors[name] = Tensor::from_values(ElementType::Float32, dims, numbers);
  }
  const auto node = builder.add(row.op, inputs, row.attributes, row.outputs);
  ASSERT_TRUE(node.ok()) << node.error().message;
  builder.output("y", {*node, row.output});
  const auto expected = interpret(builder.build(), tensors);
  ASSERT_TRUE(expected.ok()) << expected.error().message;

  const auto tape =
      Tape::make({row.op, row.attributes, static_cast<int>(types.size()), row.outputs}, types, row.output);
  ASSERT_TRUE(tape.ok()) << tape.error().message;
  std::vector<const Values*> arguments;
  for (const Values& own : values) arguments.push_back(&own);
  const auto result = tape->run(arguments);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(tape->dims(), expected->front().dims());
  const auto numbers = expected->front().to_doubles();
  ASSERT_EQ(result->size(), numbers.size());
  for (size_t i = 0; i < numbers.size(); i++) {
    EXPECT_NEAR((*result)[i].approximate[0], numbers[i], 1e-5 * (1 + std::abs(numbers[i])));
    if (row.is_rational) {
      EXPECT_TRUE(is_residue_of((*result)[i].residue[0], (*result)[i].approximate[0])) << numbers[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, TapeTest,
    testing::Values(
        Row{"Add", OpKind::Add, {}, {{2, 3}, {3}}}, Row{"Relu", OpKind::Relu, {}, {{7}}},
        Row{"Abs", OpKind::Abs, {}, {{7}}}, Row{"Max", OpKind::Max, {}, {{5}, {5}}},
        Row{"MatMul", OpKind::MatMul, {}, {{2, 3, 4}, {4, 2}}},
        Row{"Conv", OpKind::Conv, {{"pads", Ints{1, 0, 1, 2}}, {"strides", Ints{2, 1}}}, {{1, 2, 5, 4}, {3, 2, 3, 2}}},
        Row{"MaxPool", OpKind::MaxPool, {{"kernel_shape", Ints{2, 3}}, {"pads", Ints{1, 1, 0, 1}}}, {{1, 2, 4, 5}}},
        Row{"AveragePool", OpKind::AveragePool, {{"kernel_shape", Ints{3, 2}}}, {{1, 2, 4, 5}}},
        Row{"ReduceMean", OpKind::ReduceMean, {{"axes", Ints{1}}}, {{2, 3}}},
        Row{"Transpose", OpKind::Transpose, {{"perm", Ints{2, 0, 1}}}, {{2, 3, 4}}},
        Row{"SecondPartOfSplit", OpKind::Split, {{"axis", Index(1)}, {"split", Ints{1, 2}}}, {{2, 3}}, 1, 2},
        Row{"Slice", OpKind::Slice, {{"starts", Ints{1}}, {"ends", Ints{3}}, {"axes", Ints{0}}}, {{4, 2}}},
        Row{"Where", OpKind::Clip, {{"min", -1.0}, {"max", 0.5}}, {{9}}},
        Row{"Sigmoid", OpKind::Sigmoid, {}, {{6}}, 0, 1, false},
        Row{"Softmax", OpKind::Softmax, {{"axis", Index(-1)}}, {{2, 4}}, 0, 1, false}),
    [](const testing::TestParamInfo<Row>& info) { return info.param.name; });

TEST(Tape, HasNoValueWhereADivisionIsByZero) {
  const TensorType type{ElementType::Float32, Shape{2}};
  const auto tape = Tape::make({OpKind::Div, {}, 2}, {type, type}, 0);
  ASSERT_TRUE(tape.ok()) << tape.error().message;
  const Values ones{scalar_from_double(1), scalar_from_double(1)}, mixed{scalar_from_double(1), scalar_from_double(0)};
  EXPECT_TRUE(tape->run<Scalar>({&mixed, &ones}).has_value());
  EXPECT_FALSE(tape->run<Scalar>({&ones, &mixed}).has_value());
}

TEST(Scalar, ArithmeticIsThatOfAField) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 100; i++) {
    const uint64_t a = random() % kPrime, b = random() % kPrime, c = random() % kPrime;
    EXPECT_EQ(multiply(a, multiply(b, c)), multiply(multiply(a, b), c));
    if (a != 0) {
      EXPECT_EQ(multiply(a, inverse(a)), 1u);
    }
  }
  const Scalar third = scalar_from_ratio({1, 1, 1, 1}, 3), three = scalar_from_double(3);
  EXPECT_EQ(multiply(third, three).residue[0], 1u);
  EXPECT_EQ(add(scalar_from_double(-2.5), scalar_from_double(2.5)).residue[0], 0u);
}

// The value of a function of one number, or of two.
Scalar value_of(OpKind op, const std::vector<Scalar>& numbers, bool follows_exponents) {
  const std::vector<TensorType> types(numbers.size(), TensorType{ElementType::Float32, Shape{}});
  const auto tape = Tape::make({op, {}, static_cast<int>(numbers.size()), 1}, types, 0, follows_exponents);
  GOPT_CHECK(tape.ok(), "the operator is defined");
  std::vector<Values> values;
  std::vector<const Values*> inputs;
  for (const Scalar& number : numbers) values.push_back({number});
  for (const Values& own : values) inputs.push_back(&own);
  return tape->run(inputs)->front();
}

Scalar number(int64_t seed) { return scalar_from_ratio({seed, -3 * seed, 7 - seed, 5 * seed + 1}, 256); }

TEST(Exponents, LawsOfTheExponentialFunctionHold) {
  const auto apply = [](OpKind op, const std::vector<Scalar>& numbers) { return value_of(op, numbers, true); };
  for (int64_t seed = 1; seed < 200; seed += 7) {
    const Scalar x = number(seed), y = number(40 - seed), one = scalar_from_double(1), two = scalar_from_double(2);
    const auto exp = [&](const Scalar& a) { return apply(OpKind::Exp, {a}); };
    EXPECT_EQ(exp(apply(OpKind::Add, {x, y})).residue, apply(OpKind::Mul, {exp(x), exp(y)}).residue);
    EXPECT_EQ(exp(apply(OpKind::Sub, {x, y})).residue, apply(OpKind::Div, {exp(x), exp(y)}).residue);
    EXPECT_EQ(exp(apply(OpKind::Mul, {two, x})).residue, apply(OpKind::Mul, {exp(x), exp(x)}).residue);
    EXPECT_EQ(exp(apply(OpKind::Mul, {apply(OpKind::Div, {x, two}), two})).residue, exp(x).residue);
    EXPECT_EQ(exp(scalar_from_double(0)).residue, one.residue);
    EXPECT_EQ(apply(OpKind::Tanh, {x}).residue,
              apply(OpKind::Div, {apply(OpKind::Sinh, {x}), apply(OpKind::Cosh, {x})}).residue);
    EXPECT_NE(exp(x).residue, exp(y).residue);
    EXPECT_NE(exp(apply(OpKind::Mul, {x, y})).residue, apply(OpKind::Mul, {exp(x), exp(y)}).residue);
  }
}

// A quotient whose divisor is 0 modulo the order has an exponent all the same, one that depends on its value alone.
TEST(Exponents, DivisorsThatAreZeroModuloTheOrder) {
  const Scalar x = number(5), order = scalar_from_double(kExponentOrder);
  const Scalar quotient = value_of(OpKind::Div, {x, order}, true);
  EXPECT_EQ(value_of(OpKind::Exp, {quotient}, true).residue, value_of(OpKind::Exp, {quotient}, true).residue);
  EXPECT_NE(value_of(OpKind::Exp, {quotient}, true).residue, value_of(OpKind::Exp, {x}, true).residue);
}

TEST(Exponents, SineIsOddAndCosineEven) {
  const Scalar x = number(9), opposite = value_of(OpKind::Neg, {x}, false);
  const auto of = [](OpKind op, const Scalar& a) { return value_of(op, {a}, false); };
  EXPECT_EQ(of(OpKind::Sin, opposite).residue, of(OpKind::Neg, of(OpKind::Sin, x)).residue);
  EXPECT_EQ(of(OpKind::Cos, opposite).residue, of(OpKind::Cos, x).residue);
  EXPECT_EQ(of(OpKind::Sin, scalar_from_double(0)).residue, scalar_from_double(0).residue);
  EXPECT_NE(of(OpKind::Sin, x).residue, of(OpKind::Cos, x).residue);
}

}  // namespace
}  // namespace gopt::generator
