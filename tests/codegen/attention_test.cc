// Attention in one kernel: where it is found, and that it agrees with the interpreter: on a CPU, and on CUDA each way
// to run it in every precision. Without a device kernels are compiled and linked.
#include "gopt/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "cuda_device.h"
#include "gopt/kernel_costs.h"
#include "implementations.h"

namespace gopt {
namespace {

std::vector<std::string> attention_names() {
  std::vector<std::string> names;
  for (const planner::Implementation& row : planner::implementations())
    if (row.kind == KernelKind::Attention && row.target == TargetKind::Cuda) names.emplace_back(row.name);
  return names;
}

// Some need more shared memory than there is, for the longest lines.
const planner::Implementation& row_named(const std::string& name) {
  const auto rows = planner::implementations();
  return *std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.name == name; });
}

// Attention of 33 + n rows is run in the n-th way.
constexpr int64_t kFirstRows = 33;

class CostsOfAttention : public KernelCosts {
 public:
  double time_ms(const Plan&, const Kernel& kernel) override {
    if (!kernel.attention) return 1;
    const auto number = static_cast<size_t>(kernel.attention->rows.constant() - kFirstRows);
    return number < names_.size() && kernel.implementation == names_[number] ? 0.5 : 1;
  }
  bool is_measured(const Plan&, const Kernel&) const override { return true; }
  bool prices_unlikely() const override { return true; }

 private:
  std::vector<std::string> names_ = attention_names();
};

struct Case {
  const char* name;
  const char* text;      // # stands for the rows
  size_t kernels, left;  // of the plan, and how many nodes attention leaves to others
};

const Case kCases[] = {
    // As a layer of BERT has it: heads are cut from lines, and joined again.
    {"heads",
     "input q : f32[2,#,192]\ninput k : f32[2,150,192]\ninput v : f32[2,150,192]\ninput m : f32[2,1,1,150]\n"
     "constant w1 = f32[] {0.25}\nq1 = Reshape(q) {shape=[2,#,3,64]}\nk1 = Reshape(k) {shape=[2,150,3,64]}\n"
     "v1 = Reshape(v) {shape=[2,150,3,64]}\nq2 = Transpose(q1) {perm=[0,2,1,3]}\nk2 = Transpose(k1) {perm=[0,2,3,1]}\n"
     "v2 = Transpose(v1) {perm=[0,2,1,3]}\na = MatMul(q2, k2)\nb = Mul(a, w1)\nc = Add(b, m)\nd = Softmax(c) "
     "{axis=-1}\ne = MatMul(d, v2)\nf = Transpose(e) {perm=[0,2,1,3]}\ng = Reshape(f) {shape=[2,#,192]}\noutput y = g",
     1, 0},
    // One tensor is the query, the key and the value; factors stand before the product, lines fill no chunk.
    {"joint",
     "input x : f32[#,1,3,4,20]\nconstant w1 = f32[] {0.25}\nconstant i0 = i64[] {0}\nconstant i1 = i64[] "
     "{1}\nconstant i2 = i64[] {2}\nt = Transpose(x) {perm=[2,1,3,0,4]}\nq = Gather(t, i0) {axis=0}\n"
     "k = Gather(t, i1) {axis=0}\nv = Gather(t, i2) {axis=0}\nk1 = Transpose(k) {perm=[0,1,3,2]}\nq2 = Mul(q, w1)\n"
     "k2 = Mul(k1, w1)\na = MatMul(q2, k2)\nb = Softmax(a) {axis=3}\nc = MatMul(b, v)\noutput y = c",
     1, 0},
    // Lines of one position after another of all batches, as torch.nn.MultiheadAttention has them: batches and heads
    // are
    // one axis in between, which is two in memory.
    {"batches",
     "input x : f32[#,2,288]\nconstant w1 = f32[] {0.25}\nconstant i0 = i64[] {0}\nconstant i1 = i64[] {1}\n"
     "constant i2 = i64[] {2}\nu = Reshape(x) {shape=[1,#,2,3,96]}\nt = Transpose(u) {perm=[3,1,2,0,4]}\n"
     "s = Reshape(t) {shape=[3,#,2,96]}\nq0 = Gather(s, i0) {axis=0}\nk0 = Gather(s, i1) {axis=0}\n"
     "v0 = Gather(s, i2) {axis=0}\nq1 = Reshape(q0) {shape=[#,6,32]}\nk1 = Reshape(k0) {shape=[#,6,32]}\n"
     "v1 = Reshape(v0) {shape=[#,6,32]}\nq2 = Transpose(q1) {perm=[1,0,2]}\nk2 = Transpose(k1) {perm=[1,2,0]}\n"
     "v2 = Transpose(v1) {perm=[1,0,2]}\nq = Reshape(q2) {shape=[2,3,#,32]}\nk = Reshape(k2) {shape=[2,3,32,#]}\n"
     "v = Reshape(v2) {shape=[2,3,#,32]}\na = MatMul(q, k)\nb = Mul(a, w1)\nc = Softmax(b) {axis=-1}\n"
     "d = MatMul(c, v)\ne = Transpose(d) {perm=[2,0,1,3]}\nf = Reshape(e) {shape=[#,2,96]}\noutput y = f",
     1, 0},
    // Long lines, others of values; a head of keys serves all of queries; a mask for each row; a sum that is masked.
    {"shared",
     "input q : f32[2,4,#,128]\ninput k : f32[2,1,70,128]\ninput v : f32[2,1,70,72]\ninput m : f32[#,70]\nconstant "
     "w1 = f32[] {4}\nk1 = Expand(k) {shape=[2,4,70,128]}\nk2 = Transpose(k1) {perm=[0,1,3,2]}\na = MatMul(q, k2)\n"
     "b = Div(a, w1)\nc = Add(m, b)\n"
     "d = Softmax(c) {axis=-1}\ne = MatMul(d, v)\noutput y = e",
     1, 0},
    // Parts of one product, cut in two steps; rows that are masked whole are zero.
    {"guarded",
     "input x : f32[2,#,144]\ninput m : f32[#,#]\nconstant w1 = f32[] {0.25}\nconstant w_zero = f32[] {0}\n"
     "q0, kv = Split(x) {axis=2, split=[48,96]}\nk0, v0 = Split(kv) {axis=2, split=[48,48]}\n"
     "q1 = Reshape(q0) {shape=[2,#,3,16]}\nk1 = Reshape(k0) {shape=[2,#,3,16]}\nv1 = Reshape(v0) {shape=[2,#,3,16]}\n"
     "q = Transpose(q1) {perm=[0,2,1,3]}\nk = Transpose(k1) {perm=[0,2,3,1]}\nv = Transpose(v1) {perm=[0,2,1,3]}\n"
     "q2 = Mul(q, w1)\na = MatMul(q2, k)\nb = Add(a, m)\nc = Softmax(b) {axis=-1}\nn = IsNaN(c)\n"
     "d = Where(n, w_zero, c)\ne = MatMul(d, v)\noutput y = e",
     1, 0},
    // So many keys that blocks may share them.
    {"long",
     "input q : f32[1,2,#,16]\ninput k : f32[1,2,1100,16]\ninput v : f32[1,2,1100,24]\n"
     "k1 = Transpose(k) {perm=[0,1,3,2]}\na = MatMul(q, k1)\nb = Softmax(a) {axis=-1}\nc = MatMul(b, v)\noutput y = c",
     1, 0},
    // Keys that other nodes use, too, are read where they lie.
    {"cached",
     "input q : f32[3,#,48]\ninput k : f32[3,40,48]\ninput v : f32[3,40,48]\nk1 = Relu(k)\nk2 = Transpose(k1) "
     "{perm=[0,2,1]}\na = MatMul(q, k2)\nb = Softmax(a) {axis=-1}\nc = MatMul(b, v)\noutput y = c\noutput z = k1",
     2, 0}};

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

BatchCase case_for(const Case& c, size_t number) {
  const std::string text = replaced(c.text, "#", std::to_string(kFirstRows + static_cast<int64_t>(number)));
  BatchCase own = make_case(c.name + std::to_string(number), text, number + 1);
  if (!own.inputs.contains("m")) return own;
  // Some keys are masked, and all of a row.
  Tensor& mask = own.inputs.at("m");
  std::vector<double> values = mask.to_doubles();
  const auto keys = static_cast<size_t>(mask.dims().back());
  for (size_t i = 0; i < values.size(); i++)
    if (i % 7 == 3 || (i / keys == 1 && mask.dims().size() == 2)) values[i] = -std::numeric_limits<double>::infinity();
  mask = Tensor::from_values(mask.type(), mask.dims(), values);
  return own;
}

std::vector<BatchCase> all_cases() {
  std::vector<BatchCase> cases;
  for (size_t number = 0; number < attention_names().size(); number++)
    for (const Case& c : kCases) cases.push_back(case_for(c, number));
  return cases;
}

const Kernel* attention_of(const Plan& plan) {
  for (const Kernel& kernel : plan.kernels)
    if (kernel.kind == KernelKind::Attention) return &kernel;
  return nullptr;
}

TEST(Attention, NamesAreReadBack) {
  ASSERT_GT(attention_names().size(), 3U);
  for (const std::string& name : attention_names()) {
    const auto tile = parse_attention_tile(name);
    ASSERT_TRUE(tile) << name;
    EXPECT_EQ(to_string(*tile), name);
  }
  for (const char* other : {"", "attention", "attention:", "attention:16", "attention:16x", "attention:16x4 ",
                            "attention:16x8:", "attention:16x8:1", "tiles:16x64:1"})
    EXPECT_FALSE(parse_attention_tile(other)) << other;
}

TEST(Attention, IsOneKernelWithWhatMovesItsOperands) {
  CostsOfAttention costs;
  const std::vector<std::string> names = attention_names();
  std::vector<bool> is_run(names.size());
  for (size_t number = 0; number < names.size(); number++)
    for (const Case& c : kCases) {
      const BatchCase own = case_for(c, number);
      const auto plan = make_plan(own.graph, {.kind = TargetKind::Cuda}, costs);
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      ASSERT_TRUE(check_plan(*plan).ok()) << check_plan(*plan).error().message;
      const Kernel* kernel = attention_of(*plan);
      ASSERT_NE(kernel, nullptr) << c.name << "\n" << print_plan(*plan);
      const bool is_accepted = row_named(names[number]).accepts(*plan, *kernel);
      EXPECT_EQ(kernel->implementation == names[number], is_accepted) << c.name << " " << kernel->implementation;
      is_run[number] = is_run[number] || is_accepted;
      EXPECT_EQ(plan->kernels.size(), c.kernels) << print_plan(*plan);
      EXPECT_TRUE(emit(*plan).ok());
    }
  for (size_t number = 0; number < names.size(); number++) EXPECT_TRUE(is_run[number]) << names[number];
}

TEST(Attention, IsNotFoundWhereItIsNone) {
  const char* const texts[] = {
      // Over rows; scores that are an output; scores with two users; a line too long; weights of another shape.
      "input q : f32[2,9,16]\ninput k : f32[2,16,9]\ninput v : f32[2,9,16]\na = MatMul(q, k)\nb = Softmax(a) "
      "{axis=1}\nc = MatMul(b, v)\noutput y = c",
      "input q : f32[2,9,16]\ninput k : f32[2,7,16]\ninput v : f32[2,7,16]\nl = Transpose(k) {perm=[0,2,1]}\na = "
      "MatMul(q, l)\nb = Softmax(a) {axis=-1}\nc = MatMul(b, v)\noutput y = c\noutput z = a",
      "input q : f32[2,9,16]\ninput k : f32[2,7,16]\ninput v : f32[2,7,16]\nl = Transpose(k) {perm=[0,2,1]}\na = "
      "MatMul(q, l)\nb = Softmax(a) {axis=-1}\nc = MatMul(b, v)\nd = MatMul(a, v)\ne = Add(c, d)\noutput y = e",
      "input q : f32[2,9,136]\ninput k : f32[2,7,136]\ninput v : f32[2,7,16]\nl = Transpose(k) {perm=[0,2,1]}\na = "
      "MatMul(q, l)\nb = Softmax(a) {axis=-1}\nc = MatMul(b, v)\noutput y = c",
      // A mask that makes the scores larger; keys whose lines are not in one piece.
      "input q : f32[1,9,16]\ninput k : f32[1,7,16]\ninput v : f32[7,16]\ninput m : f32[3,9,7]\nl = Transpose(k) "
      "{perm=[0,2,1]}\na = MatMul(q, l)\ns = Add(a, m)\nb = Softmax(s) {axis=-1}\nc = MatMul(b, v)\noutput y = c",
      "input q : f32[2,9,16]\ninput k : f32[2,16,7]\ninput v : f32[2,7,16]\na = MatMul(q, k)\nb = Softmax(a) "
      "{axis=-1}\nc = MatMul(b, v)\noutput y = c"};
  CostsOfAttention costs;
  for (const char* text : texts) {
    const auto plan = make_plan(make_case("none", text, 1).graph, {.kind = TargetKind::Cuda}, costs);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ(attention_of(*plan), nullptr) << text;
  }
}

// What moves an operand may also be the mask, or what another operand is made of: then it is made.
TEST(Attention, LeavesOutOnlyWhatNobodyReads) {
  const std::pair<const char*, size_t> texts[] = {
      {"input q : f32[8,8]\ninput k : f32[16,8]\ninput v : f32[16,8]\nl = Transpose(k) {perm=[1,0]}\na = MatMul(q, "
       "l)\nb "
       "= Add(a, l)\nc = Softmax(b) {axis=-1}\nd = MatMul(c, v)\noutput y = d",
       4},
      {"input x : f32[8,8]\ninput k : f32[8,8]\ninput v : f32[8,8]\nconstant w = f32[] {0.25}\nq = Mul(x, w)\nl = "
       "Transpose(k) {perm=[1,0]}\na = MatMul(q, l)\nb = Add(a, q)\nc = Softmax(b) {axis=-1}\nd = MatMul(c, v)\noutput "
       "y "
       "= d",
       2},
      {"input x : f32[8,8,8]\ninput v : f32[8,8,8]\nconstant w = f32[] {0.5}\nt = Mul(x, w)\nq = Transpose(t) "
       "{perm=[0,2,1]}\nl = Transpose(t) {perm=[1,2,0]}\na = MatMul(q, l)\nb = Softmax(a) {axis=-1}\nc = MatMul(b, v)\n"
       "output y = c",
       3}};
  CostsOfAttention costs;
  for (const auto& [text, kernels] : texts) {
    const auto plan = make_plan(make_case("read", text, 1).graph, {.kind = TargetKind::Cuda}, costs);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const Status checked = check_plan(*plan);
    EXPECT_TRUE(checked.ok()) << checked.error().message << "\n" << print_plan(*plan);
    EXPECT_EQ(plan->kernels.size(), kernels) << print_plan(*plan);
  }
}

// Long lines leave few ways that a block's shared memory holds, and others would be faster.
TEST(Attention, HasAWayByEstimatesWhereOneFits) {
  const auto costs = analytic_kernel_costs({});
  for (const char* keys : {"70", "300", "700", "4000"}) {
    const std::string text = replaced(
        "input q : f32[2,2,3,128]\ninput p : f32[2,2,#,128]\ninput v : f32[2,2,#,128]\n"
        "k = Transpose(p) {perm=[0,1,3,2]}\na = MatMul(q, k)\nb = Softmax(a) {axis=-1}\n"
        "c = MatMul(b, v)\noutput y = c",
        "#", keys);
    const auto plan = make_plan(make_case("long_lines", text, 1).graph, {.kind = TargetKind::Cuda}, *costs);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    ASSERT_NE(attention_of(*plan), nullptr);
    EXPECT_TRUE(parse_attention_tile(attention_of(*plan)->implementation)) << keys;
  }
}

TEST(Attention, CanBeSwitchedOff) {
  CostsOfAttention costs;
  Target target{.kind = TargetKind::Cuda};
  target.without.insert("kernel:attention");
  const auto parts = plan_parts(TargetKind::Cuda);
  EXPECT_NE(std::find(parts.begin(), parts.end(), *target.without.begin()), parts.end());
  const auto plan = make_plan(case_for(kCases[0], 0).graph, target, costs);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(attention_of(*plan), nullptr);
  target.kind = TargetKind::Cpu;
  const auto on_cpu = make_plan(case_for(kCases[0], 0).graph, target, costs);
  ASSERT_TRUE(on_cpu.ok());
  EXPECT_EQ(attention_of(*on_cpu), nullptr);
}

TEST(Attention, IsOneKernelOnACpu) {
  CostsOfAttention costs;
  for (const Case& c : kCases) {
    const auto plan = make_plan(case_for(c, 0).graph, {.kind = TargetKind::Cpu}, costs);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    ASSERT_TRUE(check_plan(*plan).ok()) << check_plan(*plan).error().message;
    ASSERT_NE(attention_of(*plan), nullptr) << c.name << "\n" << print_plan(*plan);
    EXPECT_EQ(plan->kernels.size(), c.kernels) << print_plan(*plan);
  }
  // Of halves products are another's.
  const auto halves =
      make_plan(case_for(kCases[0], 0).graph, {.kind = TargetKind::Cpu, .precision = Precision::Bf16}, costs);
  ASSERT_TRUE(halves.ok());
  EXPECT_EQ(attention_of(*halves), nullptr);
}

// Scores that have a bias beside their mask, or are chosen. Seeds from behind `seed` on.
std::vector<BatchCase> treated_cases(uint64_t& seed) {
  std::vector<BatchCase> cases;
  // A mask and a bias, either for a key, a line or both, and in either order.
  const std::string two =
      "a = MatMul(q, k)\nb0 = Add(a, n)\nb = Add(m, b0)\nc = Softmax(b) {axis=-1}\n"
      "d = MatMul(c, v)\noutput y = d";
  for (const auto& [m, n] : {std::pair("[2,1,1,40]", "[1,3,ROWS,40]"), std::pair("[2,1,ROWS,40]", "[3,1,1]"),
                             std::pair("[3,ROWS,1]", "[2,1,1,40]"), std::pair("[40]", "[1,3,ROWS,40]")})
    for (const char* rows : {"50", "4", "1"}) {
      std::string text =
          "input q : f32[2,3,ROWS,24]\ninput p : f32[2,3,40,24]\nk = Transpose(p) {perm=[0,1,3,2]}\n"
          "input v : f32[2,3,40,30]\ninput m : f32" +
          std::string(m) + "\ninput n : f32" + n + "\n" + two;
      for (size_t at; (at = text.find("ROWS")) != std::string::npos;) text.replace(at, 4, rows);
      cases.push_back(make_case("two" + std::to_string(seed + 1), text, seed + 1));
      seed++;
    }
  // Scores that are replaced by a number: for a key, a line or both, before a mask is added or after, and times a
  // factor.
  const std::string chosen[] = {"b0 = Where(t, s, least)\nb = Add(b0, m)\n", "b = Where(t, least, s)\n",
                                "b0 = Where(t, some, s)\nb = Mul(b0, w1)\n", "b0 = Add(m, s)\nb = Where(t, b0, some)\n",
                                "b0 = Add(s, m)\nb1 = Add(b0, n)\nb = Where(t, infinite, b1)\n"};
  for (const std::string& how : chosen)
    for (const char* tests : {"[2,1,1,300]", "[1,1,ROWS,300]", "[3,ROWS,1]"})
      for (const char* rows : {"50", "4", "1"}) {
        // A line that is left out whole has no softmax: zeros stand for it.
        const bool is_guarded = how.find("infinite") != std::string::npos;
        std::string text =
            "input q : f32[2,3,ROWS,24]\ninput p : f32[2,3,300,24]\nk = Transpose(p) {perm=[0,1,3,2]}\n"
            "input v : f32[2,3,300,30]\ninput t : bool" +
            std::string(tests) +
            "\ninput m : f32[300]\ninput n : f32[3,ROWS,1]\nconstant w1 = f32[] {0.25}\nconstant some = f32[] {-3}\n"
            "constant least = f32[] {-3.4e38}\nconstant infinite = f32[] {-inf}\na = MatMul(q, k)\ns = Mul(a, w1)\n" +
            how +
            (is_guarded
                 ? "g = Softmax(b) {axis=-1}\nconstant w_zero = f32[] {0}\nu = IsNaN(g)\nc = Where(u, w_zero, g)\n"
                 : "c = Softmax(b) {axis=-1}\n") +
            "d = MatMul(c, v)\noutput y = d";
        for (size_t at; (at = text.find("ROWS")) != std::string::npos;) text.replace(at, 4, rows);
        const char* const sums = how.find(", n)") != std::string::npos ? "two_" : "";
        cases.push_back(make_case(sums + ("chosen" + std::to_string(seed + 1)), text, seed + 1));
        seed++;
      }
  return cases;
}

void expect_agreement(const std::vector<BatchCase>& cases, Precision precision) {
  CostsOfAttention costs;
  expect_agreement_on_device(cases, costs, "attention", precision);
}

TEST(Attention, CompilesAndLinks) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (obstacles().run.empty()) GTEST_SKIP() << "there is a device: the tests below build and run";
  expect_agreement({case_for(kCases[0], 0)}, Precision::Fp16);
  expect_agreement({case_for(kCases[1], 4)}, Precision::Fp32);
  uint64_t seed = 0;
  const std::vector<BatchCase> treated = treated_cases(seed);
  expect_agreement({treated.front(), treated.back()}, Precision::Fp16);
}

bool is_two(const BatchCase& c) { return c.name.starts_with("two"); }
bool is_chosen(const BatchCase& c) { return c.name.find("chosen") != std::string::npos; }

TEST(Attention, TakesABiasAndAChoice) {
  CostsOfAttention costs;
  uint64_t seed = 0;
  for (const BatchCase& c : treated_cases(seed)) {
    const auto plan = make_plan(c.graph, {.kind = TargetKind::Cuda}, costs);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    ASSERT_TRUE(check_plan(*plan).ok()) << check_plan(*plan).error().message;
    const Kernel* const kernel = attention_of(*plan);
    ASSERT_NE(kernel, nullptr) << c.name << "\n" << print_plan(*plan);
    EXPECT_EQ(kernel->attention->bias.has_value(), is_two(c)) << c.name;
    EXPECT_EQ(kernel->attention->choice.has_value(), is_chosen(c)) << c.name;
  }
}

TEST(Attention, AgreesWithTheInterpreter) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
  for (const Precision precision : {Precision::Fp32, Precision::Tf32, Precision::Fp16, Precision::Bf16})
    expect_agreement(all_cases(), precision);
}

TEST(Attention, ABiasAndAChoiceAgreeWithTheInterpreter) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
  uint64_t seed = 0;
  const std::vector<BatchCase> cases = treated_cases(seed);
  for (const Precision precision : {Precision::Fp32, Precision::Fp16}) expect_agreement(cases, precision);
}

// Keys masked by minus infinity, all of a stage and all of a row among them, and large scores.
BatchCase masked_case(const std::string& name, int64_t rows, int64_t keys, uint64_t seed) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::string r = std::to_string(rows), k = std::to_string(keys);
  BatchCase c = make_case(name,
                          "input q : f32[2," + r + ",32]\ninput k : f32[2," + k + ",32]\ninput v : f32[2," + k +
                              ",32]\ninput m : f32[" + r + "," + k +
                              "]\nl = Transpose(k) {perm=[0,2,1]}\na = MatMul(q, l)\nb = Add(a, m)\nc = Softmax(b) "
                              "{axis=-1}\nd = MatMul(c, v)\noutput y = d",
                          seed);
  const int64_t hidden = rows > 5 ? 5 : 1, late = hidden + 1, large = hidden + 2;
  std::vector<double> mask(static_cast<size_t>(rows * keys), 0.0);
  for (int64_t row = 0; row < rows; row++)
    for (int64_t key = 0; key < keys; key++) {
      double& own = mask[static_cast<size_t>(row * keys + key)];
      if (row == hidden || (row == late && key < keys - 10) || (row > late && key > 8 * row)) own = -kInfinity;
      if (row == large && key == 3) own = 40000;
    }
  c.inputs.at("m") = Tensor::from_values(ElementType::Float32, {rows, keys}, mask);
  return c;
}

TEST(Attention, MasksAndLargeScoresAgreeWithTheInterpreter) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
  std::vector<BatchCase> cases;
  for (size_t number = 0; number < attention_names().size(); number++)
    cases.push_back(
        masked_case("masked" + std::to_string(number), kFirstRows + static_cast<int64_t>(number), 1100, number + 1));
  for (const Precision precision : {Precision::Fp32, Precision::Fp16}) expect_agreement(cases, precision);
}

// Lines that fill their lanes and that do not, parts of keys one after another, whose first may be masked whole, depths
// that no vector divides, masks for a key, a line or both, and keys whose lines are not in one piece.
std::vector<BatchCase> cases_on_cpu() {
  std::vector<BatchCase> cases;
  for (size_t number : {0, 2})
    for (const Case& c : kCases) cases.push_back(case_for(c, number));
  uint64_t seed = 0;
  for (const int64_t rows : {1, 3, 5, 8, 16, 33, 64, 130})
    for (const int64_t keys : {7, 300, 1400})
      cases.push_back(masked_case("masked" + std::to_string(rows) + "x" + std::to_string(keys), rows, keys, ++seed));
  const auto add = [&](const char* name, const char* text) { cases.push_back(make_case(name, text, ++seed)); };
  const std::string product =
      "a = MatMul(q, k)\nb = Add(a, m)\nc = Softmax(b) {axis=-1}\nd = MatMul(c, v)\noutput y = d";
  add("rows",
      ("input q : f32[3,20,5]\ninput k : f32[3,5,9]\ninput v : f32[3,9,3]\ninput m : f32[3,20,1]\n" + product).c_str());
  add("both",
      ("input q : f32[2,3,50,200]\ninput k : f32[2,1,200,40]\ninput v : f32[1,3,40,300]\ninput m : f32[2,1,1,40]\n" +
       product)
          .c_str());
  add("turned",
      "input q : f32[2,40,16]\ninput k : f32[2,16,21]\ninput v : f32[2,21,24]\ninput n : f32[21,40]\n"
      "m = Transpose(n) {perm=[1,0]}\na = MatMul(q, k)\nb = Add(a, m)\nc = Softmax(b) {axis=-1}\nd = MatMul(c, v)\n"
      "e = Transpose(d) {perm=[1,0,2]}\noutput y = e");
  for (BatchCase& c : treated_cases(seed)) cases.push_back(std::move(c));
  // A decoder's few lines: of depths that no vector divides, heads side by side, and keys that heads share.
  add("few", ("input q : f32[3,2,5]\ninput p : f32[3,9,5]\ninput v : f32[3,9,3]\ninput m : f32[3,2,1]\n"
              "k = Transpose(p) {perm=[0,2,1]}\n" +
              product)
                 .c_str());
  add("token",
      "input q : f32[1,1,240]\ninput p : f32[1,600,240]\ninput w : f32[1,600,240]\n"
      "q1 = Reshape(q) {shape=[1,1,3,80]}\nq2 = Transpose(q1) {perm=[0,2,1,3]}\np1 = Reshape(p) {shape=[1,600,3,80]}\n"
      "k = Transpose(p1) {perm=[0,2,3,1]}\nw1 = Reshape(w) {shape=[1,600,3,80]}\nv = Transpose(w1) {perm=[0,2,1,3]}\n"
      "a = MatMul(q2, k)\nc = Softmax(a) {axis=-1}\nd = MatMul(c, v)\ne = Transpose(d) {perm=[0,2,1,3]}\n"
      "y = Reshape(e) {shape=[1,1,240]}\noutput y = y");
  add("shared",
      ("input q : f32[2,3,4,200]\ninput p : f32[2,1,40,200]\ninput v : f32[1,3,40,300]\ninput m : f32[2,1,1,40]\n"
       "k = Transpose(p) {perm=[0,1,3,2]}\n" +
       product)
          .c_str());
  return cases;
}

// Lanes are elements of a key's line, which has to be in one piece.
TEST(AttentionOnCpu, FewLinesReadKeysInOnePiece) {
  CostsOfAttention costs;
  const auto has_attention = [&](const std::string& key) {
    const BatchCase c = make_case("few",
                                  ("input q : f32[2,3,16]\ninput v : f32[2,21,24]\n" + key +
                                   "a = MatMul(q, k)\nc = Softmax(a) {axis=-1}\nd = MatMul(c, v)\noutput y = d")
                                      .c_str(),
                                  1);
    const auto plan = make_plan(c.graph, {.kind = TargetKind::Cpu}, costs);
    return plan.ok() && attention_of(*plan) != nullptr;
  };
  EXPECT_TRUE(has_attention("input p : f32[2,21,16]\nk = Transpose(p) {perm=[0,2,1]}\n"));
  EXPECT_FALSE(has_attention("input k : f32[2,16,21]\n"));
}

// Tiles of bfloat16 know one mask: what is chosen, or has a bias, too, stays in pieces there.
TEST(AttentionOnCpu, HasKernelsInEveryPrecision) {
  CostsOfAttention costs;
  for (const BatchCase& c : cases_on_cpu()) {
    const bool is_special = is_two(c) || is_chosen(c);
    const auto plan =
        make_plan(c.graph, {.kind = TargetKind::Cpu, .precision = Precision::Bf16, .has_tiles = true}, costs);
    ASSERT_TRUE(plan.ok()) << c.name << ": " << plan.error().message;
    if (is_special) {
      EXPECT_EQ(attention_of(*plan), nullptr) << c.name;
    }
    EXPECT_TRUE(emit(*plan).ok()) << c.name;
  }
}

TEST(AttentionOnCpu, AgreesWithTheInterpreter) {
  const std::vector<BatchCase> cases = cases_on_cpu();
  CostsOfAttention costs;
  for (const BatchCase& c : cases) {
    const auto plan = make_plan(c.graph, {.kind = TargetKind::Cpu}, costs);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const Kernel* const kernel = attention_of(*plan);
    ASSERT_NE(kernel, nullptr) << c.name;
    EXPECT_EQ(kernel->attention->bias.has_value(), is_two(c)) << c.name;
    EXPECT_EQ(kernel->attention->choice.has_value(), is_chosen(c)) << c.name;
  }
  for (const int threads : {1, 3})
    for (const std::string& line : run_batch(cases, costs, "attention", {.kind = TargetKind::Cpu, .threads = threads}))
      ADD_FAILURE() << line;
}

}  // namespace
}  // namespace gopt
