// The largest number of a row is one of its numbers as they are rounded: a product that is computed again where the
// largest is taken from it must not keep more digits then, as one instruction for both would.
#include <gtest/gtest.h>

#include "batch.h"

namespace gopt {
namespace {

struct Row {
  const char *name, *text;  // # stands for the rows' length
};
constexpr Row kRows[] = {
    {"last",
     "input x : f32[4,#]\nconstant c = f32[] {0.35355338}\na = Mul(x, c)\nb = Softmax(a) {axis=1}\noutput y = b"},
    {"first", "input x : f32[#,4]\nconstant c = f32[] {0.9}\na = Mul(x, c)\nb = Softmax(a) {axis=0}\noutput y = b"},
    {"logarithms",
     "input x : f32[4,#]\nconstant c = f32[] {0.7}\na = Mul(x, c)\nb = LogSoftmax(a) {axis=1}\noutput y = b"},
    {"log_of_sum",
     "input x : f32[4,#]\nconstant c = f32[] {0.7}\na = Mul(x, c)\n"
     "b = ReduceLogSumExp(a) {axes=[1]}\nd = ReduceMax(a) {axes=[1]}\ne = Sub(b, d)\noutput y = e"},
    {"masked",
     "input x : f32[4,#]\ninput m : f32[4,1]\nconstant c = f32[] {0.35355338}\ns = Add(x, m)\na = Mul(s, c)\n"
     "b = Softmax(a) {axis=1}\noutput y = b"},
    {"divided", "input x : f32[4,#]\nconstant c = f32[] {2.83}\na = Div(x, c)\nb = Softmax(a) {axis=1}\noutput y = b"},
    {"squares", "input x : f32[4,#]\na = Mul(x, x)\nb = Softmax(a) {axis=1}\noutput y = b"},
    {"differences",
     "input x : f32[4,#]\nconstant c = f32[] {0.7}\na = Mul(x, c)\nb = ReduceMax(a) {axes=[1]}\n"
     "d = Sub(a, b)\ne = Exp(d)\noutput y = e"},
    {"negated",
     "input x : f32[4,#]\nconstant c = f32[] {0.7}\na = Mul(x, c)\nb = ReduceMax(a) {axes=[1]}\n"
     "d = Neg(b)\ne = Add(d, a)\nf = Exp(e)\noutput y = f"},
    {"chosen",
     "input x : f32[4,#]\ninput m : bool[4,1]\nconstant c = f32[] {0.7}\nconstant z = f32[] {-1e9}\na = Mul(x, c)\n"
     "b = Where(m, a, z)\nd = Softmax(b) {axis=1}\noutput y = d"},
    {"padded",
     "input x : f32[4,#]\nconstant c = f32[] {0.7}\nconstant p = i64[4] {0, 0, 0, 5}\nconstant z = f32[] {-3e38}\na = "
     "Mul(x, c)\n"
     "b = Pad(a, p, z)\nd = Softmax(b) {axis=1}\noutput y = d"},
    {"shifted",
     "input x : f32[4,#]\ninput m : f32[4,1]\nconstant c = f32[] {0.7}\na = Mul(x, c)\nb = Add(a, m)\n"
     "d = ReduceMax(b) {axes=[0,1]}\ne = Equal(b, d)\nf = Cast(e) {to=1}\ng = ReduceMax(f) {axes=[0,1]}\n"
     "output y = g"},
    {"least",
     "input x : f32[4,#]\nconstant c = f32[] {0.7}\na = Mul(x, c)\nb = ReduceMin(a) {axes=[1]}\n"
     "d = Sub(b, a)\ne = Exp(d)\noutput y = e"},
};

std::vector<BatchCase> cases() {
  std::vector<BatchCase> all;
  for (const Row& row : kRows)
    for (const int length : {7, 300, 4500})
      for (const double number : {-1e30, -3e38, 3e7, 1.7e18}) {
        if (std::string(row.name) == "squares" && number * number > 3e38) continue;
        std::string text = row.text;
        text.replace(text.find('#'), 1, std::to_string(length));
        all.push_back(make_case(row.name + std::to_string(all.size()), text, all.size() + 1));
        Tensor& x = all.back().inputs.at("x");  // a line is as it is drawn
        std::vector<double> numbers = x.to_doubles();
        const bool is_first = x.dims()[1] == 4;
        for (size_t k = 0; k < numbers.size(); k++)
          if ((is_first ? k % 4 : k / static_cast<size_t>(length)) > 0) numbers[k] = number;
        x = Tensor::from_values(ElementType::Float32, x.dims(), numbers);
      }
  return all;
}

TEST(RoundedProducts, LargestNumbersAreAmongThem) {
  for (const int threads : {1, 2})
    for (const bool plain : {true, false})
      for (const std::string& wrong : run_batch(cases(), plain, {TargetKind::Cpu, threads})) ADD_FAILURE() << wrong;
}

}  // namespace
}  // namespace gopt
