// Convolutions and pools that need nothing of each other in one launch, and windows over channels side by side:
// depthwise convolutions and pools by kernels of our own on CUDA. Without a device they are compiled and linked.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cuda_device.h"
#include "gopt/channels.h"
#include "gopt/kernel_spec.h"
#include "gopt/tile.h"
#include "implementations.h"

namespace gopt {
namespace {

constexpr const char* kTiles[] = {"tiles:16x64:2", "tiles:64x64:1", "tiles:32x32:8", "tiles:128x128:1"};

// Images of 8 lines and more are made by the n-th tile, and groups of them are short.
class CostsOfGroups : public KernelCosts {
 public:
  double time_ms(const Plan& plan, const Kernel& kernel) override {
    const bool is_group = kernel.kind == KernelKind::Group;
    if (!is_group && kernel.kind != KernelKind::Convolution) return is_by_channels(kernel) ? 0.01 : 0.02;
    const Buffer& out = plan.buffer(kernel.output_buffers[0]);
    const bool is_meant = kernel.implementation == kTiles[static_cast<size_t>(out.dims[2]) % std::size(kTiles)];
    if (is_group) return is_meant ? group_ms : 9;
    return !out.layout.is_channels_last() ? 9 : is_meant ? 1 : parse_tile(kernel.implementation) ? 2 : 5;
  }
  bool is_measured(const Plan&, const Kernel& kernel) const override {
    return kernel.kind != KernelKind::Group || knows_groups;
  }
  bool prices_unlikely() const override { return true; }

  double group_ms = 0.5;
  bool knows_groups = true;
};

// A block of four branches after a convolution, one of them a pool, of images of so many lines; two levels of siblings.
BatchCase block(int lines, const std::string& pool) {
  const std::string n = std::to_string(lines);
  return make_case(
      "block" + n,
      "input x : f32[2,16," + n + ",7]\ninput w0 : f32[32,16,1,1]\ns = Conv(x, w0)\nt = Relu(s)\n" +
          "input w1 : f32[24,32,1,1]\ninput w2 : f32[24]\na = Conv(t, w1, w2)\nb = Relu(a)\n" +
          "input w3 : f32[16,32,1,1]\nc = Conv(t, w3)\nd = Sigmoid(c)\ninput w4 : f32[72,32,3,3]\n" +
          "e = Conv(t, w4) {pads=[1,1,1,1]}\np = " + pool +
          "\ninput w5 : f32[40,16,5,5]\ninput w6 : f32[40]\nf = Conv(d, w5, w6) {pads=[2,2,2,2]}\ng = Gelu(f)\n"
          "input w7 : f32[8,32,1,1]\nh = Conv(p, w7)\ni = Concat(b, e, g, h) {axis=1}\n"
          "input w8 : f32[16,144,1,1]\nj = Conv(i, w8)\noutput y = j",
      static_cast<uint64_t>(lines));
}

std::vector<BatchCase> group_cases() {
  std::vector<BatchCase> cases{
      block(8, "MaxPool(t) {kernel_shape=[3,3], strides=[1,1], pads=[1,1,1,1]}"),
      block(9, "AveragePool(t) {kernel_shape=[3,3], strides=[1,1], pads=[1,1,1,1]}"),
      block(10, "AveragePool(t) {kernel_shape=[3,3], strides=[1,1], pads=[1,1,1,1], count_include_pad=1}"),
      block(11, "MaxPool(t) {kernel_shape=[5,1], strides=[1,1], pads=[2,0,2,0]}"),
      // Siblings of other extents, one of which adds a tensor.
      make_case("steps",
                "input x : f32[1,16,18,14]\ninput w0 : f32[32,16,3,3]\ns = Conv(x, w0) {pads=[1,1,1,1]}\n"
                "t = Relu(s)\ninput w1 : f32[64,32,1,1]\nn = Conv(t, w1) {strides=[2,2]}\na = Relu(n)\ninput w2 : "
                "f32[48,32,3,3]\n"
                "b = Conv(t, w2) {pads=[1,1,1,1], strides=[2,2]}\nc = Relu(b)\ninput w3 : f32[64,48,1,1]\n"
                "d = Conv(c, w3)\ne = Add(d, a)\nf = Relu(e)\noutput y = f",
                5)};
  return cases;
}

const Kernel* find_group(const Plan& plan) {
  const auto found = std::ranges::find(plan.kernels, KernelKind::Group, &Kernel::kind);
  return found == plan.kernels.end() ? nullptr : &*found;
}

TEST(Siblings, AreLaunchedTogetherWhereThatIsMeasuredToBeFaster) {
  for (const BatchCase& c : group_cases()) {
    CostsOfGroups costs;
    const auto plan = make_plan(c.graph, {.kind = TargetKind::Cuda, .precision = Precision::Fp16}, costs);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const Status checked = check_plan(*plan);
    EXPECT_TRUE(checked.ok()) << checked.error().message << "\n" << print_plan(*plan);
    const Kernel* group = find_group(*plan);
    ASSERT_TRUE(group) << c.name << "\n" << print_plan(*plan);
    const bool has_pool = std::ranges::any_of(group->members, is_by_channels);
    EXPECT_EQ(has_pool, c.name != "steps") << print_plan(*plan);
    EXPECT_EQ(group->members.size(), has_pool ? 4U : 2U) << print_plan(*plan);
    EXPECT_TRUE(emit(*plan).ok());
  }
}

TEST(Siblings, AreApartElsewhere) {
  const BatchCase c = group_cases()[0];
  CostsOfGroups slow, unknown;
  slow.group_ms = 20;
  unknown.knows_groups = false;
  Target target{.kind = TargetKind::Cuda, .precision = Precision::Fp16};
  for (CostsOfGroups* costs : {&slow, &unknown}) {
    const auto plan = make_plan(c.graph, target, *costs);
    ASSERT_TRUE(plan.ok());
    EXPECT_FALSE(find_group(*plan)) << print_plan(*plan);
  }
  CostsOfGroups fast;
  target.without.insert(kGroupedLaunch);
  const auto plan = make_plan(c.graph, target, fast);
  ASSERT_TRUE(plan.ok());
  EXPECT_FALSE(find_group(*plan)) << print_plan(*plan);
}

// They are proposed to be timed until their times are known, and a group taken out of its plan is the same kernel.
TEST(Siblings, AreProposedToBeTimed) {
  const BatchCase c = group_cases()[0];
  const Target target{.kind = TargetKind::Cuda, .precision = Precision::Fp16};
  CostsOfGroups costs;
  costs.knows_groups = false;
  const auto specs = untimed_groups(c.graph, target, costs);
  ASSERT_TRUE(specs.ok()) << specs.error().message;
  EXPECT_GE(specs->size(), 2U);
  const Plan timed = timing_plan(*specs);
  ASSERT_EQ(timed.kernels.size(), specs->size());
  for (size_t k = 0; k < specs->size(); k++) {
    EXPECT_EQ(kernel_signature((*specs)[k]), kernel_signature(timed, timed.kernels[k]));
    EXPECT_EQ((*specs)[k].kernel.kind, KernelKind::Group);
  }
  EXPECT_TRUE(emit(timed).ok());
  costs.knows_groups = true;
  EXPECT_TRUE(untimed_groups(c.graph, target, costs)->empty());
  const auto plan = make_plan(c.graph, target, costs);
  ASSERT_TRUE(plan.ok() && find_group(*plan));
  const std::string taken = kernel_signature(*plan, *find_group(*plan));
  EXPECT_TRUE(std::ranges::any_of(*specs, [&](const KernelSpec& spec) { return kernel_signature(spec) == taken; }));
}

TEST(Siblings, CompileAndLink) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (obstacles().run.empty()) GTEST_SKIP() << "there is a device: the tests below build and run";
  CostsOfGroups costs;
  expect_agreement_on_device({group_cases()[0]}, costs, "siblings", Precision::Fp16);
}

TEST(Siblings, AgreeWithTheInterpreter) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
  for (const Precision precision : {Precision::Fp32, Precision::Tf32, Precision::Fp16, Precision::Bf16}) {
    CostsOfGroups costs;
    expect_agreement_on_device(group_cases(), costs, "siblings", precision);
  }
}

// ---- windows over channels ----

class CostsOfChannels : public KernelCosts {
 public:
  explicit CostsOfChannels(std::string_view best = kByChannels) : best_(best) {}
  double time_ms(const Plan& plan, const Kernel& kernel) override {
    if (is_by_channels(kernel)) return kernel.implementation == best_ ? 0.05 : 0.1;
    if (kernel.kind != KernelKind::Convolution) return 0.2;
    return plan.buffer(kernel.output_buffers[0]).layout.is_channels_last() ? 1 : 9;
  }
  bool is_measured(const Plan&, const Kernel&) const override { return true; }
  bool prices_unlikely() const override { return true; }

 private:
  std::string_view best_;
};

BatchCase depthwise(const std::string& name, const std::string& image, const std::string& channels,
                    const std::string& window, const std::string& attributes, const std::string& rest) {
  return make_case(name,
                   "input x : f32" + image + "\ninput w1 : f32[" + channels + ",1," + window + "]\ninput w2 : f32[" +
                       channels + "]\na = Conv(x, w1, w2) {group=" + channels + ", " + attributes + "}\n" + rest,
                   name.size());
}

// Known windows and others, strides, dilations, unequal pads, what is added and applied, few and many channels.
std::vector<BatchCase> channel_cases() {
  const auto pool = [](const std::string& name, const std::string& channels, const std::string& text) {
    return make_case(name,
                     "input x : f32[2,16,13,9]\ninput w1 : f32[" + channels +
                         ",16,1,1]\na = Conv(x, w1)\nb = Relu(a)\n" + "c = " + text + "\ninput w2 : f32[8," + channels +
                         ",1,1]\nd = Conv(c, w2)\noutput y = d",
                     name.size());
  };
  const auto of_volume = [](const std::string& name, const std::string& text) {
    return make_case(name,
                     "input x : f32[2,4,5,9,7]\ninput w1 : f32[24,4,1,1,1]\na = Conv(x, w1)\nb = Relu(a)\nc = " + text +
                         "\ninput w2 : f32[8,24,1,1,1]\nd = Conv(c, w2)\noutput y = d",
                     name.size());
  };
  return {
      of_volume("largest_of_cube", "MaxPool(b) {kernel_shape=[3,3,3], pads=[1,1,1,1,1,1]}"),
      of_volume("largest_of_planes", "MaxPool(b) {kernel_shape=[1,3,3], strides=[1,2,2], pads=[0,1,1,0,1,1]}"),
      of_volume("largest_of_two_planes",
                "MaxPool(b) {kernel_shape=[2,2,3], strides=[2,2,1], dilations=[1,2,1], pads=[0,1,1,1,0,1]}"),
      of_volume("mean_of_cube", "AveragePool(b) {kernel_shape=[3,2,3], strides=[2,1,2], pads=[1,0,1,1,1,1]}"),
      of_volume("mean_of_all_of_cube",
                "AveragePool(b) {kernel_shape=[3,3,3], pads=[1,1,1,1,1,1], count_include_pad=1}"),
      depthwise("three", "[2,24,13,11]", "24", "3,3", "pads=[1,1,1,1]", "b = Clip(a) {min=0.0, max=6.0}\noutput y = b"),
      depthwise("five", "[1,16,14,9]", "16", "5,5", "strides=[2,2], pads=[1,2,2,1]",
                "input z : f32[1,16,7,4]\nb = Add(a, z)\nc = Gelu(b)\noutput y = c"),
      depthwise("tall", "[1,8,12,10]", "8", "3,1", "dilations=[2,1], pads=[2,0,2,0]", "output y = a"),
      depthwise("wide", "[1,136,9,9]", "136", "3,3", "dilations=[2,2], pads=[2,2,2,2]",
                "b = Sigmoid(a)\nc = Mul(a, b)\noutput y = c"),
      depthwise("two", "[3,40,8,8]", "40", "2,2", "strides=[2,2]", "output y = a"),
      depthwise("volume", "[2,16,5,9,7]", "16", "3,3,5", "strides=[2,1,2], dilations=[1,2,1], pads=[1,2,0,2,1,4]",
                "b = Relu(a)\noutput y = b"),
      depthwise("cube", "[1,24,6,7,8]", "24", "3,3,3", "pads=[1,1,1,1,1,1]", "output y = a"),
      depthwise("planes_in_steps", "[2,24,6,9,11]", "24", "1,3,3", "strides=[2,1,1], pads=[0,1,1,0,1,1]",
                "output y = a"),
      pool("largest", "24", "MaxPool(b) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]}"),
      pool("largest_of_two", "8", "MaxPool(b) {kernel_shape=[2,2], strides=[2,2]}"),
      pool("apart", "16", "MaxPool(b) {kernel_shape=[3,2], strides=[1,1], dilations=[2,3], pads=[1,0,2,1]}"),
      pool("mean", "40", "AveragePool(b) {kernel_shape=[3,3], strides=[1,1], pads=[1,1,1,1]}"),
      pool("mean_of_all", "32",
           "AveragePool(b) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,0,0], count_include_pad=1}"),
      pool("largest_beyond", "16", "MaxPool(b) {kernel_shape=[3,3], strides=[2,2], ceil_mode=1}"),
      pool("mean_beyond", "8", "AveragePool(b) {kernel_shape=[3,3], strides=[3,2], pads=[1,0,0,1], ceil_mode=1}"),
      pool("mean_of_image", "16", "GlobalAveragePool(b)"),
      pool("mean_of_image_of_many_channels", "200", "GlobalAveragePool(b)"),
      pool("mean_of_five", "16", "AveragePool(b) {kernel_shape=[5,4], strides=[2,3], pads=[2,1,1,2]}")};
}

// Enough threads that some make several positions: widths that fours fill and others, every edge, both steps.
std::vector<BatchCase> line_cases() {
  const auto pool = [](const std::string& name, const std::string& text) {
    return make_case(name,
                     "input x : f32[4,4,75,71]\ninput w1 : f32[64,4,1,1]\na = Conv(x, w1)\nb = Relu(a)\nc = " + text +
                         "\ninput w2 : f32[8,64,1,1]\nd = Conv(c, w2)\noutput y = d",
                     name.size());
  };
  return {
      pool("largest", "MaxPool(b) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]}"),
      pool("largest_beyond", "MaxPool(b) {kernel_shape=[3,3], strides=[2,2], ceil_mode=1}"),
      pool("largest_beside", "MaxPool(b) {kernel_shape=[5,5], strides=[1,1], pads=[2,2,2,2]}"),
      pool("mean", "AveragePool(b) {kernel_shape=[3,3], strides=[1,1], pads=[1,1,1,1]}"),
      pool("mean_of_all", "AveragePool(b) {kernel_shape=[2,2], strides=[2,2], pads=[1,0,0,1], count_include_pad=1}")};
}

// Rectangles that fill the result or not, few channels and some that fill no block, both steps, windows of every kind,
// every edge. (Weights that are infinite are emulated.)
std::vector<BatchCase> rectangle_cases() {
  return {
      depthwise("three", "[2,48,17,22]", "48", "3,3", "pads=[1,1,1,1]",
                "input z : f32[2,48,17,22]\nb = Add(a, z)\nc = Clip(b) {min=0.0, max=6.0}\noutput y = c"),
      depthwise("three_in_steps", "[3,64,19,17]", "64", "3,3", "strides=[2,2], pads=[0,1,2,1]",
                "b = Relu(a)\noutput y = b"),
      depthwise("five", "[2,40,24,13]", "40", "5,5", "pads=[2,1,2,3]", "b = Sigmoid(a)\nc = Mul(a, b)\noutput y = c"),
      depthwise("five_in_steps", "[1,72,28,28]", "72", "5,5", "strides=[2,2], pads=[2,2,2,2]", "output y = a"),
      depthwise("seven", "[1,96,9,14]", "96", "7,7", "pads=[3,3,3,3]", "output y = a"),
      depthwise("thirteen", "[1,16,12,9]", "16", "13,13", "pads=[6,6,6,6]", "output y = a"),
      depthwise("wide", "[2,24,7,20]", "24", "1,7", "pads=[0,3,0,3]", "output y = a"),
      depthwise("tall", "[1,8,21,6]", "8", "11,2", "pads=[5,1,5,0]", "b = Gelu(a)\noutput y = b"),
      depthwise("four_without_pads", "[1,32,15,18]", "32", "4,4", "strides=[2,2]", "output y = a"),
      depthwise("cube", "[2,40,5,9,11]", "40", "3,3,3", "pads=[1,1,1,1,1,1]",
                "b = Sigmoid(a)\nc = Mul(a, b)\noutput y = c"),
      depthwise("planes_apart", "[1,24,9,10,7]", "24", "4,3,5",
                "strides=[3,2,2], dilations=[2,1,1], pads=[5,1,2,4,0,2]", "b = Relu(a)\noutput y = b"),
      depthwise("two_of_planes", "[3,16,2,12,9]", "16", "2,7,7", "pads=[0,3,3,0,3,3]",
                "input z : f32[3,16,1,12,9]\nc = Add(a, z)\noutput y = c"),
      depthwise("beyond", "[1,16,5,6]", "16", "3,3", "strides=[1,1], pads=[4,5,3,4]", "output y = a")};
}

bool has_channels(const Plan& plan) { return std::ranges::any_of(plan.kernels, is_by_channels); }

TEST(Channels, RunDepthwiseConvolutionsAndPools) {
  CostsOfChannels costs;
  for (const Precision precision : {Precision::Fp32, Precision::Fp16})
    for (const BatchCase& c : channel_cases()) {
      const auto plan = make_plan(c.graph, {.kind = TargetKind::Cuda, .precision = precision}, costs);
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      EXPECT_TRUE(has_channels(*plan)) << c.name << "\n" << print_plan(*plan);
      EXPECT_TRUE(emit(*plan).ok());
    }
}

TEST(Channels, SeveralPositionsOfALineOrARectangle) {
  std::vector<std::pair<const char*, std::vector<BatchCase>>> ways{{kByLinesOfChannels, line_cases()}};
  for (const ChannelTiles& tiles : kChannelTiles) ways.emplace_back(tiles.name, rectangle_cases());
  for (const auto& [name, cases] : ways) {
    CostsOfChannels costs(name);
    for (const BatchCase& c : cases) {
      const auto plan = make_plan(c.graph, {.kind = TargetKind::Cuda, .precision = Precision::Fp16}, costs);
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      EXPECT_TRUE(std::ranges::count(plan->kernels, name, &Kernel::implementation) > 0) << c.name << "\n"
                                                                                        << print_plan(*plan);
    }
  }
}

// What has no whole chunks of channels, more results than channels, or means over all of a window that ends beyond.
TEST(Channels, LeaveOthersToLoops) {
  CostsOfChannels costs;
  const BatchCase cases[] = {
      make_case("odd", "input x : f32[1,6,8,8]\ninput w1 : f32[6,1,3,3]\na = Conv(x, w1) {group=6}\noutput y = a", 1),
      make_case("more", "input x : f32[1,8,8,8]\ninput w1 : f32[16,1,3,3]\na = Conv(x, w1) {group=8}\noutput y = a", 2),
      make_case("up",
                "input x : f32[1,8,8,8]\ninput w1 : f32[8,8,1,1]\na = Conv(x, w1)\nb = AveragePool(a) "
                "{kernel_shape=[3,3], strides=[2,2], ceil_mode=1, count_include_pad=1}\noutput y = b",
                3)};
  for (const BatchCase& c : cases) {
    const auto plan = make_plan(c.graph, {.kind = TargetKind::Cuda, .precision = Precision::Fp16}, costs);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_FALSE(has_channels(*plan)) << c.name << "\n" << print_plan(*plan);
  }
}

// Planes of the result that are not those of the source, though the window has one: loops know of them.
TEST(Channels, LeaveVolumesUnderWindowsOfOnePlaneToLoops) {
  for (const ChannelTiles& tiles : kChannelTiles)
    for (const BatchCase& c :
         {depthwise("steps", "[2,24,6,9,11]", "24", "1,3,3", "strides=[2,1,1], pads=[0,1,1,0,1,1]", "output y = a"),
          depthwise("pads", "[1,16,4,9,8]", "16", "1,7,7", "pads=[1,3,3,1,3,3]", "output y = a")}) {
      CostsOfChannels costs(tiles.name);
      const auto plan = make_plan(c.graph, {.kind = TargetKind::Cuda, .precision = Precision::Fp16}, costs);
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      EXPECT_TRUE(std::ranges::none_of(plan->kernels, channel_tiles_of)) << c.name << "\n" << print_plan(*plan);
    }
}

TEST(Channels, CompileAndLink) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (obstacles().run.empty()) GTEST_SKIP() << "there is a device: the tests below build and run";
  CostsOfChannels costs;
  expect_agreement_on_device(channel_cases(), costs, "channels", Precision::Fp16);
  CostsOfChannels lines(kByLinesOfChannels);
  expect_agreement_on_device(line_cases(), lines, "channel_lines", Precision::Fp16);
  for (const ChannelTiles& tiles : kChannelTiles) {
    CostsOfChannels rectangles(tiles.name);
    expect_agreement_on_device(rectangle_cases(), rectangles, "channel_tiles", Precision::Fp16);
  }
}

TEST(Channels, AgreeWithTheInterpreter) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
  for (const Precision precision : {Precision::Fp32, Precision::Fp16, Precision::Bf16}) {
    CostsOfChannels costs;
    expect_agreement_on_device(channel_cases(), costs, "channels", precision);
    CostsOfChannels lines(kByLinesOfChannels);
    expect_agreement_on_device(line_cases(), lines, "channel_lines", precision);
    for (const ChannelTiles& tiles : kChannelTiles) {
      CostsOfChannels rectangles(tiles.name);
      expect_agreement_on_device(rectangle_cases(), rectangles, "channel_tiles", precision);
    }
  }
}

// Not-a-numbers, infinities and numbers near the ends of the range: in a window that has one, and in those beside it.
TEST(Channels, ExtremeNumbersAgreeWithTheInterpreter) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
  constexpr float kMost = std::numeric_limits<float>::max(), kInfinity = std::numeric_limits<float>::infinity();
  const double numbers[] = {std::nan(""), kInfinity, -kInfinity, kMost, -kMost, 1e-40, -1e-40, 0.0};
  std::vector<BatchCase> cases{
      make_case("sums",
                "input x : f32[1,8,7,9]\ninput w1 : f32[8,1,3,3]\na = Conv(x, w1) {group=8, pads=[1,1,1,1]}\n"
                "b = Relu(a)\noutput y = b",
                1),
      make_case("largest",
                "input x : f32[1,8,7,9]\ninput w1 : f32[8,1,3,3]\na = Conv(x, w1) {group=8, pads=[1,1,1,1]}\n"
                "b = MaxPool(a) {kernel_shape=[3,3], strides=[1,1], pads=[1,1,1,1]}\noutput y = b",
                2),
      make_case("means",
                "input x : f32[1,8,7,9]\ninput w1 : f32[8,1,3,3]\na = Conv(x, w1) {group=8, pads=[1,1,1,1]}\n"
                "b = AveragePool(a) {kernel_shape=[3,3], strides=[1,1], pads=[1,1,1,1]}\noutput y = b",
                3)};
  for (BatchCase& c : cases) {
    std::vector<double> values = c.inputs.at("x").to_doubles();
    for (size_t i = 0; i < values.size(); i++)
      if (i % 29 == 0) values[i] = numbers[i / 29 % std::size(numbers)];
    c.inputs.at("x") = Tensor::from_values(ElementType::Float32, {1, 8, 7, 9}, values);
  }
  CostsOfChannels costs;
  expect_agreement_on_device(cases, costs, "extreme_channels", Precision::Fp32);
}

}  // namespace
}  // namespace gopt
