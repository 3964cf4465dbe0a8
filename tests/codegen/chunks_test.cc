// Generated CUDA kernels that move neighbouring elements at once.
#include <gtest/gtest.h>

#include "cuda_device.h"

namespace gopt {
namespace {

// What of a graph's kernels is moved in chunks: the word that its text has, or none.
struct Row {
  const char *name, *text, *word;
};
constexpr Row kRows[] = {
    {"floats", "input x : f32[6,64]\na = Tanh(x)\noutput y = a", "gopt_chunk<float, 4>"},
    {"halves", "input x : f16[6,64]\na = Tanh(x)\noutput y = a", "gopt_chunk<gopt_half, 8>"},
    {"pairs", "input x : f32[6,6]\na = Tanh(x)\noutput y = a", "gopt_chunk<float, 4>"},
    {"columns", "input x : f32[7,4]\ninput z : f32[4]\na = Add(x, z)\noutput y = a", "gopt_chunk<float, 4> in1"},
    {"rows", "input x : f32[7,4]\ninput z : f32[7,1]\na = Mul(x, z)\noutput y = a", "gopt_chunk<float, 4> in0"},
    {"odd", "input x : f32[5,7]\ninput z : f32[5,1]\na = Add(x, z)\noutput y = a", ""},
    {"turned", "input x : f32[8,16]\na = Transpose(x) {perm=[1,0]}\noutput y = a", ""},
    // Short lines that come from everywhere are stored at once.
    {"last", "input x : f32[2,4,5,5]\na = Transpose(x) {perm=[0,2,3,1]}\noutput y = a", "gopt_chunk<float, 4> out"},
    // What lies outside is not read.
    {"padded", "input x : f32[4,8]\nconstant p = i64[4] {0, 4, 0, 4}\na = Pad(x, p)\noutput y = a", ""},
    {"integers", "input x : i64[4,8]\na = Add(x, x)\noutput y = a", ""},
    // Lines of two equal elements, several at once; lines of three fill no chunk.
    {"repeated", "input x : f32[3,5,6]\na = Repeat(x) {repeats=[1,2,2]}\noutput y = a", "gopt_chunk<float, 4> out"},
    {"repeated_halves", "input x : f16[3,5,8]\na = Repeat(x) {repeats=[1,1,2]}\nb = Neg(a)\noutput y = b",
     "gopt_chunk<gopt_half, 8> out"},
    {"repeated_of_few", "input x : f16[3,5,6]\na = Repeat(x) {repeats=[3,1,2]}\noutput y = a",
     "gopt_chunk<gopt_half, 4> out"},
    {"repeated_lines", "input x : f32[6,4,1]\na = Repeat(x) {repeats=[1,2,2]}\noutput y = a",
     "gopt_chunk<float, 4> out"},
    {"tripled", "input x : f32[5,8]\na = Repeat(x) {repeats=[1,3]}\noutput y = a", ""},
    // Parts that begin anywhere.
    {"parts",
     "input x : f32[4,67]\na = Slice(x) {starts=[3], ends=[67], axes=[1], steps=[1]}\nb = Tanh(a)\noutput y = b",
     "gopt_chunk<float, 4> in0"},
};

BatchCase case_of(const Row& row) { return make_case(row.name, row.text, 7); }

TEST(Chunks, AreMovedWhereTensorsLieAlike) {
  for (const Row& row : kRows) expect_word_in_kernels(case_of(row), row.word, "gopt_chunk");
}

TEST(Chunks, AgreeWithTheInterpreter) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
  const std::vector<BatchCase> cases = chunk_cases();
  for (const Precision precision : {Precision::Fp32, Precision::Fp16, Precision::Bf16}) {
    LayoutCosts costs(false);
    expect_agreement_on_device(cases, costs, "chunks", precision);
  }
}

}  // namespace

std::vector<BatchCase> chunk_cases() {
  std::vector<BatchCase> cases;
  for (const Row& row : kRows) cases.push_back(case_of(row));
  return cases;
}

}  // namespace gopt
