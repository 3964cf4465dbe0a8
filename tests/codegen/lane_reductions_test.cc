// Generated CPU kernels whose reductions are kept for each lane, and loops that no such reduction knows.
#include <gtest/gtest.h>

#include "batch.h"
#include "text_files.h"

namespace gopt {
namespace {

struct Row {
  const char *name, *text;
};
constexpr Row kRows[] = {
    {"wide", "input x : f32[1,40,4096]\na = Softmax(x) {axis=1}\noutput y = a"},
    {"first", "input x : f32[21,5000]\na = LogSoftmax(x) {axis=0}\noutput y = a"},
    {"image", "input x : f32[1,19,72,64]\na = Softmax(x) {axis=1}\noutput y = a"},
    {"odd", "input x : f32[1,33,4219]\na = Softmax(x) {axis=1}\nb = Neg(a)\noutput y = b"},
    {"few_lanes", "input x : f32[1,400,7]\na = Softmax(x) {axis=1}\noutput y = a"},
    {"some_lanes", "input x : f32[500,48]\na = LogSoftmax(x) {axis=0}\noutput y = a"},
    {"images", "input x : f32[3,21,2050]\na = Softmax(x) {axis=1}\noutput y = a"},
    {"within", "input x : f32[1,10,3,600]\na = Softmax(x) {axis=1}\noutput y = a"},
};

std::vector<BatchCase> cases() {
  std::vector<BatchCase> all;
  for (const Row& row : kRows) all.push_back(make_case(row.name, row.text, 11));
  return all;
}

std::string kernels_of(const BatchCase& c, int threads) {
  LayoutCosts costs(false);
  const auto plan = make_plan(c.graph, {TargetKind::Cpu, threads}, costs);
  if (!plan.ok()) return plan.error().message;
  const auto code = emit(*plan);
  return code.ok() ? text_of(*code, "kernels_") : code.error().message;
}

// The last loop of all is the one that stores; arrays over lanes stand before it, outside of it.
TEST(LaneReductions, AreComputedOnceForAllThatReadThem) {
  for (const int threads : {1, 2, 4})
    for (const BatchCase& c : cases()) {
      const std::string text = kernels_of(c, threads);
      const size_t store = text.rfind("out["),
                   loop = text.rfind("for (int64_t i", text.rfind("for (int64_t i", store) - 1),
                   array = text.rfind("alignas(64) float a"), reduction = text.rfind("for (int64_t r");
      ASSERT_NE(loop, std::string::npos) << c.name << ", " << threads << " threads\n" << text;
      ASSERT_NE(reduction, std::string::npos) << c.name << "\n" << text;
      EXPECT_LT(reduction, loop) << c.name << ", " << threads << " threads\n" << text;
      if (array != std::string::npos) {
        EXPECT_LT(array, loop) << c.name << ", " << threads << " threads\n" << text;
      }
    }
}

TEST(LaneReductions, AgreeWithTheInterpreter) {
  for (const int threads : {1, 2, 3}) {
    LayoutCosts costs(false);
    for (const std::string& wrong :
         run_batch(cases(), costs, "lanes" + std::to_string(threads), {TargetKind::Cpu, threads}))
      ADD_FAILURE() << wrong;
  }
}

}  // namespace
}  // namespace gopt
