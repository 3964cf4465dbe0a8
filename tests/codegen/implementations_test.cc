// Every way of running a library kernel: the emitters print it, and it computes what the interpreter does.
#include "implementations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "batch.h"
#include "gopt/kernel_costs.h"
#include "gopt/tile.h"
#include "gopt/vector_product.h"

namespace gopt {
namespace {

using planner::Implementation;

// Prefers kernels of one row.
class CostsForRow : public KernelCosts {
 public:
  explicit CostsForRow(const Implementation& row) : row_(row) {}
  double time_ms(const Plan& plan, const Kernel& kernel) override {
    if (kernel.kind != row_.kind) return 0.01;  // reorders do not decide
    // Some rows ask for blocked layouts, one for plain ones.
    const bool is_wanted = kernel.kind != KernelKind::Convolution || plan.target.kind != TargetKind::Cpu ||
                           plan.buffer(kernel.output_buffers[0]).layout.is_blocked() || row_.name == "unfolded" ||
                           row_.name == "channel-lanes" || plan.target.without.contains("layout:blocked");
    return kernel.implementation == row_.name && is_wanted ? 0.5 : 1;
  }
  bool prices_unlikely() const override { return true; }

 private:
  const Implementation& row_;
};

// Large enough for the largest tile, and deep enough to be divided.
BatchCase tiles_case(KernelKind kind) {
  return kind == KernelKind::Convolution
             ? make_case("conv",
                         "input x : f32[1,128,4,50]\ninput w1 : f32[144,128,3,3]\na = Conv(x, w1) "
                         "{pads=[1,1,1,1]}\noutput y = a",
                         3)
             : make_case("product",
                         "input x : f32[200,1152]\ninput w1 : f32[1152,144]\na = MatMul(x, w1)\ninput w2 : "
                         "f32[144,144]\nb = Gemm(a, w2) {transB=1}\noutput y = b",
                         3);
}

BatchCase integers_case(KernelKind kind) {
  const std::string scales = "constant s = f32[] {0.03}\nconstant u = u8[] {117}\nconstant i = i8[] {0}\n";
  const std::string text =
      kind == KernelKind::Convolution
          ? "input x : u8[1,12,9,8]\ninput w1 : i8[20,12,3,3]\nd = Dequantize(x, s, u)\ne = Dequantize(w1, s, i)\n"
            "c = Conv(d, e) {pads=[1,1,1,1]}\noutput y = c"
          : "input x : u8[13,40]\ninput w1 : i8[40,70]\nd = Dequantize(x, s, u)\ne = Dequantize(w1, s, i)\n"
            "c = MatMul(d, e)\noutput y = c";
  return make_case("integers", scales + text, 3, 256);
}

BatchCase quantized_case(const std::string& operands) {
  return make_case("quantized",
                   operands +
                       "constant s = f32[] {0.03}\nconstant z = i8[] {4}\nd = Dequantize(w1, s, z)\n"
                       "c = MatMul(x, d)\noutput y = c",
                   3, 256);
}

BatchCase case_for(const Implementation& row) {
  if (row.name == "quantized") return quantized_case("input x : f32[13,64]\ninput w1 : i8[64,140]\n");
  if (parse_quantized_product(row.name)) return quantized_case("input x : f32[7,512]\ninput w1 : i8[512,260]\n");
  if (row.name == "integers") return integers_case(row.kind);
  if (parse_tile(row.name) || parse_warpgroup_tile(row.name)) return tiles_case(row.kind);
  if (parse_vector_product(row.name))
    return make_case(
        "vectors",
        "input x : f32[1,64,1,1]\ninput w1 : f32[48,64,1,1]\na = Conv(x, w1)\nb = Reshape(a) {shape=[1,48]}\n"
        "input w2 : f32[40,48]\nc = Gemm(b, w2) {transB=1}\noutput y = c",
        3);
  if (parse_patch_tile(row.name))
    return make_case("patches",
                     "input x : f32[1,3,33,40]\ninput w1 : f32[48,3,7,7]\na = Conv(x, w1) {strides=[2,2], "
                     "pads=[3,3,3,3]}\noutput y = a",
                     3);
  if (row.kind == KernelKind::Attention)
    return make_case("attention",
                     "input q : f32[2,140,32]\ninput k : f32[2,1100,32]\ninput v : f32[2,1100,32]\nl = Transpose(k) "
                     "{perm=[0,2,1]}\na = MatMul(q, l)\nb = Softmax(a) {axis=-1}\nc = MatMul(b, v)\noutput y = c",
                     3);
  if (row.name.starts_with("channels:") || row.name == "channels" || row.name == "channel-lanes" ||
      row.kind == KernelKind::Generated)
    return make_case("channels",
                     "input x : f32[1,16,9,11]\ninput w1 : f32[16,1,3,3]\na = Conv(x, w1) {group=16, pads=[1,1,1,1]}\n"
                     "b = MaxPool(a) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]}\ninput w2 : f32[8,16,1,1]\n"
                     "c = Conv(b, w2)\noutput y = c",
                     3);
  return row.kind == KernelKind::Convolution
             ? make_case(
                   "conv",
                   "input x : f32[1,32,13,11]\ninput w1 : f32[48,32,3,3]\ninput w2 : f32[48]\na = Conv(x, w1, w2) "
                   "{kernel_shape=[3,3], pads=[1,1,1,1]}\nb = Relu(a)\ninput w3 : f32[48,4,3,3]\n"
                   "c = Conv(b, w3) {group=12, pads=[1,1,1,1]}\ninput w4 : f32[40,48,1,1]\nd = Conv(c, w4)\n"
                   "input w5 : f32[32,40,1,1]\ne = Conv(d, w5) {strides=[2,2]}\nf = Add(e, e)\noutput y = f",
                   3)
             : make_case("product",
                         "input x : f32[37,64]\ninput w1 : f32[64,50]\na = MatMul(x, w1)\nb = Tanh(a)\nc = Slice(b) "
                         "{starts=[0], ends=[5], axes=[0], steps=[1]}\ninput w2 : f32[50,70]\nd = MatMul(c, w2)\n"
                         "e = Relu(d)\noutput y = e",
                         3);
}

bool has_row(const Plan& plan, const Implementation& row) {
  return std::any_of(plan.kernels.begin(), plan.kernels.end(), [&](const Kernel& kernel) {
    return kernel.kind == row.kind && kernel.implementation == row.name;
  });
}

// By the first precision in which a kernel of the case is run so; by the last, where none is.
Result<Plan> plan_by(const Implementation& row, int threads) {
  CostsForRow costs(row);
  std::optional<Result<Plan>> plan;
  for (const Precision precision : precisions_of(row.target)) {
    const Target target{.kind = row.target,
                        .threads = threads,
                        .vector_lanes = row.name == "blocks" ? 8 : 16,
                        .precision = precision,
                        .has_tiles = true};
    plan = make_plan(case_for(row).graph, target, costs);
    if (!plan->ok() || has_row(**plan, row)) break;
  }
  return *std::move(plan);
}

TEST(Implementations, AreAllPrinted) {
  for (const Implementation& row : planner::implementations()) {
    const auto plan = plan_by(row, 1);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_TRUE(has_row(*plan, row)) << "no kernel here is run by '" << row.name << "': give case_for one\n"
                                     << print_plan(*plan);
    EXPECT_NO_THROW({ EXPECT_TRUE(emit(*plan).ok()); });
    for (const Kernel& kernel : plan->kernels)
      EXPECT_TRUE(kernel.kind != row.kind || planner::implementation_of(*plan, kernel).name == kernel.implementation);
  }
}

// Where the processor is not known to have tiles, nothing is planned on them, whatever it would cost.
TEST(Implementations, TilesAreForProcessorsThatHaveThem) {
  int count = 0;
  for (const Implementation& row : planner::implementations()) {
    if (row.target != TargetKind::Cpu || row.name.rfind("tiles-", 0) != 0) continue;
    count++;
    for (const Precision precision : precisions_of(TargetKind::Cpu)) {
      CostsForRow costs(row);
      const auto plan = make_plan(case_for(row).graph, {.threads = 1, .precision = precision}, costs);
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      EXPECT_FALSE(has_row(*plan, row)) << row.name << " in " << to_string(precision);
    }
  }
  EXPECT_EQ(count, 6);
}

// Estimates do not choose them either: whether they are faster is for measured times to say.
TEST(Implementations, EstimatesDoNotChooseTiles) {
  const auto costs = analytic_kernel_costs({});
  for (const KernelKind kind : {KernelKind::Convolution, KernelKind::MatrixProduct})
    for (const Precision precision : precisions_of(TargetKind::Cpu)) {
      const auto plan =
          make_plan(tiles_case(kind).graph, {.threads = 1, .precision = precision, .has_tiles = true}, *costs);
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      for (const Kernel& kernel : plan->kernels)
        EXPECT_NE(kernel.implementation.rfind("tiles-", 0), 0u) << to_string(precision) << "\n" << print_plan(*plan);
    }
}

TEST(Implementations, AnUnknownOneIsNotPrinted) {
  for (const TargetKind target : {TargetKind::Cpu, TargetKind::Cuda}) {
    CostsForRow costs(planner::implementations()[0]);
    const auto made = make_plan(case_for(planner::implementations()[0]).graph, {target, 1}, costs);
    ASSERT_TRUE(made.ok());
    Plan plan = *made;
    for (Kernel& kernel : plan.kernels)
      if (kernel.kind == KernelKind::Convolution) kernel.implementation = "by magic";
    EXPECT_THROW((void)emit(plan), InternalError);
  }
}

// Sums that overflow: what is below zero is zero after a Relu, however far.
TEST(Implementations, ReluOfMinusInfinityIsZero) {
  const auto ones = [](int count) {
    std::string text = "1";
    for (int i = 1; i < count; i++) text += ", 1";
    return text;
  };
  BatchCase product = make_case(
      "product",
      "input x : f32[6,4]\nconstant w1 = f32[4,20] {" + ones(80) + "}\na = MatMul(x, w1)\nb = Relu(a)\noutput y = b",
      1);
  BatchCase groups = make_case("groups",
                               "input x : f32[2,24,5,5]\nconstant w1 = f32[24,4,3,3] {" + ones(24 * 4 * 9) +
                                   "}\na = Conv(x, w1) {group=6, pads=[1,1,1,1]}\nb = Relu(a)\noutput y = b",
                               1);
  for (BatchCase* c : {&product, &groups}) {
    Tensor& x = c->inputs.at("x");
    std::vector<double> values(static_cast<size_t>(x.count()), 3e38);
    std::fill_n(values.begin(), values.size() / 2, -3e38);
    x = Tensor::from_values(x.type(), x.dims(), values);
  }
  for (const Implementation& row : planner::implementations()) {
    if (row.target != TargetKind::Cpu || row.name == "winograd" || row.name == "floats" || row.name == "bf16x3")
      continue;
    CostsForRow costs(row);
    const std::string name = "overflow_" + std::to_string(static_cast<int>(row.kind)) + std::string(row.name);
    EXPECT_EQ(run_batch({row.kind == KernelKind::Convolution ? groups : product}, costs, name, {TargetKind::Cpu, 1}),
              std::vector<std::string>{})
        << row.name;
  }
}

// One tensor of weights that several convolutions read in orders of their own: transposed with other pads, strides and
// dilations, and not transposed.
TEST(Implementations, ConvolutionsOfBlocksShareWeights) {
  const auto rows = planner::implementations();
  const auto blocks =
      std::find_if(rows.begin(), rows.end(), [](const Implementation& r) { return r.name == "blocks"; });
  ASSERT_NE(blocks, rows.end());
  CostsForRow costs(*blocks);
  const std::string head = "input x : f32[1,16,9,8]\ninput w1 : f32[16,16,3,3]\n", transposed = "ConvTranspose(x, w1) ";
  const BatchCase shared = make_case("shared",
                                     head + "a = " + transposed + "{strides=[2,2]}\nb = " + transposed +
                                         "{strides=[2,2], pads=[1,1,1,1]}\nc = " + transposed +
                                         "{strides=[3,2], pads=[1,0,0,1]}\nd = " + transposed +
                                         "{strides=[2,2], dilations=[2,1]}\ne = Conv(x, w1) {pads=[1,1,1,1]}\nf = "
                                         "Relu(b)\noutput a = a\noutput f = f\n"
                                         "output c = c\noutput d = d\noutput e = e",
                                     1);
  const Target target{.threads = 2, .vector_lanes = 8};
  const auto plan = make_plan(shared.graph, target, costs);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(std::ranges::count(plan->kernels, "blocks", &Kernel::implementation), 5) << print_plan(*plan);
  EXPECT_EQ(run_batch({shared}, costs, "shared_weights", target), std::vector<std::string>{});
}

// Any number of rows that it takes, columns that fill no panel, and what is done before a result is stored.
TEST(Implementations, FewRowsAgreeWithTheInterpreter) {
  const auto rows = planner::implementations();
  const auto few = std::find_if(rows.begin(), rows.end(), [](const Implementation& r) { return r.name == "few-rows"; });
  ASSERT_NE(few, rows.end());
  CostsForRow costs(*few);
  for (const int threads : {1, 2}) {
    std::vector<BatchCase> cases;
    for (const int r : {3, 4, 5, 6, 7, 8, 11, 16}) {
      const std::string n = std::to_string(r), columns = std::to_string(16 * r + 7 * (r % 3));
      const std::string x = "input x : f32[" + n + ",33]\ninput w1 : f32[33," + columns + "]\n";
      cases.push_back(make_case("plain_" + n, x + "a = MatMul(x, w1)\noutput y = a", 1));
      cases.push_back(make_case(
          "bias_" + n,
          x + "input w2 : f32[" + columns + "]\na = MatMul(x, w1)\nb = Add(a, w2)\nc = Gelu(b)\noutput y = c", 2));
      cases.push_back(make_case(
          "sum_" + n,
          x + "input z : f32[" + n + "," + columns + "]\na = MatMul(x, w1)\nb = Add(a, z)\nc = Tanh(b)\noutput y = c",
          3));
      cases.push_back(make_case("gemm_" + n,
                                "input x : f32[" + n + ",33]\ninput w1 : f32[" + columns + ",33]\ninput w2 : f32[" +
                                    columns + "]\na = Gemm(x, w1, w2) {alpha=0.5, transB=1}\nb = Relu(a)\noutput y = b",
                                4));
    }
    cases.push_back(
        make_case("leading_axes", "input x : f32[2,3,20]\ninput w1 : f32[20,5]\na = MatMul(x, w1)\noutput y = a", 5));
    for (const BatchCase& c : cases) {
      const auto plan = make_plan(c.graph, {TargetKind::Cpu, threads}, costs);
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      EXPECT_TRUE(has_row(*plan, *few)) << print_plan(*plan);
    }
    EXPECT_EQ(run_batch(cases, costs, "few_rows_" + std::to_string(threads), {TargetKind::Cpu, threads}),
              std::vector<std::string>{});
  }
}

// Images in blocks of channels and with channels last, in steps, of channels that fill no block; residuals of products
// and of images; a depth of more than one part.
TEST(Implementations, PanelsAgreeWithTheInterpreter) {
  const auto all = planner::implementations();
  for (const KernelKind kind : {KernelKind::Convolution, KernelKind::MatrixProduct}) {
    const auto row = std::find_if(all.begin(), all.end(),
                                  [kind](const Implementation& r) { return r.name == "panels" && r.kind == kind; });
    ASSERT_NE(row, all.end());
    CostsForRow costs(*row);
    std::vector<BatchCase> cases;
    if (kind == KernelKind::MatrixProduct) {
      for (const std::string rows : {"9", "30", "2,13"}) {
        const std::string x = "input x : f32[" + rows + ",1100]\ninput w1 : f32[1100,45]\na = MatMul(x, w1)\n";
        cases.push_back(make_case("residual_" + std::to_string(cases.size()),
                                  x + "input z : f32[" + rows + ",45]\nb = Add(a, z)\nc = Relu(b)\noutput y = c", 1));
        cases.push_back(make_case("bias_" + std::to_string(cases.size()),
                                  x + "input w2 : f32[45]\nb = Add(a, w2)\nc = LeakyRelu(b) {alpha=0.1}\noutput y = c",
                                  2));
      }
      cases.push_back(make_case("gemm",
                                "input x : f32[30,33]\ninput w1 : f32[40,33]\ninput w2 : f32[40]\na = Gemm(x, w1, w2) "
                                "{alpha=0.5, transB=1}\nb = Gelu(a)\noutput y = b",
                                3));
    } else {
      for (const std::string step : {"1", "2", "3"}) {
        const std::string strides = "{strides=[" + step + "," + step + "]}";
        const std::string x =
            "input x : f32[2,24,9,11]\ninput w1 : f32[40,24,3,3]\na = Conv(x, w1) {pads=[1,1,1,1]}\n"
            "input w2 : f32[37,40,1,1]\nb = Conv(a, w2) " +
            strides + "\n";
        cases.push_back(make_case("relu_" + step, x + "c = Relu(b)\noutput y = c", 4));
        cases.push_back(make_case("residual_" + step,
                                  x + "input w3 : f32[37,40,1,1]\nc = Conv(a, w3) " + strides +
                                      "\nd = Add(b, c)\ne = Sigmoid(d)\noutput y = e",
                                  5));
      }
    }
    for (const bool is_blocked : {true, false}) {
      Target target{TargetKind::Cpu, 2};
      if (!is_blocked) target.without = {"layout:blocked"};
      for (const BatchCase& c : cases) {
        const auto plan = make_plan(c.graph, target, costs);
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        EXPECT_TRUE(has_row(*plan, *row)) << c.name << "\n" << print_plan(*plan);
      }
      EXPECT_EQ(run_batch(cases, costs, "panels_" + std::to_string(static_cast<int>(kind)) + (is_blocked ? "b" : "l"),
                          target),
                std::vector<std::string>{});
    }
  }
}

// A window that lies in the padding alone has zeros, which rows of panels are not, and of which some of oneDNN's
// kernels are unaware.
TEST(Implementations, WindowsMayLieInThePadding) {
  std::vector<BatchCase> cases;
  for (const std::string pads : {"0,0,1,1", "1,1,0,0", "0,2,1,0"})
    for (const std::string step : {"1", "2"})
      cases.push_back(make_case("pads_" + std::to_string(cases.size()),
                                "input x : f32[2,24,6,8]\ninput w1 : f32[40,24,3,3]\na = Conv(x, w1) {pads=[1,1,1,1]}\n"
                                "input w2 : f32[37,40,1,1]\nb = Conv(a, w2) {pads=[" +
                                    pads + "], strides=[" + step + "," + step + "]}\nc = Gelu(b)\noutput y = c",
                                6));
  cases.push_back(make_case(
      "volume",
      "input x : f32[3,72,4,6,6]\ninput w0 : f32[72,72,3,3,3]\na = Conv(x, w0) {pads=[1,1,1,1,1,1]}\n"
      "input w1 : f32[16,72,1,1,1]\nb = Conv(a, w1) {strides=[2,2,2], pads=[0,0,0,2,1,0]}\n"
      "input z : f32[3,16,3,4,3]\ninput w3 : f32[16,16,3,3,3]\nc = Conv(z, w3) {pads=[1,1,1,1,1,1]}\nd = Relu(c)\n"
      "e = Add(b, d)\nf = Gelu(e) {approximate=\"tanh\"}\ninput w2 : f32[16,16,3,3,3]\n"
      "g = Conv(f, w2) {pads=[1,1,1,1,1,1]}\noutput y = g",
      7));
  for (const Implementation& row : planner::implementations()) {
    if (row.target != TargetKind::Cpu || row.kind != KernelKind::Convolution) continue;
    CostsForRow costs(row);
    for (const bool is_blocked : {true, false}) {
      Target target{TargetKind::Cpu, 2};
      if (!is_blocked) target.without = {"layout:blocked"};
      EXPECT_EQ(run_batch(cases, costs, "padding_" + std::string(row.name) + (is_blocked ? "b" : "l"), target),
                std::vector<std::string>{})
          << row.name;
    }
  }
}

// In the place of what decides it by time: all threads and one alone in turns.
constexpr const char* kTakesTurns = R"(#pragma once
namespace gopt_runtime {
class Pace {
 public:
  bool is_alone() const { return runs_ % 2 == 1; }
  void ran(double, double) { runs_++; }
  void give_up() {}

 private:
  int runs_ = 0;
};
}  // namespace gopt_runtime
)";

TEST(Implementations, AllComputeTheSame) {
  for (const Implementation& row : planner::implementations()) {
    if (row.target != TargetKind::Cpu) continue;
    const BatchCase c = case_for(row);
    const auto plan = plan_by(row, 2);
    ASSERT_TRUE(plan.ok());
    const auto code = emit(*plan);
    ASSERT_TRUE(code.ok());
    const std::string folder = scratch_folder("implementation_" + std::string(row.name) + to_string(row.kind));
    ASSERT_TRUE(write_emitted(*code, folder, false).ok());
    std::ofstream(folder + "/gopt_pace.h") << kTakesTurns;
    const auto loaded = LoadedModel::build_and_load(folder, 2);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    LoadedModel model = *loaded;
    std::vector<Tensor> inputs;
    for (const Value& input : c.graph.inputs()) inputs.push_back(c.inputs.at(input.node->name));
    const auto expected = interpret(c.graph, c.inputs);
    ASSERT_TRUE(expected.ok());
    for (int run = 0; run < 4; run++) {
      const auto made = model.run(inputs);
      ASSERT_TRUE(made.ok()) << made.error().message;
      const std::vector<double> a = (*expected)[0].to_doubles(), b = (*made)[0].to_doubles();
      ASSERT_EQ(a.size(), b.size());
      double largest = 0, difference = 0;
      for (size_t i = 0; i < a.size(); i++) {
        ASSERT_TRUE(std::isfinite(b[i]));
        largest = std::max(largest, std::fabs(a[i]));
        difference = std::max(difference, std::fabs(a[i] - b[i]));
      }
      EXPECT_GT(largest, 0);
      const bool is_rounded = plan->target.precision == Precision::Bf16;
      EXPECT_LE(difference, (is_rounded ? 2e-2 : 2e-5) * largest) << row.name << ", run " << run;
    }
  }
}

}  // namespace
}  // namespace gopt
