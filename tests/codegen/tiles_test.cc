// Tiles on CUDA's tensor cores: each shape and number of blocks that share a tile's depth, in every precision and for
// operands in every order that they may lie in. Without a device they are compiled and linked.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
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
    if (row.kind == KernelKind::MatrixProduct && parse_tile(row.name)) names.emplace_back(row.name);
  return names;
}

// Kernels of 200 + n positions, or a few more, are run by the n-th tile.
constexpr int64_t kFirstRows = 200;
int64_t rows_for(size_t tile) { return kFirstRows + 4 * static_cast<int64_t>(tile); }

class CostsOfTiles : public KernelCosts {
 public:
  double time_ms(const Plan& plan, const Kernel& kernel) override {
    if (!planner::is_library(kernel.kind)) return 0.01;
    const Buffer& out = plan.buffer(kernel.output_buffers[0]);
    const bool is_last = kernel.kind != KernelKind::Convolution || out.layout.is_channels_last();
    const int64_t channels = kernel.kind == KernelKind::Convolution ? out.dims[1] : out.dims.back();
    const size_t tile = static_cast<size_t>(element_count(out.dims) / channels - kFirstRows) / 4;
    const bool is_meant = tile < names_.size() && kernel.implementation == names_[tile];
    return (is_last ? 1 : 10) + (is_meant ? 0 : parse_tile(kernel.implementation) ? 1 : 2);
  }
  bool is_measured(const Plan&, const Kernel&) const override { return true; }
  bool prices_unlikely() const override { return true; }

 private:
  std::vector<std::string> names_ = tile_names();
};

// Convolutions in groups: channels and results of one, and how many. Pieces of 4 bytes and of more in each precision;
// what has none; more than a tile's columns; groups that a tile does not divide.
struct Groups {
  int64_t in, out, count;
};
constexpr Groups kGroups[] = {{4, 4, 32}, {2, 6, 12}, {8, 8, 10}, {3, 5, 8}, {24, 72, 2}, {16, 20, 7}};

// Of one axis, and of three, of which some are merged, one has three channels and one groups.
struct Volume {
  const char *image, *weights, *attributes;
};
constexpr Volume kVolumes[] = {
    {"[1,136,ROWS]", "[72,136,5]", "pads=[4,0]"},
    {"[1,72,2,2,QUARTER]", "[72,72,3,3,3]", "pads=[1,1,1,1,1,1]"},
    {"[1,72,2,2,QUARTER]", "[72,72,1,3,3]", "pads=[0,1,1,0,1,1]"},
    {"[1,72,2,2,QUARTER]", "[72,72,3,1,1]", "pads=[1,0,0,1,0,0]"},
    {"[1,3,3,8,HALF]", "[72,3,3,7,5]", "strides=[1,2,2], pads=[0,3,2,0,3,2]"},
    {"[1,96,5,2,QUARTER]", "[72,24,2,2,3]", "strides=[2,1,1], dilations=[3,1,2], pads=[0,0,2,1,1,2], group=4"},
    {"[1,33,4,4,HALF]", "[49,33,3,2,2]", "strides=[2,2,2], pads=[1,0,0,1,0,0]"},
};

// An image of 4 lines; depth that ends within a slice, columns that end within a tile.
std::vector<BatchCase> cases_for(size_t tile) {
  const std::string n = std::to_string(tile), rows = std::to_string(rows_for(tile)),
                    half = std::to_string(rows_for(tile) / 2);
  const std::string width = std::to_string(rows_for(tile) / 4), wider = std::to_string(rows_for(tile) / 2 + 2);
  const auto seed = static_cast<uint64_t>(tile) + 1;
  const Groups& g = kGroups[tile % std::size(kGroups)];
  const Volume& v = kVolumes[tile % std::size(kVolumes)];
  std::string image = v.image;
  for (const auto& [word, extent] : {std::pair("ROWS", rows), {"HALF", half}, {"QUARTER", width}})
    if (const size_t at = image.find(word); at != std::string::npos) image.replace(at, std::strlen(word), extent);
  return {make_case("volume" + n,
                    "input x : f32" + image + "\ninput w1 : f32" + v.weights + "\ninput w2 : f32[" +
                        std::string(v.weights + 1, std::strchr(v.weights, ',')) + "]\na = Conv(x, w1, w2) {" +
                        v.attributes + "}\nb = Relu(a)\noutput y = b",
                    seed),
          make_case("window" + n,
                    "input x : f32[1,136,4," + width +
                        "]\ninput w1 : f32[152,136,3,3]\ninput w2 : f32[152]\ninput z : f32[1,152,4," + width +
                        "]\na = Conv(x, w1, w2) {pads=[1,1,1,1]}\nb = Add(a, z)\nc = Relu(b)\noutput y = c",
                    seed),
          make_case("groups" + n,
                    "input x : f32[1," + std::to_string(g.in * g.count) + ",4," + width + "]\ninput w1 : f32[" +
                        std::to_string(g.out * g.count) + "," + std::to_string(g.in) + ",3,3]\ninput w2 : f32[" +
                        std::to_string(g.out * g.count) + "]\ninput z : f32[1," + std::to_string(g.out * g.count) +
                        ",4," + width + "]\na = Conv(x, w1, w2) {pads=[1,1,1,1], group=" + std::to_string(g.count) +
                        "}\nb = Add(a, z)\nc = Sigmoid(b)\noutput y = c",
                    seed),
          // Three channels, filled up to four.
          make_case("few" + n,
                    "input x : f32[1,3,8," + half +
                        "]\ninput w1 : f32[72,3,7,5]\ninput w2 : f32[72]\na = Conv(x, w1, w2) "
                        "{strides=[2,2], pads=[3,2,3,2]}\nb = Relu(a)\noutput y = b",
                    seed),
          // What fills no chunk, steps, and pads that differ.
          make_case("odd" + n,
                    "input x : f32[1,131,9," + wider +
                        "]\ninput w1 : f32[149,131,3,3]\na = Conv(x, w1) {strides=[2,2], dilations=[1,2], "
                        "pads=[0,1,0,1]}\nb = Elu(a)\noutput y = b",
                    seed),
          make_case("lines" + n,
                    "input x : f32[2," + half +
                        ",1160]\ninput v : f32[1160,152]\ninput w2 : f32[152]\nr = Tanh(v)\na = MatMul(x, r)\n"
                        "b = Add(a, w2)\nc = Gelu(b)\noutput y = c",
                    seed),
          make_case("turned" + n,
                    "input x : f32[2," + half + ",96]\ninput w1 : f32[96,150]\na = MatMul(x, w1)\noutput y = a", seed),
          make_case("columns" + n,
                    "input x : f32[" + rows + ",1160]\ninput w1 : f32[149,1160]\ninput z : f32[" + rows +
                        ",149]\na = Gemm(x, w1, z) {alpha=0.5, transB=1}\noutput y = a",
                    seed)};
}

std::vector<BatchCase> all_cases() {
  std::vector<BatchCase> cases;
  for (size_t tile = 0; tile < tile_names().size(); tile++)
    for (BatchCase& c : cases_for(tile)) cases.push_back(std::move(c));
  return cases;
}

TEST(Tiles, NamesAreReadBack) {
  const std::vector<std::string> names = tile_names();
  ASSERT_GT(names.size(), 8U);
  for (const std::string& name : names) {
    const auto tile = parse_tile(name);
    ASSERT_TRUE(tile) << name;
    EXPECT_EQ(to_string(*tile), name);
  }
  for (const char* other : {"", "tiles", "tiles:", "tiles:64", "tiles:64x64", "tiles:64x64:", "tiles:64x64:2 ",
                            "tile:64x64:2", "tiles:ax64:2", "cudnn"})
    EXPECT_FALSE(parse_tile(other)) << other;
}

// So the tests below run each tile for convolutions and products.
TEST(Tiles, AreChosenByTheirTimes) {
  CostsOfTiles costs;
  const std::vector<std::string> names = tile_names();
  for (size_t tile = 0; tile < names.size(); tile++)
    for (const BatchCase& c : cases_for(tile)) {
      const auto plan = make_plan(c.graph, {.kind = TargetKind::Cuda}, costs);
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      ASSERT_TRUE(check_plan(*plan).ok());
      const bool has = std::any_of(plan->kernels.begin(), plan->kernels.end(),
                                   [&](const Kernel& kernel) { return kernel.implementation == names[tile]; });
      EXPECT_TRUE(has) << c.name << "\n" << print_plan(*plan);
    }
}

// Three channels of an image are filled up to four, which are copied at once.
TEST(Tiles, FewChannelsAreFilledUp) {
  CostsOfTiles costs;
  const std::vector<BatchCase> cases = cases_for(0);
  const BatchCase& first = *std::ranges::find(cases, std::string("few0"), &BatchCase::name);
  for (const bool is_switched_off : {false, true}) {
    Target target{.kind = TargetKind::Cuda, .precision = Precision::Fp16};
    if (is_switched_off) target.without.insert("kernel:tiles");
    const auto plan = make_plan(first.graph, target, costs);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const auto convolution = std::ranges::find(plan->kernels, KernelKind::Convolution, &Kernel::kind);
    ASSERT_NE(convolution, plan->kernels.end());
    for (const BufferId read : {convolution->input_buffers[0], convolution->input_buffers[1]})
      EXPECT_EQ(plan->buffer(read).layout.is_blocked(), !is_switched_off) << print_plan(*plan);
    const auto code = emit(*plan);
    ASSERT_TRUE(code.ok()) << code.error().message;
    std::string all;
    for (const auto& file : code->files) all += file.text;
    EXPECT_EQ(all.find("Copies::Positions") != std::string::npos, !is_switched_off);
  }
}

// Of some twenty a few are priced for a kernel, and each is for one.
TEST(Tiles, FewArePricedForAKernel) {
  std::set<std::string> ever;
  for (const int rows : {1, 49, 196, 784, 3136, 50000})
    for (const int columns : {32, 64, 256, 1000})
      for (const int depth : {64, 576, 4608}) {
        // Without those that outdo them.
        const std::set<std::string> priced = priced_for_product(rows, columns, depth, {"kernel:wgmma"});
        EXPECT_GE(priced.size(), 1U) << rows << " by " << columns;
        EXPECT_LT(priced.size(), 18U) << rows << " by " << columns;
        ever.insert(priced.begin(), priced.end());
      }
  for (const std::string& name : tile_names()) EXPECT_TRUE(ever.contains(name)) << name;
}

void expect_agreement(const std::vector<BatchCase>& cases, const std::string& name, Precision precision) {
  CostsOfTiles costs;
  expect_agreement_on_device(cases, costs, name, precision);
}

TEST(Tiles, CompileAndLink) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (obstacles().run.empty()) GTEST_SKIP() << "there is a device: the tests below build and run";
  for (const Precision precision : {Precision::Fp32, Precision::Fp16})
    expect_agreement(cases_for(1), "tiles", precision);
}

TEST(Tiles, AgreeWithTheInterpreter) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
  for (const Precision precision : {Precision::Fp32, Precision::Tf32, Precision::Fp16, Precision::Bf16})
    expect_agreement(all_cases(), "tiles", precision);
}

// Batches whose operands are broadcast, products whose right operand another kernel makes, halves as the graph has
// them.
TEST(Tiles, BatchesAgreeWithTheInterpreter) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
  const std::vector<BatchCase> cases{
      make_case("attention",
                "input q : f32[2,3,34,64]\ninput k : f32[2,3,64,40]\ninput v : f32[2,3,40,64]\na = MatMul(q, k)\nb = "
                "Softmax(a) "
                "{axis=-1}\nc = MatMul(b, v)\noutput y = c",
                1),
      make_case("broadcast",
                "input q : f32[2,3,68,64]\ninput k : f32[1,3,64,40]\nl = Relu(k)\na = MatMul(q, l)\noutput y = a", 2),
      make_case("odd", "input q : f32[3,68,33]\ninput k : f32[3,33,17]\na = MatMul(q, k)\noutput y = a", 3)};
  for (const Precision precision : {Precision::Fp32, Precision::Fp16}) expect_agreement(cases, "batches", precision);
}

// fp32 is a sum of two numbers on the tensor cores: neither the largest numbers nor infinities nor NaN are lost by
// that.
TEST(Tiles, ExtremeNumbersAgreeWithTheInterpreter) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
  BatchCase c = make_case("extreme", "input x : f32[5,64]\ninput z : f32[64,40]\na = MatMul(x, z)\noutput y = a", 1);
  constexpr float kMost = std::numeric_limits<float>::max(), kInfinity = std::numeric_limits<float>::infinity();
  const double numbers[] = {kMost, -kMost, kInfinity, -kInfinity, std::nan("")};
  std::vector<double> left(5 * 64, 0.0), right(64 * 40, 1e-3);
  for (size_t row = 0; row < 5; row++) left[row * 64 + row] = numbers[row];
  for (size_t line = 0; line < 64; line++) right[line * 40] = 0.99999994;
  c.inputs.at("x") = Tensor::from_values(ElementType::Float32, {5, 64}, left);
  c.inputs.at("z") = Tensor::from_values(ElementType::Float32, {64, 40}, right);
  expect_agreement({c}, "extreme", Precision::Fp32);
}

// ---- channels in the lines of a whole ----

// Prefers tiles on images of channels last, and of such plans that of fewest kernels.
class CostsOfKernels : public KernelCosts {
 public:
  double time_ms(const Plan& plan, const Kernel& kernel) override {
    if (kernel.kind != KernelKind::Convolution) return 1;
    return plan.buffer(kernel.output_buffers[0]).layout.is_channels_last() && parse_tile(kernel.implementation) ? 0.5
                                                                                                                : 9;
  }
  bool is_measured(const Plan&, const Kernel&) const override { return true; }
};

std::vector<BatchCase> cases_of_parts() {
  return {
      make_case(
          "joined",
          "input x : f32[2,16,9,7]\ninput w1 : f32[24,16,1,1]\ninput w2 : f32[16,16,3,3]\ninput w3 : f32[8,40,3,3]\n"
          "a = Conv(x, w1)\nb = Relu(a)\nc = Conv(x, w2) {pads=[1,1,1,1]}\nd = Relu(c)\ne = Concat(b, d) {axis=1}\n"
          "f = Conv(e, w3) {pads=[1,1,1,1]}\noutput y = f",
          1),
      // Each joins all before it, as in a DenseNet; a pool and a sum read parts.
      make_case("grown",
                "input x : f32[1,16,8,8]\ninput w1 : f32[16,16,3,3]\ninput w2 : f32[8,16,3,3]\ninput w3 : "
                "f32[8,24,3,3]\ninput w4 : f32[24,32,1,1]\n"
                "a = Conv(x, w1) {pads=[1,1,1,1]}\nb = Conv(a, w2) {pads=[1,1,1,1]}\nc = Concat(a, b) {axis=1}\n"
                "d = Conv(c, w3) {pads=[1,1,1,1]}\ne = Concat(c, d) {axis=1}\nf = Conv(e, w4)\ng = Add(f, c)\nh = "
                "MaxPool(g) {kernel_shape=[2,2], strides=[2,2]}\n"
                "output y = h",
                2),
      make_case("cut",
                "input x : f32[2,16,6,5]\ninput w1 : f32[40,16,1,1]\ninput w2 : f32[8,16,3,3]\ninput w3 : "
                "f32[16,24,1,1]\na = Conv(x, w1)\n"
                "b, c = Split(a) {axis=1, split=[16,24]}\nd = Conv(b, w2) {pads=[1,1,1,1]}\ne = Conv(c, w3)\nf = "
                "Add(e, b)\ng = Concat(d, f) {axis=1}\n"
                "h = GlobalAveragePool(g)\noutput y = h",
                3),
      // Parts that begin where no eight elements do are copied.
      make_case("odd",
                "input x : f32[2,16,6,5]\ninput w1 : f32[5,16,1,1]\ninput w2 : f32[11,16,3,3]\ninput w3 : "
                "f32[8,16,1,1]\na = Conv(x, w1)\n"
                "b = Conv(x, w2) {pads=[1,1,1,1]}\nc = Concat(a, b) {axis=1}\nd = Conv(c, w3)\noutput y = d",
                4),
      make_case("pixels",
                "input x : f32[3,16,4,4]\ninput w1 : f32[16,16,1,1]\ninput w2 : f32[8,16,1,1]\na = Conv(x, w1)\nb = "
                "Conv(x, w2)\nc = GlobalAveragePool(a)\n"
                "d = GlobalAveragePool(b)\ne = Concat(c, d) {axis=1}\nf = Flatten(e)\noutput y = f",
                5)};
}

TEST(Parts, ALineSaysWhereTheNextPositionIs) {
  const Layout own = Layout::channels_last(), part = Layout::channels_last(48);
  const std::vector<int64_t> dims{2, 5, 3, 4};
  EXPECT_EQ(own.bytes(dims, ElementType::Float32), 2 * 5 * 3 * 4 * 4);
  EXPECT_EQ(part.bytes(dims, ElementType::Float32), ((2 * 3 * 4 - 1) * 48 + 5) * 4) << "to the last element";
  const Shape shape{Index(2), Index(5), Index(3), Index(4)};
  const std::vector<Index> last{Index(1), Index(4), Index(2), Index(3)};
  EXPECT_EQ(own.offset(shape, last), Index(2 * 5 * 3 * 4 - 1));
  EXPECT_EQ(part.offset(shape, last), Index((2 * 3 * 4 - 1) * 48 + 4));
  EXPECT_EQ(to_string(part), "channels-last/48");
  EXPECT_NE(own, part);
  EXPECT_EQ(Layout::channels_last_in_parts().with_line(0), own);
}

TEST(Parts, LieInTheLinesOfTheWhole) {
  CostsOfKernels costs;
  for (const BatchCase& c : cases_of_parts()) {
    const auto plan = make_plan(c.graph, {.kind = TargetKind::Cuda}, costs);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const Status checked = check_plan(*plan);
    ASSERT_TRUE(checked.ok()) << checked.error().message << "\n" << print_plan(*plan);
    const bool has_lines =
        std::any_of(plan->buffers.begin(), plan->buffers.end(), [](const Buffer& b) { return b.layout.line() > 0; });
    EXPECT_EQ(has_lines, c.name != "odd" && c.name != "pixels") << c.name << "\n" << print_plan(*plan);
    const bool copies = std::any_of(plan->kernels.begin(), plan->kernels.end(), [](const Kernel& kernel) {
      return kernel.name.find("_Concat") != std::string::npos;
    });
    EXPECT_NE(copies, has_lines) << c.name << "\n" << print_plan(*plan);
    EXPECT_TRUE(emit(*plan).ok());
  }
}

TEST(Parts, CanBeSwitchedOff) {
  CostsOfKernels costs;
  Target target{.kind = TargetKind::Cuda};
  target.without.insert("layout:channels-last-in-parts");
  const auto parts = plan_parts(TargetKind::Cuda);
  EXPECT_NE(std::find(parts.begin(), parts.end(), *target.without.begin()), parts.end());
  const auto plan = make_plan(cases_of_parts()[0].graph, target, costs);
  ASSERT_TRUE(plan.ok());
  for (const Buffer& buffer : plan->buffers) EXPECT_EQ(buffer.layout.line(), 0);
}

TEST(Parts, AgreeWithTheInterpreter) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
  CostsOfKernels costs;
  for (const Precision precision : {Precision::Fp32, Precision::Fp16})
    expect_agreement_on_device(cases_of_parts(), costs, "parts", precision);
}

}  // namespace
}  // namespace gopt
