// Convolutions on CUDA, by each family of kernels and in each layout: that plans have them, and, where there is a
// device, that they agree with the interpreter.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "cuda_device.h"
#include "gopt/tile.h"

namespace gopt {
namespace {

// Costs by which convolutions are run in one way, as if its time were known.
class CostsOfFamily : public KernelCosts {
 public:
  explicit CostsOfFamily(std::string family) : family_(std::move(family)) {}
  double time_ms(const Plan&, const Kernel& kernel) override { return kernel.implementation == family_ ? 1 : 2; }
  bool is_measured(const Plan&, const Kernel& kernel) const override { return kernel.implementation == family_; }

 private:
  std::string family_;
};

// Where there is a device.
void expect_agreement_in_each_precision(const std::vector<BatchCase>& cases, KernelCosts& costs,
                                        const std::string& name) {
  if (!obstacles().build.empty() || !obstacles().run.empty()) return;
  for (const Precision precision : {Precision::Fp32, Precision::Fp16, Precision::Bf16})
    for (const std::string& line : run_batch(cases, costs, name, {.kind = TargetKind::Cuda, .precision = precision}))
      ADD_FAILURE() << name << " in " << to_string(precision) << ": " << line;
}

TEST(EmittedCuda, EachFamilyOfConvolutionsAgreesWithTheInterpreter) {
  const std::vector<BatchCase> cases{
      make_case("dense",
                "input x : f32[2,8,9,7]\ninput w1 : f32[6,8,2,3]\ninput w2 : f32[6]\na = Conv(x, w1, w2) "
                "{strides=[2,1], pads=[1,1,1,1]}\nb = Relu(a)\noutput y = b",
                1),
      make_case("few", "input x : f32[1,4,9,9]\ninput w1 : f32[5,4,1,1]\na = Conv(x, w1)\nb = Tanh(a)\noutput y = b",
                2),
      make_case("depthwise",
                "input x : f32[1,8,9,9]\ninput w1 : f32[8,1,3,3]\ninput w2 : f32[8,8,1,1]\na = Conv(x, w2)\nb = "
                "Conv(a, w1) {group=8, pads=[1,1,1,1]}\nc = Add(b, a)\nd = Relu(c)\noutput y = d",
                3),
      make_case("line",
                "input x : f32[2,8,19]\ninput w1 : f32[6,8,5]\na = Conv(x, w1) {strides=[2], dilations=[2], "
                "pads=[4,4]}\nb = Relu(a)\noutput y = b",
                4)};
  for (const char* family : {"cudnn:1", "unfolded", "generated"}) {
    CostsOfFamily costs(family);
    for (const size_t which : {2, 3}) {
      const auto plan = make_plan(cases[which].graph, {TargetKind::Cuda, 1}, costs);
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      for (const Kernel& kernel : plan->kernels) EXPECT_EQ(kernel.implementation, family) << kernel.name;
    }
    expect_agreement_in_each_precision(cases, costs, family);
  }
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
}

// Costs by which images lie with channels last, wherever that can be.
class CostsOfChannelsLast : public KernelCosts {
 public:
  explicit CostsOfChannelsLast(std::string family) : family_(std::move(family)) {}
  double time_ms(const Plan& plan, const Kernel& kernel) override {
    if (kernel.kind != KernelKind::Convolution) return 0.01;
    const bool is_last = plan.buffer(kernel.output_buffers[0]).layout.is_channels_last();
    return (is_last ? 1 : 10) + (kernel.implementation == family_ ? 0 : 1);
  }
  bool is_measured(const Plan&, const Kernel&) const override { return true; }

 private:
  std::string family_;
};

// Convolutions of volumes and transposed ones are the libraries', plain and, where there are no groups, with channels
// last.
TEST(EmittedCuda, VolumesAndTransposedConvolutionsAgreeWithTheInterpreter) {
  const std::vector<BatchCase> cases{
      make_case("volume",
                "input x : f32[2,8,4,5,7]\ninput w1 : f32[16,8,3,2,3]\ninput w2 : f32[16]\na = Conv(x, w1, w2) "
                "{strides=[1,2,1], pads=[1,1,1,1,1,1]}\nb = Relu(a)\noutput y = b",
                1),
      make_case("frames",
                "input x : f32[1,8,4,5,7]\ninput w1 : f32[16,8,1,3,3]\ninput w2 : f32[16,16,3,1,1]\na = Conv(x, w1) "
                "{pads=[0,1,1,0,1,1]}\nb = Conv(a, w2) {pads=[1,0,0,1,0,0]}\nc = Add(b, a)\noutput y = c",
                2),
      make_case("up",
                "input x : f32[2,16,5,6]\ninput w1 : f32[16,8,4,4]\ninput w2 : f32[8]\na = ConvTranspose(x, w1, w2) "
                "{strides=[2,2], pads=[1,1,1,1]}\nb = Relu(a)\noutput y = b",
                3),
      make_case("more",
                "input x : f32[1,16,5,6]\ninput w1 : f32[16,8,3,3]\na = ConvTranspose(x, w1) {strides=[2,2], "
                "pads=[1,1,1,1], output_padding=[1,1]}\nb = Tanh(a)\noutput y = b",
                4),
      make_case("wave",
                "input x : f32[1,16,11]\ninput w1 : f32[16,8,16]\ninput w2 : f32[8]\na = ConvTranspose(x, w1, w2) "
                "{strides=[8], pads=[4,4]}\noutput y = a",
                5),
      make_case("solid",
                "input x : f32[1,8,3,4,5]\ninput w1 : f32[8,16,2,2,2]\na = ConvTranspose(x, w1) "
                "{strides=[2,2,2]}\noutput y = a",
                6),
      make_case("given",
                "input x : f32[1,16,5,6]\ninput w1 : f32[16,8,3,3]\na = ConvTranspose(x, w1) {strides=[2,2], "
                "auto_pad=\"SAME_UPPER\", output_shape=[10,13]}\noutput y = a",
                7),
  };
  struct Way {
    const char* family;
    std::set<size_t> cases;  // that it has
  };
  constexpr size_t kFirstTransposed = 2;
  // The last is padded more on one side; products over taps are of two axes.
  for (const auto& [family, own] : {Way{"cudnn:1", {0, 1, 2, 3, 4, 5}}, Way{"unfolded", {2, 3, 4, 6}}}) {
    CostsOfFamily plain(family);
    CostsOfChannelsLast last(family);
    for (KernelCosts* costs : std::initializer_list<KernelCosts*>{&plain, &last}) {
      for (size_t which = 0; which < cases.size(); which++) {
        const auto plan = make_plan(cases[which].graph, {TargetKind::Cuda, 1}, *costs);
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        ASSERT_TRUE(check_plan(*plan).ok());
        for (const Kernel& kernel : plan->kernels) {
          if (kernel.kind != KernelKind::Convolution) continue;
          if (which < kFirstTransposed && !own.contains(which)) continue;  // a part of it may be
          EXPECT_EQ(kernel.implementation == family, own.contains(which)) << cases[which].name << "\n"
                                                                          << print_plan(*plan);
        }
      }
      expect_agreement_in_each_precision(cases, *costs,
                                         std::string(family) + (costs == &plain ? "_volumes" : "_volumes_last"));
    }
  }
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
}

TEST(EmittedCuda, ImagesMayLieWithChannelsLast) {
  const std::vector<BatchCase> cases{
      make_case("dense",
                "input x : f32[2,8,9,7]\ninput w1 : f32[16,8,2,3]\ninput w2 : f32[16]\ninput w3 : f32[16,16,3,3]\n"
                "input w4 : f32[16]\na = Conv(x, w1, w2) {strides=[2,1], pads=[1,1,1,1]}\nb = Relu(a)\nc = Conv(b, w3, "
                "w4) {pads=[1,1,1,1]}\nd = Add(c, b)\ne = Relu(d)\noutput y = e",
                1),
      make_case("pointwise",
                "input x : f32[2,8,5,7]\ninput w1 : f32[16,8,1,1]\ninput w2 : f32[16]\ninput w3 : f32[16,16,1,1]\n"
                "input w4 : f32[16]\na = Conv(x, w1, w2)\nb = Tanh(a)\nc = Conv(b, w3, w4)\nd = Add(c, b)\ne = "
                "Relu(d)\noutput y = e",
                2),
      make_case("followed",
                "input x : f32[2,8,8,8]\ninput w1 : f32[16,8,1,1]\ninput w2 : f32[16,1,3,3]\n"
                "a = Conv(x, w1)\nb = Conv(a, w2) {group=16, pads=[1,1,1,1]}\nc = MaxPool(b) {kernel_shape=[2,2], "
                "strides=[2,2]}\nd = GlobalAveragePool(c)\ne = Mul(c, d)\noutput y = e",
                3)};
  for (const char* family : {"cudnn:1", "unfolded"}) {
    CostsOfChannelsLast costs(family);
    for (const BatchCase& c : cases) {
      const auto plan = make_plan(c.graph, {TargetKind::Cuda, 1}, costs);
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      ASSERT_TRUE(check_plan(*plan).ok());
      for (const Kernel& kernel : plan->kernels) {
        if (kernel.kind != KernelKind::Convolution) continue;
        EXPECT_TRUE(plan->buffer(kernel.output_buffers[0]).layout.is_channels_last()) << kernel.name;
        EXPECT_TRUE(plan->buffer(kernel.input_buffers[1]).layout.is_channels_last()) << kernel.name;
      }
      const auto code = emit(*plan);
      ASSERT_TRUE(code.ok()) << code.error().message;
      const bool says = std::ranges::any_of(code->files, [](const EmittedFile& file) {
        return file.text.find("d.channels_last = true;") != std::string::npos;
      });
      EXPECT_TRUE(says);
    }
    expect_agreement_in_each_precision(cases, costs, family);
  }
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
}

// Costs by which convolutions are tiles, whatever their shape, and images lie with channels last.
class CostsOfTiles : public KernelCosts {
 public:
  double time_ms(const Plan& plan, const Kernel& kernel) override {
    if (kernel.kind != KernelKind::Convolution) return 0.01;
    const bool is_last = plan.buffer(kernel.output_buffers[0]).layout.is_channels_last();
    return (is_last ? 1 : 10) + (parse_tile(kernel.implementation) ? 0 : 1);
  }
  bool is_measured(const Plan&, const Kernel&) const override { return true; }
};

// In steps, dilated, over volumes and lines, in groups, to a single channel: tiles for each residue of the positions.
// What is apart both in its taps and its positions is left to others.
TEST(EmittedCuda, TransposedConvolutionsAreTilesForEachResidue) {
  const std::vector<BatchCase> cases{
      make_case("up",
                "input x : f32[2,16,5,6]\ninput w1 : f32[16,8,4,4]\ninput w2 : f32[8]\na = ConvTranspose(x, w1, w2) "
                "{strides=[2,2], pads=[1,1,1,1]}\nb = Relu(a)\noutput y = b",
                1),
      make_case("uneven",
                "input x : f32[1,16,5,6]\ninput w1 : f32[16,24,3,5]\na = ConvTranspose(x, w1) {strides=[2,3], "
                "pads=[1,0,0,2], output_padding=[1,2]}\nb = Tanh(a)\noutput y = b",
                2),
      make_case("dilated",
                "input x : f32[1,24,6,7]\ninput w1 : f32[24,16,3,2]\na = ConvTranspose(x, w1) {strides=[1,2], "
                "dilations=[2,1], pads=[3,0,2,1]}\noutput y = a",
                3),
      make_case("gaps",
                "input x : f32[1,16,5,6]\ninput w1 : f32[16,8,1,2]\ninput w2 : f32[8]\na = ConvTranspose(x, w1, w2) "
                "{strides=[3,4]}\noutput y = a",
                4),
      make_case("groups",
                "input x : f32[2,32,4,5]\ninput w1 : f32[32,12,4,4]\na = ConvTranspose(x, w1) {group=2, "
                "strides=[2,2], pads=[1,1,1,1]}\noutput y = a",
                5),
      make_case("wave",
                "input x : f32[1,16,11]\ninput w1 : f32[16,8,16]\ninput w2 : f32[8]\na = ConvTranspose(x, w1, w2) "
                "{strides=[8], pads=[4,4]}\noutput y = a",
                6),
      make_case("solid",
                "input x : f32[1,8,3,4,5]\ninput w1 : f32[8,16,2,3,2]\na = ConvTranspose(x, w1) "
                "{strides=[2,2,1], pads=[0,1,0,0,1,1]}\noutput y = a",
                7),
      make_case("few",
                "input x : f32[1,16,9,7]\ninput w1 : f32[16,1,5,5]\na = ConvTranspose(x, w1) {strides=[2,2], "
                "pads=[2,2,2,2], output_padding=[1,1]}\nb = Sigmoid(a)\noutput y = b",
                8),
      make_case("apart",
                "input x : f32[1,16,5,6]\ninput w1 : f32[16,8,3,3]\na = ConvTranspose(x, w1) {strides=[2,2], "
                "dilations=[2,2]}\noutput y = a",
                9),
  };
  CostsOfTiles costs;
  for (const BatchCase& c : cases) {
    const auto plan = make_plan(c.graph, {TargetKind::Cuda, 1}, costs);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    ASSERT_TRUE(check_plan(*plan).ok());
    const auto kernel = std::ranges::find(plan->kernels, KernelKind::Convolution, &Kernel::kind);
    ASSERT_NE(kernel, plan->kernels.end()) << c.name;
    EXPECT_EQ(parse_tile(kernel->implementation).has_value(), c.name != "apart") << print_plan(*plan);
    const auto code = emit(*plan);
    ASSERT_TRUE(code.ok()) << code.error().message;
    const bool has_taps = std::ranges::any_of(code->files, [](const EmittedFile& file) {
      return file.text.find("<Fp32, Right::Taps, ") != std::string::npos;
    });
    EXPECT_EQ(has_taps, c.name != "apart") << c.name;
  }
  expect_agreement_in_each_precision(cases, costs, "residues");
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
}

// Where images lie in parts of longer lines the libraries take none: what tiles do not take, either, is loops of our
// own.
TEST(EmittedCuda, TransposedConvolutionsMayBePartsOfLines) {
  for (const std::string dilation : {"1", "2"}) {
    const BatchCase joined = make_case(
        "joined" + dilation,
        "input x : f32[1,16,7,7]\ninput w1 : f32[16,8,3,3]\ninput w2 : f32[8,16,1,1]\ninput w3 : f32[8,16,3,3]\n"
        "a = ConvTranspose(x, w1) {strides=[1,1], dilations=[" +
            dilation + "," + dilation + "], pads=[" + dilation + "," + dilation + "," + dilation + "," + dilation +
            "]}\n"
            "b = Conv(x, w2)\nc = Concat(a, b) {axis=1}\nd = Conv(c, w3) {pads=[1,1,1,1]}\noutput y = d",
        1);
    const BatchCase spread = make_case(
        "spread" + dilation,
        "input x : f32[1,16,5,5]\ninput w1 : f32[16,8,3,3]\ninput w2 : f32[8,16,3,3]\ninput v : f32[1,16,13,13]\n"
        "input w3 : f32[8,16,3,3]\n"
        "a = ConvTranspose(x, w1) {strides=[2,2], dilations=[" +
            dilation + "," + dilation +
            "]}\n"
            "u = Conv(v, w2) {pads=[1,1,1,1]}\ns = Slice(u) {starts=[0,0], ends=[" +
            std::string(dilation == "1" ? "11,11" : "13,13") +
            "], axes=[2,3], steps=[1,1]}\n"
            "c = Concat(a, s) {axis=1}\nd = Conv(c, w3) {pads=[1,1,1,1]}\noutput y = d",
        2);
    CostsOfTiles costs;
    for (const BatchCase& c : {joined, spread}) {
      const auto plan = make_plan(c.graph, {TargetKind::Cuda, 1}, costs);
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      ASSERT_TRUE(check_plan(*plan).ok());
      const auto code = emit(*plan);
      EXPECT_TRUE(code.ok()) << c.name;
    }
    expect_agreement_in_each_precision({joined, spread}, costs, "lines" + dilation);
  }
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
}

// Single channels lie alike in either order: nothing is converted before or behind convolutions of them, whose weights
// lie as images with channels last have them.
TEST(EmittedCuda, SingleChannelsAreNotConverted) {
  const std::vector<BatchCase> cases{
      make_case("to_one",
                "input x : f32[1,16,9,8]\ninput w1 : f32[32,16,3,3]\ninput w2 : f32[1,32,3,3]\n"
                "a = Conv(x, w1) {pads=[1,1,1,1]}\nb = Relu(a)\nc = Conv(b, w2) {pads=[1,1,1,1]}\n"
                "d = Sigmoid(c)\ne = GlobalAveragePool(d)\nf = Reshape(d) {shape=[9,8]}\noutput y = e\noutput z = f",
                1),
      make_case("from_one",
                "input x : f32[2,1,9,8]\ninput w1 : f32[1,24,4,4]\ninput w2 : f32[16,24,3,3]\n"
                "a = ConvTranspose(x, w1) {strides=[2,2], pads=[1,1,1,1]}\nb = Relu(a)\nc = Conv(b, w2)\noutput y = c",
                2),
      make_case("through_one",
                "input x : f32[1,1,9,8]\ninput w1 : f32[16,1,3,3]\ninput w2 : f32[1,16,1,1]\ninput w3 : f32[8,1,3,3]\n"
                "a = Conv(x, w1)\nb = Conv(a, w2)\nc = Tanh(b)\nd = Conv(c, w3)\noutput y = c\noutput z = d",
                3)};
  CostsOfTiles costs;
  for (const BatchCase& c : cases) {
    const auto plan = make_plan(c.graph, {TargetKind::Cuda, 1}, costs);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    ASSERT_TRUE(check_plan(*plan).ok());
    for (const Kernel& kernel : plan->kernels) {
      if (kernel.kind == KernelKind::Reorder) {
        EXPECT_GT(plan->buffer(kernel.input_buffers[0]).dims[1], 1) << print_plan(*plan);
        continue;
      }
      EXPECT_FALSE(kernel.nodes[0]->is(OpKind::Reshape)) << print_plan(*plan);  // a view
      if (kernel.kind != KernelKind::Convolution) continue;
      EXPECT_TRUE(parse_tile(kernel.implementation)) << print_plan(*plan);
      EXPECT_TRUE(plan->buffer(kernel.input_buffers[1]).layout.is_channels_last()) << print_plan(*plan);
    }
  }
  expect_agreement_in_each_precision(cases, costs, "single");
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
}

}  // namespace
}  // namespace gopt
