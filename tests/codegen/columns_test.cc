// Generated CUDA kernels that reduce across the lines of memory.
#include <gtest/gtest.h>

#include "cuda_device.h"

namespace gopt {
namespace {

// What the kernel of a graph reduces by: columns of so many rows, or none.
struct Row {
  const char *name, *text, *word;
};
constexpr Row kRows[] = {
    {"sums", "input x : f32[3,64,96]\na = ReduceSum(x) {axes=[1], keepdims=1}\noutput y = a", "gopt_column_reduce<8>"},
    {"halves", "input x : f16[3,64,96]\na = ReduceL2(x) {axes=[1], keepdims=1}\noutput y = a",
     "gopt_column_reduce<16>"},
    {"many", "input x : f32[4,40,4225]\na = ReduceMax(x) {axes=[1], keepdims=1}\noutput y = a",
     "gopt_column_reduce<32>"},
    // Rows that fill no block; longer than what is unrolled.
    {"odd", "input x : f32[700,37]\na = ReduceMean(x) {axes=[0], keepdims=0}\noutput y = a", "gopt_column_reduce<8>"},
    {"planes", "input x : f32[2,40,7,9]\na = ReduceMean(x) {axes=[1], keepdims=1}\nb = Tanh(a)\noutput y = b",
     "gopt_column_reduce<8>"},
    {"softmax", "input x : f32[2,40,53]\na = Softmax(x) {axis=1}\noutput y = a", "gopt_column_reduce<8>"},
    {"normalized",
     "input x : f32[2,48,5,7]\ninput w1 : f32[1,48,1,1]\nm = ReduceMean(x) {axes=[1]}\nd = Sub(x, m)\ns = Mul(d, "
     "d)\nv = ReduceMean(s) {axes=[1]}\nr = Sqrt(v)\nn = Div(d, r)\na = Mul(n, w1)\noutput y = a",
     "gopt_column_reduce<8>"},
    {"weighted",
     "input x : f32[2,40,24]\ninput w1 : f32[1,40,1]\na = Mul(x, w1)\nb = ReduceSum(a) {axes=[1], "
     "keepdims=1}\noutput y = b",
     "gopt_column_reduce<8>"},
    {"two", "input x : f32[3,20,8,64]\na = ReduceSum(x) {axes=[1,2], keepdims=0}\noutput y = a",
     "gopt_column_reduce<8>"},
    // Along lines; a part of each sum along them; too few beside each other.
    {"lines", "input x : f32[5,97]\na = ReduceSum(x) {axes=[1], keepdims=1}\noutput y = a", ""},
    {"both", "input x : f32[40,5,33]\na = ReduceSum(x) {axes=[0,2], keepdims=1}\noutput y = a", ""},
    {"few", "input x : f32[9,64,4]\na = ReduceSum(x) {axes=[1], keepdims=1}\noutput y = a", ""},
    {"apart",
     "input x : f32[9,64,33]\ns = Slice(x) {starts=[0], ends=[33], axes=[2], steps=[2]}\na = ReduceSum(s) "
     "{axes=[1], keepdims=1}\noutput y = a",
     ""},
};

// Sums of whole numbers, eight bytes each, in one kernel: each has its own, and a block's memory has room for six such.
std::string many_sums() {
  constexpr int kSums = 7;
  std::string inputs, sums, all = "s0";
  for (int k = 0; k < kSums; k++) {
    const std::string own = std::to_string(k);
    inputs += "input x" + own + " : i32[3,64,96]\n";
    sums += "s" + own + " = ReduceSum(x" + own + ") {axes=[1], keepdims=1}\n";
    if (k > 0) sums += "a" + own + " = Add(" + all + ", s" + own + ")\n", all = "a" + own;
  }
  return inputs + sums + "output y = " + all;
}

BatchCase case_of(const Row& row) { return make_case(row.name, row.text, 7); }

TEST(Columns, AreTakenWhereRowsLieBesideEachOther) {
  for (const Row& row : kRows) expect_word_in_kernels(case_of(row), row.word, "gopt_column_reduce");
}

TEST(Columns, AgreeWithTheInterpreter) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  for (const Precision precision : {Precision::Fp32, Precision::Fp16, Precision::Bf16}) {
    if (!obstacles().run.empty() && precision != Precision::Fp32) continue;  // without a device they are compiled alone
    LayoutCosts costs(false);
    expect_agreement_on_device(column_cases(), costs, "columns", precision);
  }
}

}  // namespace

std::vector<BatchCase> column_cases() {
  std::vector<BatchCase> cases;
  for (const Row& row : kRows) cases.push_back(case_of(row));
  cases.push_back(make_case("many_sums", many_sums(), 7));
  return cases;
}

}  // namespace gopt
