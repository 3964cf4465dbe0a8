// Which graphs may be cut into rows along a symbolic extent.
#include "gopt/rows.h"

#include <gtest/gtest.h>

#include "gopt/text.h"

namespace gopt {
namespace {

std::optional<std::string> why_depends(const std::string& body) {
  const auto graph = parse_graph("graph rows\n" + body + "end\n");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message) << body;
  if (!graph.ok()) return "no graph";
  return why_rows_depend(*graph, symbol_atom("n"));
}

struct Row {
  const char *name, *body;
};
std::ostream& operator<<(std::ostream& os, const Row& row) { return os << row.name; }

class Independent : public testing::TestWithParam<Row> {};
TEST_P(Independent, RowsAreFoundToBe) { EXPECT_EQ(why_depends(GetParam().body).value_or(""), ""); }

class Mixed : public testing::TestWithParam<Row> {};
TEST_P(Mixed, RowsAreNotFoundIndependent) { EXPECT_TRUE(why_depends(GetParam().body)) << GetParam().body; }

const Row kIndependent[] = {
    {"Elementwise", "input x : f32[n,4]\ny = Tanh(x)\noutput y = y\n"},
    {"Shared", "input x : f32[n,4]\ninput s : f32[4]\ny = Mul(x, s)\noutput y = y\n"},
    {"Convolution", "input x : f32[n,3,8,8]\ninput w : f32[5,3,3,3]\ny = Conv(x, w) {pads=[1,1,1,1]}\noutput y = y\n"},
    {"Pooling", "input x : f32[n,3,8,8]\ny = MaxPool(x) {kernel_shape=[3,3], strides=[2,2]}\noutput y = y\n"},
    {"Product", "input x : f32[n,m,8]\ninput w : f32[8,3]\ny = MatMul(x, w)\noutput y = y\n"},
    {"ProductOfRows",
     "input x : f32[n,m,8]\nt = Transpose(x) {perm=[0,2,1]}\ns = MatMul(x, t)\ny = Softmax(s) {axis=-1}\noutput y = "
     "y\n"},
    {"Flattened", "input x : f32[n,m,8]\na = Reshape(x) {shape=[n*m,8]}\ny = Softmax(a) {axis=-1}\noutput y = y\n"},
    {"HeadsApartAndTogether",
     "input x : f32[n,m,12]\na = Reshape(x) {shape=[n,m,3,4]}\nb = Transpose(a) {perm=[0,2,1,3]}\nc = Exp(b)\nd = "
     "Transpose(c) {perm=[0,2,1,3]}\ny = Reshape(d) {shape=[n,m,12]}\noutput y = y\n"},
    {"OnAnotherAxisBetween",
     "input x : f32[n,m,8]\na = Transpose(x) {perm=[1,0,2]}\nb = Softmax(a) {axis=2}\ny = Transpose(b) "
     "{perm=[1,0,2]}\noutput y = y\n"},
    {"Embedding", "input i : i64[n,m]\ninput t : f32[100,8]\ny = Gather(t, i) {axis=0}\noutput y = y\n"},
    {"WithoutRows", "input x : f32[n,4]\ninput s : f32[4]\ny = Exp(x)\nz = Exp(s)\noutput y = y\noutput z = z\n"},
};
const Row kMixed[] = {
    {"SumOverRows", "input x : f32[n,4]\ny = ReduceSum(x) {axes=[0], keepdims=0}\noutput y = y\n"},
    {"SoftmaxOverRows", "input x : f32[n,4]\ny = Softmax(x) {axis=0}\noutput y = y\n"},
    {"CenteredByTheMean",
     "input x : f32[n,4]\nm = ReduceMean(x) {axes=[0], keepdims=1}\ny = Sub(x, m)\noutput y = y\n"},
    {"FirstRow", "input x : f32[n,4]\na = Slice(x) {starts=[0], ends=[1], axes=[0]}\ny = Add(x, a)\noutput y = y\n"},
    {"Interleaved", "input x : f32[n,4]\na = Reshape(x) {shape=[4,n]}\ny = Exp(a)\noutput y = y\n"},
    {"InterleavedTwice",
     "input x : f32[n,4]\na = Reshape(x) {shape=[4,n]}\nb = Softmax(a) {axis=0}\ny = Reshape(b) {shape=[n,4]}\noutput "
     "y "
     "= y\n"},
    {"RowsByRows", "input x : f32[n,4]\nt = Transpose(x) {perm=[1,0]}\ny = MatMul(x, t)\noutput y = y\n"},
    {"Twice", "input x : f32[n,4]\ny = Concat(x, x) {axis=0}\noutput y = y\n"},
    {"WhatMixesIsReadLater", "input x : f32[n,4]\na = Softmax(x) {axis=0}\nb = Exp(a)\ny = Add(b, x)\noutput y = y\n"},
    {"LastAxis", "input x : f32[n,4]\ny = Transpose(x) {perm=[1,0]}\noutput y = y\n"},
    {"InputOnAnotherAxis", "input x : f32[4,n]\ny = Transpose(x) {perm=[1,0]}\noutput y = y\n"},
    {"TwoAxes", "input x : f32[n,n]\ny = Exp(x)\noutput y = y\n"},
    {"RowsOfOthersByIndex", "input x : f32[n,4]\ninput i : i64[n]\ny = Gather(x, i) {axis=0}\noutput y = y\n"},
    {"HowManyThereAre", "input x : f32[n,4]\na = Shape(x)\ny = Exp(x)\noutput y = y\noutput a = a\n"},
};
const auto name_of = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Rows, Independent, testing::ValuesIn(kIndependent), name_of);
INSTANTIATE_TEST_SUITE_P(Rows, Mixed, testing::ValuesIn(kMixed), name_of);

TEST(Rows, AnotherExtentIsNoneOfRows) {
  const auto graph = parse_graph("graph rows\ninput x : f32[n,m]\ny = Softmax(x) {axis=1}\noutput y = y\nend\n");
  ASSERT_TRUE(graph.ok());
  EXPECT_FALSE(why_rows_depend(*graph, symbol_atom("n")));
  EXPECT_TRUE(why_rows_depend(*graph, symbol_atom("m")));
}

}  // namespace
}  // namespace gopt
