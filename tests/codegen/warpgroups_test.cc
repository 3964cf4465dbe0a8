// Tiles of warpgroups (wgmma): each shape and number of blocks that share a depth, in every precision that they are
// for, windows and operands of all kinds. Without a device they are compiled and linked.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "cuda_device.h"
#include "gopt/text.h"
#include "gopt/tile.h"
#include "implementations.h"

namespace gopt {
namespace {

std::vector<std::string> tile_names() {
  std::vector<std::string> names;
  for (const planner::Implementation& row : planner::implementations())
    if (row.kind == KernelKind::MatrixProduct && parse_warpgroup_tile(row.name)) names.emplace_back(row.name);
  return names;
}

// Everything by one tile that can be.
class CostsOfTile : public KernelCosts {
 public:
  explicit CostsOfTile(std::string name) : name_(std::move(name)) {}
  double time_ms(const Plan& plan, const Kernel& kernel) override {
    if (kernel.kind == KernelKind::Group) return 100;
    if (!planner::is_library(kernel.kind)) return 0.01;
    const bool is_last =
        kernel.kind != KernelKind::Convolution || plan.buffer(kernel.output_buffers[0]).layout.is_channels_last();
    return (is_last ? 1 : 10) + (kernel.implementation == name_ ? 0 : 2);
  }
  bool is_measured(const Plan&, const Kernel&) const override { return true; }
  bool prices_unlikely() const override { return true; }

 private:
  std::string name_;
};

// More tiles than a device has room for, at once or with another; rows and columns that end within a tile; depths that
// end within a slice, of one slice and of fewer slices than blocks; every epilogue that is stored from registers, and
// others.
std::vector<BatchCase> cases() {
  return {
      make_case("window",
                "input x : f32[2,136,13,9]\ninput w1 : f32[152,136,3,3]\ninput w2 : f32[152]\n"
                "input z : f32[2,152,13,9]\na = Conv(x, w1, w2) {pads=[1,1,1,1]}\nb = Add(a, z)\nc = Relu(b)\n"
                "output y = c",
                1),
      make_case("strides",
                "input x : f32[3,72,17,23]\ninput w1 : f32[40,72,7,5]\na = Conv(x, w1) {strides=[2,1], "
                "pads=[3,2,1,0]}\nb = LeakyRelu(a) {alpha=0.2}\noutput y = b",
                2),
      make_case("dilations",
                "input x : f32[1,64,19,31]\ninput w1 : f32[72,64,3,3]\ninput z : f32[1,72,19,31]\na = Conv(x, w1) "
                "{dilations=[2,4], pads=[2,4,2,4]}\nb = Elu(a)\nc = Add(b, z)\noutput y = c",
                3),
      make_case("points",
                "input x : f32[1,24,150,160]\ninput w1 : f32[136,24,1,1]\ninput w2 : f32[136]\na = Conv(x, w1, w2)\n"
                "b = Relu(a)\nd = MaxPool(b) {kernel_shape=[3,3], strides=[3,3]}\noutput y = d",
                4),
      make_case("line", "input x : f32[2,80,301]\ninput w1 : f32[64,80,5]\na = Conv(x, w1) {pads=[4,0]}\noutput y = a",
                5),
      // By lines, as a kernel before makes it; what is constant is written by columns.
      make_case("rows",
                "input x : f32[3,67,1160]\ninput v : f32[1160,152]\ninput w2 : f32[152]\nr = Tanh(v)\n"
                "a = MatMul(x, r)\nb = Add(a, w2)\nc = Gelu(b)\noutput y = c",
                6),
      make_case("turned",
                "input x : f32[3,67,1160]\ninput w1 : f32[1160,150]\ninput w2 : f32[150]\na = MatMul(x, w1)\n"
                "b = Add(a, w2)\nc = Gelu(b)\noutput y = c",
                20),
      make_case("columns",
                "input x : f32[131,1160]\ninput w1 : f32[152,1160]\ninput z : f32[131,152]\n"
                "a = Gemm(x, w1, z) {alpha=0.5, transB=1}\ninput w2 : f32[96,152]\nb = Gemm(a, w2) {transB=1}\n"
                "output y = b",
                7),
      make_case("many",
                "input x : f32[2300,64]\ninput w1 : f32[1096,64]\na = Gemm(x, w1) {transB=1}\ninput w2 : f32[8,1096]\n"
                "b = Gemm(a, w2) {transB=1}\noutput y = b",
                8),
      // Both operands are made by kernels before.
      make_case("made",
                "input x : f32[72,64]\ninput v : f32[200,64]\nl = Relu(x)\nr = Tanh(v)\na = Gemm(l, r) {transB=1}\n"
                "output y = a",
                9),
      // Parts of longer lines, of which one begins where no chunk does.
      make_case("parts",
                "input x : f32[2,64,9,7]\ninput w1 : f32[4,64,1,1]\ninput w2 : f32[64,64,3,3]\n"
                "input w3 : f32[72,72,3,3]\ninput w4 : f32[40,64,3,3]\na = Conv(x, w1)\n"
                "b = Conv(x, w2) {pads=[1,1,1,1]}\nc = Concat(a, b, a) {axis=1}\nd = Conv(c, w3) {pads=[1,1,1,1]}\n"
                "e = Conv(b, w4) {pads=[1,1,1,1]}\noutput y = d\noutput z = e",
                10),
      // Windows that follow one another, whose lines are read as channels: of few channels, and of more.
      make_case("patches",
                "input x : f32[2,3,32,80]\ninput w1 : f32[40,3,16,16]\ninput w2 : f32[40]\n"
                "a = Conv(x, w1, w2) {strides=[16,16]}\nb = Relu(a)\noutput y = b",
                18),
      make_case("halves",
                "input x : f32[3,24,12,27]\ninput w1 : f32[72,24,2,3]\ninput w2 : f32[72]\ninput z : f32[3,72,6,9]\n"
                "a = Conv(x, w1, w2) {strides=[2,3]}\nb = Add(a, z)\noutput y = b",
                19),
  };
}

// What is done to the source first: of images that end within a tile, channels that end within a slice, steps, parts of
// longer lines, a depth that blocks divide.
std::vector<BatchCase> cases_with_prologue() {
  return {
      make_case("normalized",
                "input x : f32[3,64,9,7]\ninput w1 : f32[136,64,1,1]\ninput w2 : f32[136]\ninput w3 : f32[136]\n"
                "input w4 : f32[136]\ninput w5 : f32[136]\ninput w6 : f32[72,136,1,1]\ninput w7 : f32[40,136,3,3]\n"
                "a = Conv(x, w1)\nv = Exp(w5)\nn = BatchNormalization(a, w2, w3, w4, v) {epsilon=0.01}\n"
                "r = Relu(n)\nc = Conv(r, w6)\nd = Conv(a, w7) {pads=[1,1,1,1]}\noutput y = c\noutput z = d",
                31),
      make_case("scaled",
                "input x : f32[2,64,13,11]\ninput w1 : f32[72,64,1,1]\ninput w2 : f32[72,1,1]\n"
                "input w3 : f32[1,72,1,1]\ninput w4 : f32[96,72,1,1]\ninput w5 : f32[96]\na = Conv(x, w1)\n"
                "m = Mul(a, w2)\nn = Add(w3, m)\nr = Clip(n) {min=-0.5, max=0.75}\nc = Conv(r, w4, w5) "
                "{strides=[2,2]}\ne = Relu(c)\noutput y = e",
                32),
      make_case("parts",
                "input x : f32[1,64,14,14]\ninput w1 : f32[64,64,1,1]\ninput w2 : f32[448,64,1,1]\n"
                "input w3 : f32[512,1,1]\ninput w4 : f32[64,512,1,1]\na = Conv(x, w1)\nb = Conv(x, w2)\n"
                "c = Concat(a, b) {axis=1}\nm = Mul(c, w3)\nr = Relu(m)\nd = Conv(r, w4)\n"
                "e = Conv(a, w1)\noutput y = d\noutput z = e",
                33),
      make_case("gates",
                "input x : f32[3,64,5,5]\ninput w1 : f32[200,64,1,1]\ninput w2 : f32[200,200,1,1]\n"
                "input w3 : f32[40,200,1,1]\ninput z : f32[3,40,5,5]\na = Conv(x, w1)\np = GlobalAveragePool(a)\n"
                "g = Conv(p, w2)\ns = Sigmoid(g)\nm = Mul(a, s)\nc = Conv(m, w3)\ne = Add(c, z)\noutput y = e",
                34),
  };
}

// Groups, joined to runs that fill slices of channels, in all precisions: one run and several, of one tile of columns
// and of several; groups that fill slices themselves; all groups in less than a slice.
std::vector<BatchCase> cases_in_groups() {
  return {
      make_case("few",
                "input x : f32[2,32,13,9]\ninput w1 : f32[32,4,3,3]\ninput w2 : f32[32]\ninput z : f32[2,32,13,9]\n"
                "a = Conv(x, w1, w2) {group=8, pads=[1,1,1,1]}\nb = Add(a, z)\nc = Relu(b)\noutput y = c",
                11),
      make_case("one_run",
                "input x : f32[3,64,17,23]\ninput w1 : f32[256,16,3,3]\ninput w2 : f32[256]\n"
                "a = Conv(x, w1, w2) {group=4, strides=[2,2], pads=[1,1,1,1]}\nb = Relu(a)\noutput y = b",
                12),
      make_case("runs",
                "input x : f32[2,192,13,9]\ninput w1 : f32[768,16,3,3]\ninput w2 : f32[768]\n"
                "input z : f32[2,768,13,9]\na = Conv(x, w1, w2) {group=12, pads=[1,1,1,1]}\nb = Add(a, z)\n"
                "c = Relu(b)\noutput y = c",
                13),
      make_case("whole_groups",
                "input x : f32[1,128,19,31]\ninput w1 : f32[512,64,3,5]\na = Conv(x, w1) {group=2, dilations=[2,1], "
                "pads=[2,2,2,2]}\nb = Elu(a)\noutput y = b",
                14),
      make_case("long_groups",
                "input x : f32[1,256,9,7]\ninput w1 : f32[256,128,3,3]\ninput w2 : f32[256]\n"
                "a = Conv(x, w1, w2) {group=2, pads=[1,1,1,1]}\noutput y = a",
                15),
      // Parts of longer lines.
      make_case("parts_in_groups",
                "input x : f32[2,64,9,7]\ninput w1 : f32[64,64,1,1]\ninput w2 : f32[128,64,3,3]\n"
                "input w3 : f32[768,16,3,3]\ninput w4 : f32[256,8,3,3]\na = Conv(x, w1)\n"
                "b = Conv(x, w2) {pads=[1,1,1,1]}\nc = Concat(a, b) {axis=1}\n"
                "d = Conv(c, w3) {group=12, pads=[1,1,1,1]}\ne = Conv(b, w4) {group=16, pads=[1,1,1,1]}\n"
                "output y = d\noutput z = e",
                16),
      // One that begins where no chunk does.
      make_case("between_chunks",
                "input x : f32[2,64,9,7]\ninput w1 : f32[4,64,1,1]\ninput w2 : f32[64,64,3,3]\n"
                "input w3 : f32[72,72,3,3]\ninput w4 : f32[128,16,3,3]\na = Conv(x, w1)\n"
                "b = Conv(x, w2) {pads=[1,1,1,1]}\nc = Concat(a, b, a) {axis=1}\nd = Conv(c, w3) {pads=[1,1,1,1]}\n"
                "e = Conv(b, w4) {group=4, pads=[1,1,1,1]}\noutput y = d\noutput z = e",
                17),
  };
}
std::vector<BatchCase> all_cases() {
  std::vector<BatchCase> all = cases();
  for (BatchCase& c : cases_in_groups()) all.push_back(std::move(c));
  for (BatchCase& c : cases_with_prologue()) all.push_back(std::move(c));
  return all;
}

TEST(Warpgroups, NamesAreReadBack) {
  ASSERT_GE(tile_names().size(), 8U);
  for (const std::string& name : tile_names()) {
    const auto tile = parse_warpgroup_tile(name);
    ASSERT_TRUE(tile) << name;
    EXPECT_EQ(warpgroup_name(*tile), name);
    EXPECT_FALSE(parse_tile(name)) << name;
  }
  for (const char* other : {"", "wgmma", "wgmma:64x64", "wgmma:64x64:", "wgmma:64x64:2 ", "tiles:64x64:2"})
    EXPECT_FALSE(parse_warpgroup_tile(other)) << other;
}

size_t kernels_by(const Plan& plan, const std::string& name) {
  return static_cast<size_t>(std::ranges::count(plan.kernels, name, &Kernel::implementation));
}

// So the tests below run what they say.
TEST(Warpgroups, AreChosenByTheirTimes) {
  for (const std::string& name : tile_names())
    for (const BatchCase& c : all_cases()) {
      CostsOfTile costs(name);
      for (const Precision precision : {Precision::Fp32, Precision::Tf32, Precision::Fp16, Precision::Bf16}) {
        const auto plan = make_plan(c.graph, {.kind = TargetKind::Cuda, .precision = precision}, costs);
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        ASSERT_TRUE(check_plan(*plan).ok());
        const bool is_by_lines = c.name == "rows";  // of 16 bits only of 64 columns and more
        const bool has_floats = precision == Precision::Tf32 || precision == Precision::Fp32;
        const int columns = parse_warpgroup_tile(name)->columns;
        const bool is_meant = has_floats ? columns < 256 : !is_by_lines || columns >= 64;
        // Of halves, those whose results are halves, too, in runs of as many columns.
        if (columns == 256 && !has_floats && kernels_by(*plan, name) == 0) {
          const bool has_short_runs = c.name == "long_groups";
          EXPECT_TRUE(has_short_runs ||
                      std::ranges::any_of(plan->kernels,
                                          [&](const Kernel& k) {
                                            return planner::is_library(k.kind) &&
                                                   !is_half(plan->buffer(k.output_buffers[0]).element);
                                          }))
              << c.name;
          continue;
        }
        EXPECT_EQ(kernels_by(*plan, name) > 0, is_meant) << c.name << "\n" << print_plan(*plan);
      }
    }
}

TEST(Warpgroups, HavePrologues) {
  for (const std::string& name : tile_names())
    for (const BatchCase& c : cases_with_prologue()) {
      CostsOfTile costs(name);
      for (const Precision precision : {Precision::Fp32, Precision::Tf32, Precision::Fp16, Precision::Bf16}) {
        const auto plan = make_plan(c.graph, {.kind = TargetKind::Cuda, .precision = precision}, costs);
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        const auto is_it = [&](const Kernel& k) { return k.prologue && k.implementation == name; };
        const bool is_of_halves = precision == Precision::Fp16 || precision == Precision::Bf16;
        EXPECT_EQ(std::ranges::count_if(plan->kernels, is_it),
                  is_of_halves && parse_warpgroup_tile(name)->columns < 256 ? 1 : 0)
            << c.name << " in " << to_string(precision) << "\n"
            << print_plan(*plan);
      }
    }
}

// What the copy engine can describe, beside what it cannot: groups that end within slices or tiles, three axes, lines
// that are no whole chunks, far corners before and behind, taps far apart, long steps; batches of matrices.
TEST(Warpgroups, LeaveWhatTheyCannotReadToTiles) {
  struct Other {
    const char *image, *weights, *node;
    bool is_for_them = false;
    int least_columns = 32, most_columns = 256;  // of a tile
  };
  const Other others[] = {
      {"[1,64,9,9]", "[64,64,3,3]", "Conv(x, w1)", true},
      {"[1,128,9,9]", "[128,64,3,3]", "Conv(x, w1) {group=2}", true, 32, 64},
      {"[1,128,9,9]", "[256,64,3,3]", "Conv(x, w1) {group=2}", true, 32, 128},
      {"[1,128,9,9]", "[128,4,3,3]", "Conv(x, w1) {group=32}", true, 32, 64},
      {"[1,128,9,9]", "[192,4,3,3]", "Conv(x, w1) {group=32}", true, 32, 32},
      {"[1,128,9,9]", "[96,4,3,3]", "Conv(x, w1) {group=32}"},
      {"[1,32,9,9]", "[48,8,3,3]", "Conv(x, w1) {group=4}", true},
      {"[1,160,9,9]", "[160,16,3,3]", "Conv(x, w1) {group=10}"},
      {"[1,144,9,9]", "[144,12,3,3]", "Conv(x, w1) {group=12}"},
      {"[1,192,9,9]", "[192,96,3,3]", "Conv(x, w1) {group=2}"},
      {"[1,128,9,9]", "[128,1,3,3]", "Conv(x, w1) {group=128}"},
      {"[1,64,5,9,9]", "[64,64,3,3,3]", "Conv(x, w1)"},
      {"[1,60,9,9]", "[64,60,3,3]", "Conv(x, w1)"},
      {"[1,64,9,9]", "[64,64,130,1]", "Conv(x, w1) {pads=[127,0,127,0]}", true},
      {"[1,64,9,9]", "[64,64,130,1]", "Conv(x, w1) {pads=[128,0,128,0]}"},
      {"[1,64,300,9]", "[64,64,129,1]", "Conv(x, w1) {strides=[8,1], pads=[0,0,0,0]}"},
      {"[1,64,300,9]", "[64,64,3,1]", "Conv(x, w1) {dilations=[127,1], pads=[127,0,127,0]}", true},
      {"[1,64,300,9]", "[64,64,3,1]", "Conv(x, w1) {dilations=[128,1], pads=[127,0,127,0]}"},
      {"[1,64,90,90]", "[64,64,3,3]", "Conv(x, w1) {strides=[8,8]}", true},
      {"[1,64,90,90]", "[64,64,3,3]", "Conv(x, w1) {strides=[9,9]}"},
      {"[1,3,64,64]", "[64,3,16,16]", "Conv(x, w1) {strides=[16,16]}", true},
      {"[1,3,64,65]", "[64,3,16,16]", "Conv(x, w1) {strides=[16,16]}"},
      {"[1,4,12,12]", "[64,4,2,2]", "Conv(x, w1) {strides=[2,2]}", true},
      {"[1,4,13,13]", "[64,4,2,2]", "Conv(x, w1) {strides=[2,2]}"},
      // Lines of windows that end between two chunks.
      {"[1,3,35,35]", "[64,3,7,7]", "Conv(x, w1) {strides=[7,7]}"},
      {"[70,64]", "[72,64]", "Gemm(x, w1) {transB=1}", true},
      {"[2,70,64]", "[64,72]", "MatMul(x, w1)", true},
      {"[2,70,64]", "[64,72]", "MatMul(x, r)", true, 64},
      {"[2,70,64]", "[2,64,72]", "MatMul(x, w1)"},
      {"[70,60]", "[60,72]", "MatMul(x, w1)"},
      {"[70,64]", "[64,60]", "MatMul(x, w1)", true},
      {"[70,64]", "[64,60]", "MatMul(x, r)"},
      {"[64,72]", "[64,72]", "Gemm(x, w1) {transA=1}"},
  };
  for (const Other& other : others) {
    const BatchCase c =
        make_case("other",
                  "input x : f32" + std::string(other.image) + "\ninput w1 : f32" + other.weights + "\ninput v : f32" +
                      other.weights + "\nr = Tanh(v)\na = " + other.node + "\noutput y = a",
                  1);
    for (const std::string& name : tile_names()) {
      CostsOfTile costs(name);
      const auto plan = make_plan(c.graph, {.kind = TargetKind::Cuda, .precision = Precision::Fp16}, costs);
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      const int columns = parse_warpgroup_tile(name)->columns;
      const bool stores_floats = !std::string_view(other.node).starts_with("Conv");  // the graph's output
      const bool is_meant = other.is_for_them && columns >= other.least_columns && columns <= other.most_columns &&
                            (columns <= 128 || !stores_floats);
      EXPECT_EQ(kernels_by(*plan, name), is_meant ? 1U : 0U) << other.node << "\n" << print_plan(*plan);
    }
  }
}

// They are written anew before the first run, when no kernel has made them.
TEST(Warpgroups, LeaveGroupsOfMadeWeightsToTiles) {
  for (const char* weights : {"w1", "r"}) {
    const BatchCase c = make_case("made",
                                  "input x : f32[1,128,9,9]\ninput w1 : f32[128,4,3,3]\ninput v : f32[128,4,3,3]\n"
                                  "r = Tanh(v)\na = Conv(x, " +
                                      std::string(weights) + ") {group=32, pads=[1,1,1,1]}\noutput y = a",
                                  1);
    CostsOfTile costs("wgmma:64x64:1");
    const auto plan = make_plan(c.graph, {.kind = TargetKind::Cuda, .precision = Precision::Fp16}, costs);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ(kernels_by(*plan, "wgmma:64x64:1"), std::string(weights) == "w1" ? 1U : 0U) << print_plan(*plan);
  }
}

TEST(Warpgroups, JoinGroupsThatFillASlice) {
  constexpr int64_t kHalf = 2, kFloat = 4;
  EXPECT_EQ(groups_of_slice(1, 24, kHalf), 1);
  EXPECT_EQ(groups_of_slice(32, 4, kHalf), 16);
  EXPECT_EQ(groups_of_slice(32, 4, kFloat), 8);
  EXPECT_EQ(groups_of_slice(12, 16, kHalf), 4);
  EXPECT_EQ(groups_of_slice(2, 64, kHalf), 1);
  EXPECT_EQ(groups_of_slice(2, 192, kHalf), 1);
  EXPECT_EQ(groups_of_slice(3, 8, kHalf), 3);    // less than a slice
  EXPECT_EQ(groups_of_slice(10, 16, kHalf), 0);  // a slice would end within the channels
  EXPECT_EQ(groups_of_slice(12, 12, kHalf), 0);
  EXPECT_EQ(groups_of_slice(2, 96, kHalf), 0);
}

// Few are priced for a kernel, each for some; tiles that they outdo are not, unless they are switched off.
TEST(Warpgroups, FewArePricedForAKernel) {
  std::set<std::string> ever;
  for (const int rows : {49, 196, 784, 3136, 50176})
    for (const int columns : {64, 256, 1024})
      for (const int depth : {64, 576, 4608, 18432}) {
        const auto count = [](const std::set<std::string>& priced, auto parse) {
          return std::ranges::count_if(priced, [&](const std::string& name) { return parse(name).has_value(); });
        };
        const std::set<std::string> priced = priced_for_product(rows, columns, depth, {}),
                                    others = priced_for_product(rows, columns, depth, {"kernel:wgmma"});
        const std::set<std::string> by_columns = priced_for_product(rows, columns, depth, {}, true);
        ever.insert(priced.begin(), priced.end());
        ever.insert(by_columns.begin(), by_columns.end());
        EXPECT_LE(count(by_columns, parse_warpgroup_tile), 10) << rows << " by " << columns << " by " << depth;
        EXPECT_GE(count(priced, parse_warpgroup_tile), 1) << rows << " by " << columns << " by " << depth;
        EXPECT_LE(count(priced, parse_warpgroup_tile), 10) << rows << " by " << columns << " by " << depth;
        EXPECT_EQ(count(priced, parse_tile), 0);
        EXPECT_EQ(count(others, parse_warpgroup_tile), 0);
        EXPECT_GE(count(others, parse_tile), 1);
      }
  // Results of the operands' type, of which there are many.
  const auto halves = parse_graph(
      "graph halves\ninput x : f16[4096,768]\ninput w : f16[768,3072]\ny = MatMul(x, w)\noutput y = y\nend\n");
  ASSERT_TRUE(halves.ok());
  const std::set<std::string> priced = priced_for_halves(*halves, {});
  ever.insert(priced.begin(), priced.end());
  for (const std::string& name : tile_names()) EXPECT_TRUE(ever.contains(name)) << name;
}

TEST(Warpgroups, OneSizeCanBeSwitchedOff) {
  const std::string part = "kernel:wgmma:64x64";
  EXPECT_TRUE(std::ranges::count(plan_parts(TargetKind::Cuda), part) == 1);
  const auto count = [](const std::set<std::string>& names) {
    return std::ranges::count_if(names, [](const std::string& name) { return name.starts_with("wgmma:64x64:"); });
  };
  const std::set<std::string> all = priced_for_product(196, 256, 576, {}),
                              others = priced_for_product(196, 256, 576, {part});
  EXPECT_GE(count(all), 1);
  EXPECT_EQ(count(others), 0);
  const auto has = [](const std::set<std::string>& names, const char* family) {
    return std::ranges::any_of(names, [&](const std::string& name) { return name.starts_with(family); });
  };
  EXPECT_TRUE(has(others, "wgmma:")) << "none of the others is expected to be near the fastest";
  std::set<std::string> parts;
  for (const std::string& name : plan_parts(TargetKind::Cuda))
    if (name.starts_with("kernel:wgmma:")) parts.insert(name);
  const std::set<std::string> tiles = priced_for_product(196, 256, 576, parts);
  EXPECT_FALSE(has(tiles, "wgmma:"));
  EXPECT_TRUE(has(tiles, "tiles:")) << "which wgmma outdoes where there is any";
}

TEST(Warpgroups, CompileAndLink) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (obstacles().run.empty()) GTEST_SKIP() << "there is a device: the test below builds and runs";
  // The kernel is that of a shape, whatever the division.
  const std::pair<const char*, Precision> kernels[] = {
      {"wgmma:64x64:2", Precision::Fp16},  {"wgmma:64x128:1", Precision::Bf16}, {"wgmma:128x128:4", Precision::Tf32},
      {"wgmma:64x32:1", Precision::Fp32},  {"wgmma:64x64:1", Precision::Fp32},  {"wgmma:128x128:1", Precision::Fp32},
      {"wgmma:128x256:1", Precision::Fp16}};
  for (const auto& [name, precision] : kernels) {
    CostsOfTile costs(name);
    expect_agreement_on_device(all_cases(), costs, "warpgroups", precision);
  }
}

class WarpgroupTiles : public testing::TestWithParam<std::tuple<std::string, Precision>> {};
INSTANTIATE_TEST_SUITE_P(Each, WarpgroupTiles,
                         testing::Combine(testing::ValuesIn(tile_names()),
                                          testing::Values(Precision::Fp32, Precision::Tf32, Precision::Fp16,
                                                          Precision::Bf16)),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param) + "_" + to_string(std::get<1>(info.param));
                           std::ranges::replace(name, ':', '_');
                           return name;
                         });

TEST_P(WarpgroupTiles, AgreeWithTheInterpreter) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
  const auto& [name, precision] = GetParam();
  CostsOfTile costs(name);
  expect_agreement_on_device(all_cases(), costs, "warpgroups", precision);
}

}  // namespace
}  // namespace gopt
