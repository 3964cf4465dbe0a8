// Generated CUDA kernels whose blocks look for the updates of a place (cuda/matches.h).
#include <gtest/gtest.h>

#include "cuda_device.h"

namespace gopt {
namespace {

constexpr const char* kWord = "gopt_matches<256>";

// What a kernel's text has, or has not.
struct Scattered {
  const char *name, *text, *word;
};
constexpr Scattered kScattered[] = {
    {"added",
     "input x : f32[4,40]\ninput p : i64[600,1]\ninput u : f32[600,40]\ny = ScatterAlong(x, p, u) {axis=0, "
     "reduction=\"add\"}\noutput y = y",
     kWord},
    {"multiplied",
     "input x : f32[4,7]\ninput p : i64[70,1]\ninput u : f32[70,7]\ny = ScatterAlong(x, p, u) {axis=0, "
     "reduction=\"mul\"}\noutput y = y",
     kWord},
    {"largest",
     "input x : f32[4,33]\ninput p : i64[300,1]\ninput u : f32[300,33]\ny = ScatterAlong(x, p, u) {axis=0, "
     "reduction=\"max\"}\noutput y = y",
     kWord},
    {"least",
     "input x : f32[3,4,5]\ninput p : i64[3,90,1]\ninput u : f32[3,90,5]\ny = ScatterAlong(x, p, u) {axis=1, "
     "reduction=\"min\"}\noutput y = y",
     kWord},
    // The last one of each place, where there is one.
    {"last",
     "input x : f32[6,40]\ninput p : i64[300,1]\ninput u : f32[300,40]\ny = ScatterAlong(x, p, u) {axis=0, "
     "reduction=\"none\"}\noutput y = y",
     kWord},
    {"last_of_integers",
     "input x : i64[2,6,3]\ninput p : i64[1,64,1]\ninput u : i64[2,64,3]\ny = ScatterAlong(x, p, u) {axis=1, "
     "reduction=\"none\"}\noutput y = y",
     kWord},
    // More beside each other than a block has threads; one alone; on both sides of the axis.
    {"wide",
     "input x : f16[3,600]\ninput p : i64[64,1]\ninput u : f16[64,600]\ny = ScatterAlong(x, p, u) {axis=0, "
     "reduction=\"add\"}\noutput y = y",
     kWord},
    {"flat",
     "input x : f32[5]\ninput p : i64[513]\ninput u : f32[513]\ny = ScatterAlong(x, p, u) {axis=0, "
     "reduction=\"add\"}\noutput y = y",
     kWord},
    {"between",
     "input x : i32[2,4,3]\ninput p : i64[1,80,1]\ninput u : i32[2,80,3]\ny = ScatterAlong(x, p, u) {axis=1, "
     "reduction=\"max\"}\noutput y = y",
     kWord},
    // Updates that are the same in all lanes, or in all updates: what is computed of them alone is computed before.
    {"rows_of_numbers",
     "input x : f32[6,40]\ninput p : i64[300,1]\ninput v : f32[300,1]\nu = Expand(v) {shape=[300,40]}\ny = "
     "ScatterAlong(x, p, u) {axis=0, reduction=\"add\"}\nr = Relu(y)\noutput y = r",
     kWord},
    {"one_row",
     "input x : f32[6,40]\ninput p : i64[300,1]\ninput v : f32[1,40]\nu = Expand(v) {shape=[300,40]}\ny = "
     "ScatterAlong(x, p, u) {axis=0, reduction=\"none\"}\noutput y = y",
     kWord},
    {"one_number",
     "input x : f32[6,40]\ninput p : i64[300,1]\ninput v : f32[300,1]\nu = Expand(v) {shape=[300,40]}\ny = "
     "ScatterAlong(x, p, u) {axis=0, reduction=\"none\"}\noutput y = y",
     kWord},
    // Places before the first and behind the last; in blocks of their own.
    {"beyond",
     "input x : f32[2,40]\ninput p : i64[300,1]\nconstant s = i64[] {1}\nconstant d = i64[] {2}\nq = Sub(p, s)\nt = "
     "Mul(q, d)\ninput u : f32[300,40]\ny = ScatterAlong(x, t, u) {axis=0, reduction=\"max\"}\noutput y = y",
     kWord},
    {"blocks",
     "input x : f32[3,4,36]\ninput p : i64[3,90,1]\ninput u : f32[3,90,36]\ny = ScatterAlong(x, p, u) {axis=1, "
     "reduction=\"add\"}\noutput y = y",
     kWord},
    // Another sum beside it, of what no place chooses.
    {"beside",
     "input a : f32[4,40]\ninput p : i64[70,1]\ninput u : f32[70,40]\ninput v : f32[4,40,8]\ny = ScatterAlong(a, p, u) "
     "{axis=0, reduction=\"max\"}\ns = ReduceSum(v) {axes=[2], keepdims=0}\nz = Add(y, s)\noutput y = z",
     ""},
    {"unsigned",
     "input x : u64[4,40]\ninput p : i64[70,1]\ninput u : u64[70,40]\ny = ScatterAlong(x, p, u) {axis=0, "
     "reduction=\"max\"}\nz = Cast(y) {to=1}\noutput y = z",
     ""},
    // Updates that are made here, of rows that are looked up, and what follows.
    {"messages",
     "input x : f32[4,24]\ninput p : i64[200,1]\ninput s : i64[200]\ns1 = Abs(s)\ng = "
     "Gather(x, s1) {axis=0}\ny = ScatterAlong(x, p, g) {axis=0, reduction=\"add\"}\nr = Relu(y)\noutput y = r",
     kWord},
    {"of_its_own",
     "input x : f32[4,33]\ninput p : i64[70,33]\ninput u : f32[70,33]\ny = ScatterAlong(x, p, u) {axis=0, "
     "reduction=\"add\"}\noutput y = y",
     ""},
    {"few",
     "input x : f32[4,33]\ninput p : i64[20,1]\ninput u : f32[20,33]\ny = ScatterAlong(x, p, u) {axis=0, "
     "reduction=\"add\"}\noutput y = y",
     ""},
};

BatchCase case_of(const Scattered& s) { return make_case(s.name, s.text, 7); }

TEST(Matches, AreLookedForByBlocks) {
  for (const Scattered& s : kScattered) expect_word_in_kernels(case_of(s), s.word, kWord);
}

TEST(Matches, AreLookedForByNobodyElse) {
  for (const Scattered& s : kScattered) {
    if (s.word != kWord) continue;
    LayoutCosts costs(false);
    const auto plan = make_plan(case_of(s).graph, {.kind = TargetKind::Cuda}, costs);
    ASSERT_TRUE(plan.ok()) << s.name;
    const auto code = emit(*plan);
    ASSERT_TRUE(code.ok()) << s.name;
    const std::string text = text_of(*code, "kernels_");
    EXPECT_EQ(text.find("for (int64_t"), std::string::npos) << s.name << "\n" << text;
  }
}

TEST(Matches, AgreeWithTheInterpreter) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  LayoutCosts costs(false);
  expect_agreement_on_device(match_cases(), costs, "matches", Precision::Fp32);
}

}  // namespace

std::vector<BatchCase> match_cases() {
  std::vector<BatchCase> cases;
  for (const Scattered& s : kScattered) cases.push_back(case_of(s));
  return cases;
}

}  // namespace gopt
