// The text of kernels for a few small graphs, as it was reviewed. A difference shows change, not error.
// To refresh after reviewing: GOPT_REFRESH_GOLDEN=1 codegen_test --gtest_filter='Golden*', then read the diff.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "batch.h"
#include "text_files.h"

namespace gopt {
namespace {

struct Row {
  const char* name;
  const char* text;
};
std::ostream& operator<<(std::ostream& os, const Row& row) { return os << row.name; }

class GoldenTest : public testing::TestWithParam<Row> {};

TEST_P(GoldenTest, KernelsAreAsReviewed) {
  const BatchCase c = make_case(GetParam().name, GetParam().text, 1);
  LayoutCosts costs(false);
  auto plan = make_plan(c.graph, {TargetKind::Cpu, 2}, costs);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  auto code = emit(*plan);
  ASSERT_TRUE(code.ok()) << code.error().message;
  const std::string text = text_of(*code, "kernels_");
  const std::string path = std::string(GOPT_GOLDEN_FOLDER) + "/" + GetParam().name + ".cc";
  if (getenv("GOPT_REFRESH_GOLDEN")) write_file(path, text);
  EXPECT_EQ(text, read_file(path)) << "see the opening comment of golden_test.cc";
}

const Row kRows[] = {
    {"softmax", "input x : f32[64,12,128]\ny = Softmax(x) {axis=-1}\noutput y = y"},
    {"max_pool_blocked",
     "input x : f32[1,3,56,56]\ninput w1 : f32[32,3,1,1]\na = Conv(x, w1)\nb = MaxPool(a) {kernel_shape=[3,3], "
     "strides=[2,2], pads=[1,1,1,1]}\n"
     "c = Exp(b)\noutput y = c"},
    {"matrix_vector", "input x : f32[1,512]\ninput w1 : f32[512,512]\na = MatMul(x, w1)\ny = Tanh(a)\noutput y = y"},
    {"transpose_reshape",
     "input x : f32[128,768]\na = Reshape(x) {shape=[128,12,64]}\nb = Transpose(a) {perm=[1,0,2]}\nc = Exp(b)\noutput "
     "y = c"},
};
INSTANTIATE_TEST_SUITE_P(Kernels, GoldenTest, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gopt
