// Generated CUDA kernels whose threads keep a row in registers.
#include <gtest/gtest.h>

#include <algorithm>

#include "cuda_device.h"

namespace gopt {
namespace {

// A graph whose rows are kept so, as words of its kernels say, or are not.
struct Row {
  const char *name, *text;
  std::vector<const char*> words;
};
std::string normalization(const std::string& type, const std::string& dims, const std::string& line) {
  return "input x : " + type + "[" + dims + "]\ninput w1 : " + type + "[" + line + "]\ninput w2 : " + type + "[" +
         line + "]\ny = LayerNormalization(x, w1, w2) {axis=-1, epsilon=0.00001}\noutput y = y";
}
// Four groups of eight channels, with a factor and a term of each channel.
std::string groups(const std::string& positions) {
  const std::string plain = "1,32," + positions, size = std::to_string(8 * std::stoll(positions));
  return "input x : f32[1,4," + size +
         "]\ninput s : f32[4]\ninput b : f32[4]\ninput f : f32[32,1]\ninput t : f32[32,1]\nn = "
         "InstanceNormalization(x, s, b)\nc = Reshape(n) {shape=[" +
         plain + "]}\nm = Mul(c, f)\na = Add(m, t)\ng = Sigmoid(a)\ny = Mul(a, g)\noutput y = y";
}
std::vector<Row> rows() {
  static const std::string floats = normalization("f32", "7,768", "768"), halves = normalization("f16", "9,768", "768"),
                           odd = normalization("f32", "5,97", "97"), guarded = normalization("f32", "6,200", "200"),
                           many = normalization("f16", "1300,64", "64"), wide = normalization("f32", "3,8192", "8192"),
                           crowded = normalization("f32", "1,32768", "32768"),
                           endless = normalization("f32", "1,65536", "65536"), lines = groups("900"),
                           shared = groups("1600");
  return {
      {"floats", floats.c_str(), {"gopt_chunk<float, 4> row_in0[6]", "gopt_warp_reduce", "gopt_kernel_0_body, 7, 32"}},
      {"halves", halves.c_str(), {"gopt_chunk<gopt_half, 8> row_in0[3]", "gopt_warp_reduce"}},
      // What no kernel writes comes before the kernel before has ended.
      {"constants", floats.c_str(), {"row_in2[k] = gopt_chunk<float, 4>(all_in2, first);\n  }\n  gopt_wait();"}},
      // What another kernel makes, or the caller gives, comes after.
      {"given",
       "input x : f32[7,768]\ninput s : f32[768]\ninput b : f32[768]\ny = LayerNormalization(x, s, b) "
       "{axis=-1}\noutput y = y",
       {"gopt_wait();\n  gopt_chunk<float, 4> row_in1[6]"}},
      // Four blocks have a row each; without clusters a thread of a thousand has too few registers for scale and bias
      // as well.
      {"crowded",
       crowded.c_str(),
       {"row_in1[8]", "gopt_cluster_reduce<4>", "_body, 1, 4, 256", "_alone, 1, 1024", "in1[i"}},
      {"odd", odd.c_str(), {"gopt_block_reduce"}},
      {"guarded", guarded.c_str(), {"row_in0[2]", "if (first < 200)", "gopt_warp_reduce"}},
      {"many", many.c_str(), {"row_in0[1]", "threadIdx.x / 32", "gopt_kernel_0_body, 325, 128"}},
      // Rows of a few chunks: several to a warp; of one chunk, which needs no other thread; not where some are over.
      {"short",
       "input x : f16[2,2048,32]\ninput w1 : f32[32]\ninput w2 : f32[32]\ny = LayerNormalization(x, w1, w2) "
       "{axis=-1, epsilon=0.00001}\noutput y = y",
       {"gopt_chunk<gopt_half, 8> row_in0[1]", "gopt_part_reduce<4>", "threadIdx.x / 4"}},
      {"shorter",
       "input x : f32[4128,4]\ny = Softmax(x) {axis=-1}\noutput y = y",
       {"row_in0[1]", "gopt_part_reduce<1>"}},
      {"ragged",
       "input x : f32[4104,44]\ny = Softmax(x) {axis=-1}\noutput y = y",
       {"if (first < 44)", "row_in0[1]", "gopt_part_reduce<16>"}},
      {"left", "input x : f32[4101,44]\ny = Softmax(x) {axis=-1}\noutput y = y", {"gopt_block_reduce"}},
      {"means",
       "input x : f16[8,1024,64]\ny = ReduceMean(x) {axes=[-1], keepdims=1}\nz = Sub(x, y)\noutput y = z",
       {"row_in0[1]", "gopt_part_reduce<8>"}},
      {"wide", wide.c_str(), {"row_in0[8]", "gopt_block_reduce", ", 3, 256"}},
      // What no block alone keeps is read again.
      {"endless",
       endless.c_str(),
       {"row_in0[8]", "gopt_cluster_reduce<8>", "_alone, 1, 512", "#pragma unroll 4", "const auto row_in0 ="}},
      // Very few and very long ones are all blocks', each of which keeps its part.
      {"meets",
       "input x : f32[1,98304]\ny = Softmax(x) {axis=-1}\noutput y = y",
       {"gopt_meeting<16> meeting(memory)", "row_in0[6]", "fits_at_once(gopt_kernel_0_body, 1, 16, 256)",
        "launch_all_at_once", "gopt_cluster_reduce<8>", "_cluster, 1, 8, ", "_alone, 1, 512"}},
      {"meet_and_wait",
       "input x : f32[2,98304]\ninput m : f32[2,1]\ninput i : i32[98304]\ninput n : i64[1]\nc = Less(x, m)\np = "
       "Cast(i) {to=7}\nw = Where(c, n, p)\ny = ReduceMin(w) {axes=[-1], keepdims=0}\noutput y = y",
       {"meeting.reduce", "row_in0[", "_body, 2, 16, "}},
      {"many_long",
       "input x : f32[9,98304]\ny = ReduceMax(x) {axes=[-1], keepdims=0}\noutput y = y",
       {"gopt_cluster_reduce<8>", "row_in0[", "_body, 9, 8, "}},
      // Rows of no whole chunks: one element after another.
      {"odd_and_long",
       "input x : f16[3,12289]\ny = ReduceMean(x) {axes=[-1], keepdims=0}\noutput y = y",
       {"gopt_chunk<gopt_half, 1> row_in0[", "gopt_cluster_reduce<2>"}},
      {"volume",
       "input x : f16[1,3,13,32,32]\ninput s : f32[3]\ninput b : f32[3]\ny = InstanceNormalization(x, s, b)\noutput "
       "y = y",
       {"row_in0[4]", "gopt_cluster_reduce<2>", "_body, 3, 2, 256"}},
      // The channels of a group, one after another, with numbers of their own; what is read twice is computed once.
      {"groups", lines.c_str(), {"row_in0[8]", "gopt_chunk<float, 4> own_out", "first % 900"}},
      {"shared_groups", shared.c_str(), {"gopt_cluster_reduce<2>", "row_in0[7]", "first / 1600"}},
      {"softmax", "input x : f32[4,3,160]\ny = Softmax(x) {axis=-1}\noutput y = y", {"row_in0[2]", "gopt_warp_reduce"}},
      {"masked",
       "input x : f32[4,3,160]\ninput m : f32[4,1,160]\na = Add(x, m)\ny = Softmax(a) {axis=-1}\noutput y = y",
       {"row_in0[2]", "row_in1[2]"}},
      // Results that lie in other rows; sums alone, which one thread writes.
      {"turned",
       "input x : f32[6,5,128]\na = Softmax(x) {axis=-1}\ny = Transpose(a) {perm=[1,0,2]}\noutput y = y",
       {"row_in0[1]", "own_out"}},
      {"sums",
       "input x : f32[5,256]\ny = ReduceSum(x) {axes=[-1], keepdims=0}\noutput y = y",
       {"row_in0[2]", "== 0) {"}},
      {"sums_and_more",
       "input x : f32[5,256]\ninput b : f32[5]\ns = ReduceSum(x) {axes=[-1], keepdims=0}\ny = Sub(b, s)\noutput y = y",
       {"row_in1[2]", "== 0) {"}},
      {"largest", "input x : f16[5,256]\ny = ReduceMax(x) {axes=[-1], keepdims=0}\noutput y = y", {"row_in0[1]"}},
      {"integers",
       "input x : i32[5,256]\ny = ReduceMin(x) {axes=[-1], keepdims=0}\noutput y = y",
       {"gopt_chunk<int32_t, 4> row_in0[2]"}},
      // Where the largest is, as code looks for it.
      {"places",
       "input x : f32[1,24576]\ninput m : f32[1,1]\ninput i : i32[24576]\ninput n : i64[1]\nc = Less(x, m)\np = "
       "Cast(i) {to=7}\nw = Where(c, n, p)\ny = ReduceMin(w) {axes=[-1], keepdims=0}\noutput y = y",
       {"row_in0[", "gopt_chunk<int32_t, 4>", "gopt_cluster_reduce<4>"}},
      // One is read along the row, and where its line begins: it stays in memory.
      {"twice",
       "input x : f32[4,128]\na = Softmax(x) {axis=-1}\nb = Slice(x) {starts=[0], ends=[1], axes=[1], steps=[1]}\ny = "
       "Mul(a, b)\noutput y = y",
       {"gopt_block_reduce"}},
      // One row, of which all results are.
      {"single", "input x : f32[256]\ny = Softmax(x) {axis=-1}\noutput y = y", {"row_in0[2]"}},
      {"all",
       "input x : f32[4,64]\nm = ReduceMean(x) {axes=[0,1], keepdims=0}\ny = Sub(x, m)\noutput y = y",
       {"row_in0[2]"}},
      // Two sums of different lengths, and a sum along another axis.
      {"columns", "input x : f32[128,64]\ny = Softmax(x) {axis=0}\noutput y = y", {}},
  };
}

BatchCase case_of(const Row& row) { return make_case(row.name, row.text, 7); }

TEST(RowChunks, AreKeptWhereAllReductionsAreOverOneRow) {
  for (const Row& row : rows()) {
    LayoutCosts costs(false);
    const auto plan = make_plan(case_of(row).graph, {.kind = TargetKind::Cuda}, costs);
    ASSERT_TRUE(plan.ok()) << row.name << ": " << plan.error().message;
    const auto code = emit(*plan);
    ASSERT_TRUE(code.ok()) << row.name << ": " << code.error().message;
    const std::string text = text_of(*code, "kernels_");
    for (const char* word : row.words)
      EXPECT_NE(text.find(word), std::string::npos) << row.name << ": " << word << "\n" << text;
    const bool is_kept = std::ranges::any_of(
        row.words, [](std::string_view word) { return word.find("row_in") != std::string_view::npos; });
    if (!is_kept) {
      EXPECT_EQ(text.find("row_in"), std::string::npos) << row.name << "\n" << text;
    }
  }
}

TEST(RowChunks, AgreeWithTheInterpreter) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  const std::vector<BatchCase> cases = row_chunk_cases();
  for (const Precision precision : {Precision::Fp32, Precision::Fp16, Precision::Bf16}) {
    if (!obstacles().run.empty() && precision != Precision::Fp16) continue;  // without a device they are compiled alone
    LayoutCosts costs(false);
    expect_agreement_on_device(cases, costs, "row_chunks", precision);
  }
}

}  // namespace

std::vector<BatchCase> row_chunk_cases() {
  std::vector<BatchCase> cases;
  for (const Row& row : rows()) cases.push_back(case_of(row));
  return cases;
}

}  // namespace gopt
