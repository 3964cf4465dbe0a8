// Generated CUDA kernels that read across the order in which they write.
#include <gtest/gtest.h>

#include "cuda_device.h"

namespace gopt {
namespace {

constexpr const char* kSquares = "square < ";
// Whether the kernel of a graph goes by squares.
struct Turned {
  const char *name, *text, *word;
};
constexpr Turned kTurned[] = {
    {"matrix", "input x : f32[257,263]\na = Transpose(x) {perm=[1,0]}\noutput y = a", kSquares},
    {"halves", "input x : f16[3,130,200]\na = Transpose(x) {perm=[0,2,1]}\noutput y = a", kSquares},
    {"pixels", "input x : f32[2,40,30,33]\na = Transpose(x) {perm=[0,2,3,1]}\noutput y = a", kSquares},
    {"back", "input x : f32[2,30,33,40]\na = Transpose(x) {perm=[0,3,1,2]}\noutput y = a", kSquares},
    {"reversed", "input x : f32[17,20,9,24]\na = Transpose(x) {perm=[3,2,1,0]}\noutput y = a", kSquares},
    {"integers", "input x : i64[260,270]\na = Transpose(x) {perm=[1,0]}\noutput y = a", kSquares},
    {"flags", "input x : bool[260,270]\na = Transpose(x) {perm=[1,0]}\noutput y = a", kSquares},
    {"narrower", "input x : f32[260,270]\na = Transpose(x) {perm=[1,0]}\nb = Cast(a) {to=10}\noutput y = b", kSquares},
    // Beside what lies as the result does, and what is one number a line.
    {"computed",
     "input x : f32[2,130,270]\ninput z : f32[2,270,130]\ninput w1 : f32[130]\na = Transpose(x) {perm=[0,2,1]}\nb = "
     "Add(a, z)\nc = Mul(b, w1)\nd = Tanh(c)\noutput y = d",
     kSquares},
    {"two",
     "input x : f32[2,130,270]\ninput z : f32[2,130,270]\na = Transpose(x) {perm=[0,2,1]}\nb = Transpose(z) "
     "{perm=[0,2,1]}\nc = Sigmoid(b)\nd = Mul(a, c)\noutput y = d",
     kSquares},
    {"part",
     "input x : f32[300,280]\ns = Slice(x) {starts=[5,3], ends=[290,279], axes=[0,1]}\na = Transpose(s) "
     "{perm=[1,0]}\noutput y = a",
     kSquares},
    // What a border guards; few elements; lines that stay lines.
    {"bordered", "input x : f32[280,290]\na = Transpose(x) {perm=[1,0]}\nb = Pad(a) {pads=[1,2,3,4]}\noutput y = b",
     ""},
    {"few", "input x : f32[100,110]\na = Transpose(x) {perm=[1,0]}\noutput y = a", ""},
    {"lines", "input x : f32[40,50,64]\na = Transpose(x) {perm=[1,0,2]}\noutput y = a", ""},
    {"narrow", "input x : f32[8,20000]\na = Transpose(x) {perm=[1,0]}\noutput y = a", ""},
};

BatchCase case_of(const Turned& turned) { return make_case(turned.name, turned.text, 11); }

TEST(Squares, AreTakenWhereReadsGoAcross) {
  for (const Turned& turned : kTurned) expect_word_in_kernels(case_of(turned), turned.word, kSquares);
}

TEST(Squares, AgreeWithTheInterpreter) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  for (const Precision precision : {Precision::Fp32, Precision::Fp16, Precision::Bf16}) {
    if (!obstacles().run.empty() && precision != Precision::Fp32) continue;  // without a device they are compiled alone
    LayoutCosts costs(false);
    expect_agreement_on_device(square_cases(), costs, "squares", precision);
  }
}

}  // namespace

std::vector<BatchCase> square_cases() {
  std::vector<BatchCase> cases;
  for (const Turned& turned : kTurned) cases.push_back(case_of(turned));
  return cases;
}

}  // namespace gopt
