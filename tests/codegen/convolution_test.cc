// Convolutions and pooling of every kind that library kernels take, drawn at random: one to three axes, odd channels,
// groups, strides, dilations, unequal pads, transposed ones, weights that are not constant. Each layout and each
// implementation computes what the interpreter does.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "batch.h"

namespace gopt {
namespace {

class Drawer {
 public:
  // Errors of sums do not stay in proportion through functions that saturate: they are drawn in fp32 alone.
  Drawer(uint32_t seed, bool saturates) : engine_(seed), saturates_(saturates) {}

  int64_t pick(std::vector<int64_t> choices) { return choices[engine_() % choices.size()]; }
  bool one_in(uint32_t n) { return engine_() % n == 0; }

  std::string convolution(bool transposed) {
    const auto axes = static_cast<size_t>(pick({1, 2, 2, 3}));
    const int64_t groups = pick({1, 1, 2, 3, 6, 13}), in = pick({1, 1, 2, 3, 8, 16, 24}),
                  out = pick({1, 1, 2, 5, 8, 16, 20});
    window(axes, {1, 2, 3, 4}, transposed);
    std::vector<int64_t> x{pick({1, 2}), groups * in},
        w{transposed ? groups * in : groups * out, transposed ? out : in};
    for (size_t d = 0; d < axes; d++) {
      x.push_back(pick({5, 7, 9}) + (transposed ? 0 : (kernel_[d] - 1) * dilations_[d]));
      w.push_back(kernel_[d]);
    }
    const bool varies = one_in(8), biased = one_in(2);
    std::string text = "input x : f32" + list(x) + "\ninput " + (varies ? "v" : "w1") + " : f32" + list(w) + "\n";
    if (biased) text += "input w2 : f32[" + std::to_string(groups * out) + "]\n";
    text += std::string("a = ") + (transposed ? "ConvTranspose" : "Conv") + "(x, " + (varies ? "v" : "w1") +
            (biased ? ", w2" : "") + ") {group=" + std::to_string(groups) + ", strides=" + list(strides_) +
            ", dilations=" + list(dilations_) + ", pads=" + list(pads_);
    if (transposed) text += ", output_padding=" + list(extra_);
    const char* activations[] = {"Identity", "Relu", "Sigmoid", "Tanh", "Gelu", "Elu", "LeakyRelu"};
    const size_t number = engine_() % 7;
    const char* activation = activations[!saturates_ && (number == 2 || number == 3) ? 1 : number];
    text += "}\n";
    if (one_in(3)) return text + "b = Mul(a, a)\nc = Add(a, b)\noutput y = c";
    return text + "b = " + activation + "(a)\noutput y = b";
  }

  std::string pooling() {
    const auto axes = static_cast<size_t>(pick({1, 2, 2, 3}));
    window(axes, {1, 2, 3, 5}, false);
    std::vector<int64_t> x{pick({1, 2}), pick({1, 3, 16})};
    for (size_t d = 0; d < axes; d++) x.push_back(pick({5, 7, 14, 23}) + (kernel_[d] - 1) * dilations_[d]);
    const bool average = one_in(2);
    std::string text = "input x : f32" + list(x) + "\na = " + (average ? "AveragePool" : "MaxPool") +
                       "(x) {kernel_shape=" + list(kernel_) + ", strides=" + list(strides_) +
                       ", dilations=" + list(dilations_) + ", pads=" + list(pads_) +
                       ", ceil_mode=" + std::to_string(engine_() % 2);
    if (average) text += ", count_include_pad=" + std::to_string(engine_() % 2);
    return text + "}\noutput y = a";
  }

 private:
  void window(size_t axes, const std::vector<int64_t>& kernels, bool transposed) {
    for (auto* v : {&kernel_, &strides_, &dilations_, &pads_, &extra_}) v->clear();
    pads_.resize(2 * axes);
    for (size_t d = 0; d < axes; d++) {
      kernel_.push_back(pick(kernels));
      strides_.push_back(pick({1, 1, 2, 3}));
      dilations_.push_back(pick({1, 1, 2, 3}));
      const int64_t reach = (kernel_[d] - 1) * dilations_[d];
      for (size_t side : {d, axes + d}) pads_[side] = std::min<int64_t>(reach, pick({0, 0, 1, 2}));
      extra_.push_back(transposed && strides_[d] > 1 && one_in(2) ? 1 : 0);
    }
  }

  static std::string list(const std::vector<int64_t>& numbers) {
    std::string text = "[";
    for (size_t i = 0; i < numbers.size(); i++) text += (i ? "," : "") + std::to_string(numbers[i]);
    return text + "]";
  }

  std::mt19937 engine_;
  bool saturates_;
  std::vector<int64_t> kernel_, strides_, dilations_, pads_, extra_;
};

std::vector<BatchCase> drawn_cases(uint32_t seed, int count, Precision precision) {
  Drawer drawer(seed, precision == Precision::Fp32);
  std::vector<BatchCase> cases;
  for (int i = 0; i < count; i++) {
    const std::string text = i % 4 == 3 ? drawer.pooling() : drawer.convolution(i % 4 == 2);
    SCOPED_TRACE(text);
    cases.push_back(make_case("c" + std::to_string(i), text, seed + static_cast<uint32_t>(i)));
  }
  return cases;
}

// Of the rows that accept a convolution, takes the one of this name; plain or blocked tensors, as is said.
class CostsByName : public KernelCosts {
 public:
  CostsByName(std::string name, bool plain) : name_(std::move(name)), layouts_(plain) {}
  double time_ms(const Plan& plan, const Kernel& kernel) override {
    const double other = kernel.kind == KernelKind::Convolution && kernel.implementation != name_ ? 1e-3 : 0;
    return layouts_.time_ms(plan, kernel) + other;
  }

 private:
  std::string name_;
  LayoutCosts layouts_;
};

// Takes blocks wherever a convolution can have them, however often images are converted.
class CostsOfBlocks : public CostsByName {
 public:
  explicit CostsOfBlocks(const std::string& name) : CostsByName(name, false) {}
  double time_ms(const Plan& plan, const Kernel& kernel) override {
    const bool is_other =
        kernel.kind == KernelKind::Convolution && !plan.buffer(kernel.output_buffers[0]).layout.is_blocked();
    return CostsByName::time_ms(plan, kernel) + (is_other ? 100 : 0);
  }
};

struct DrawnRow {
  const char* implementation;
  bool plain;
  uint32_t seed;
  Precision precision = Precision::Fp32;
  int lanes = 16;  // channels of a block
};
class DrawnConvolutions : public testing::TestWithParam<DrawnRow> {};

TEST_P(DrawnConvolutions, AgreeWithTheInterpreter) {
  const DrawnRow& row = GetParam();
  CostsByName usual(row.implementation, row.plain);
  CostsOfBlocks blocks(row.implementation);
  KernelCosts& costs = row.plain ? static_cast<KernelCosts&>(usual) : blocks;
  for (const std::string& line :
       run_batch(drawn_cases(row.seed, 48, row.precision), costs, "drawn" + std::to_string(row.seed),
                 {.kind = TargetKind::Cpu, .threads = 2, .vector_lanes = row.lanes, .precision = row.precision}))
    ADD_FAILURE() << line;
}

INSTANTIATE_TEST_SUITE_P(
    Rows, DrawnConvolutions,
    testing::Values(
        DrawnRow{"direct", true, 101}, DrawnRow{"direct", false, 202}, DrawnRow{"planar", true, 303},
        DrawnRow{"unfolded", true, 321}, DrawnRow{"channels-last", true, 404}, DrawnRow{"channels-last", false, 505},
        DrawnRow{"direct", true, 606, Precision::Bf16}, DrawnRow{"direct", false, 707, Precision::Bf16},
        DrawnRow{"floats", false, 808, Precision::Bf16}, DrawnRow{"bf16x3", true, 909, Precision::Bf16x3},
        DrawnRow{"bf16x3", false, 111, Precision::Bf16x3}, DrawnRow{"direct", false, 212, Precision::Fp32, 8},
        DrawnRow{"planar", false, 313, Precision::Fp32, 8}, DrawnRow{"channels-last", false, 515, Precision::Fp32, 8},
        DrawnRow{"panels", false, 616, Precision::Fp32, 8}, DrawnRow{"blocks", false, 626, Precision::Fp32, 8},
        DrawnRow{"direct", false, 717, Precision::Bf16, 8}, DrawnRow{"bf16x3", false, 121, Precision::Bf16x3, 8}),
    [](const testing::TestParamInfo<DrawnRow>& info) {
      std::string name = info.param.implementation;
      std::erase(name, '-');
      return name + (info.param.plain ? "Plain" : "Blocked" + std::to_string(info.param.lanes)) +
             to_string(info.param.precision);
    });

// Blocks of channels from end to end, of 8 whichever the processor has, too: channels that fill none, groups that fill
// or join them, depthwise ones, residuals that are added where they lie or beside it, one to three axes, images read
// from and given in plain tensors, parts joined and cut at blocks and elsewhere, pooling between.
const char* const kInBlocks[] = {
    "input x : f32[2,3,17,15]\ninput w1 : f32[24,3,7,7]\ninput w2 : f32[24]\ninput w3 : f32[24,24,3,3]\n"
    "a = Conv(x, w1, w2) {strides=[2,2], pads=[3,3,3,3]}\nb = Relu(a)\np = MaxPool(b) {kernel_shape=[3,3], "
    "strides=[2,2], pads=[1,1,1,1]}\nc = Conv(p, w3) {pads=[1,1,1,1]}\nd = Add(c, p)\ne = Relu(d)\noutput y = e",
    "input x : f32[1,20,9,11]\ninput w1 : f32[13,20,1,1]\ninput w2 : f32[20,13,3,3]\na = Conv(x, w1)\n"
    "b = Relu(a)\nc = Conv(b, w2) {pads=[1,1,1,1]}\nd = Add(c, x)\ne = Relu(d)\nf = Conv(e, w1)\ng = Add(f, b)\n"
    "output y = g\noutput z = e",
    "input x : f32[2,32,10,10]\ninput w1 : f32[48,8,3,3]\ninput w2 : f32[48,2,3,3]\na = Conv(x, w1) {group=4, "
    "pads=[1,1,1,1]}\nb = Relu(a)\nc = Conv(b, w2) {group=24, strides=[2,2]}\noutput y = c",
    "input x : f32[1,16,12,9]\ninput w1 : f32[40,16,1,1]\ninput w2 : f32[40,1,3,3]\ninput w3 : f32[12,40,1,1]\n"
    "a = Conv(x, w1)\nb = Clip(a) {min=0, max=6}\nc = Conv(b, w2) {group=40, pads=[1,1,1,1]}\n"
    "d = Clip(c) {min=0, max=6}\ne = Conv(d, w3)\noutput y = e",
    "input x : f32[2,24,31]\ninput w1 : f32[17,24,5]\ninput w2 : f32[17,1,3]\na = Conv(x, w1) {strides=[2], "
    "pads=[2,2]}\nb = Relu(a)\nc = Conv(b, w2) {group=17, pads=[1,1]}\noutput y = c",
    "input x : f32[1,8,5,7,6]\ninput w1 : f32[24,8,3,3,3]\ninput w2 : f32[10,24,1,1,1]\n"
    "a = Conv(x, w1) {pads=[1,1,1,1,1,1]}\nb = Relu(a)\nc = Conv(b, w2)\n"
    "d = MaxPool(c) {kernel_shape=[2,2,2], strides=[2,2,2]}\noutput y = d",
    "input x : f32[1,20,5,7,6]\ninput w1 : f32[24,20,3,3,3]\ninput w2 : f32[24]\ninput w3 : f32[16,24,2,3,3]\n"
    "a = Conv(x, w1, w2) {pads=[1,1,1,1,1,1]}\nb = Relu(a)\nc = Conv(b, w3) {pads=[2,0,1,1,1,0], strides=[2,1,1], "
    "dilations=[3,1,1]}\noutput y = c",
    "input x : f32[1,16,8,8]\ninput w1 : f32[8,16,1,1]\ninput w2 : f32[24,16,3,3]\ninput w3 : f32[5,16,1,1]\n"
    "a = Conv(x, w1)\nb = Conv(x, w2) {pads=[1,1,1,1]}\nc = Conv(x, w3)\nj = Concat(a, b, c) {axis=1}\n"
    "r = Relu(j)\nh = Slice(r) {starts=[8], ends=[32], axes=[1]}\no = Slice(r) {starts=[3], ends=[21], axes=[1]}\n"
    "input w4 : f32[9,24,1,1]\ninput w5 : f32[9,18,1,1]\ns = Conv(h, w4)\nt = Conv(o, w5)\nu = Add(s, t)\n"
    "output y = u",
    "input x : f32[1,24,6,6]\ninput w1 : f32[36,24,3,3]\ninput w2 : f32[7,36]\na = Conv(x, w1)\nb = Relu(a)\n"
    "g = GlobalAveragePool(b)\nf = Flatten(g) {axis=1}\nh = Gemm(f, w2) {transB=1}\ns = Sigmoid(g)\n"
    "m = Mul(b, s)\nq = AveragePool(m) {kernel_shape=[2,2], strides=[2,2]}\noutput y = h\noutput z = q",
};
void expect_blocks_agree(int lanes, const std::vector<const char*>& implementations,
                         Precision precision = Precision::Fp32) {
  std::vector<BatchCase> cases;
  for (const char* text : kInBlocks) cases.push_back(make_case("b" + std::to_string(cases.size()), text, 91));
  for (const char* implementation : implementations)
    for (const int threads : {1, 2}) {
      CostsOfBlocks costs(implementation);
      const Target target{.kind = TargetKind::Cpu, .threads = threads, .vector_lanes = lanes, .precision = precision};
      int64_t taken = 0, in_volumes = 0;
      for (const BatchCase& c : cases) {
        const auto plan = make_plan(c.graph, target, costs);
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        const std::string text = print_plan(*plan);
        EXPECT_NE(text.find("blocked" + std::to_string(lanes)), std::string::npos) << c.name << text;
        for (const Kernel& kernel : plan->kernels) {
          const bool is_taken = kernel.implementation == implementation;
          taken += is_taken;
          in_volumes += is_taken && plan->buffer(kernel.output_buffers[0]).dims.size() == 5;
        }
      }
      EXPECT_GT(taken, 1) << implementation;
      EXPECT_GT(in_volumes, 0) << implementation;
      const std::string name = "blocks" + std::to_string(lanes) + implementation + to_string(precision);
      for (const std::string& line : run_batch(cases, costs, name, target)) ADD_FAILURE() << line;
    }
}
TEST(BlocksOf8Channels, AgreeWithTheInterpreter) { expect_blocks_agree(8, {"direct", "panels", "blocks", "winograd"}); }
TEST(BlocksOf16Channels, AgreeWithTheInterpreter) { expect_blocks_agree(16, {"direct", "panels", "winograd"}); }
TEST(BlocksOfHalves, AgreeWithTheInterpreter) {
  for (const int lanes : {8, 16}) expect_blocks_agree(lanes, {"winograd"}, Precision::Bf16);
}

// Rows of a kernel longer than those of the result: windows lie beside each other, or are summed where they lie.
const char* const kLongRows[] = {
    "input x : f32[2,6,40,40]\ninput w1 : f32[6,1,16,16]\ninput w2 : f32[6]\na = Conv(x, w1, w2) {group=6, "
    "strides=[16,16], pads=[7,7,8,8]}\nb = Relu(a)\noutput y = b",
    "input x : f32[1,5,40,40]\ninput w1 : f32[5,1,16,16]\na = Conv(x, w1) {group=5, strides=[16,16], "
    "dilations=[4,8], pads=[30,60,30,60]}\noutput y = a",
    "input x : f32[3,4,33]\ninput w1 : f32[4,1,15]\na = Conv(x, w1) {group=4, strides=[4], dilations=[2], "
    "pads=[3,2]}\noutput y = a",
    "input x : f32[1,7,9,20]\ninput w1 : f32[4,7,3,12]\ninput r : f32[1,4,7,4]\na = Conv(x, w1) "
    "{strides=[1,3], pads=[0,1,0,1]}\nb = Add(a, r)\noutput y = b",
};
TEST(ConvolutionsOfLongRows, AgreeWithTheInterpreter) {
  std::vector<BatchCase> cases;
  for (const char* text : kLongRows) cases.push_back(make_case("l" + std::to_string(cases.size()), text, 31));
  for (const int threads : {1, 2}) {
    CostsByName costs("unfolded", true);
    for (const std::string& line : run_batch(cases, costs, "long_rows", {.kind = TargetKind::Cpu, .threads = threads}))
      ADD_FAILURE() << line;
  }
}

// Depthwise, on images too small for lanes: full and partial vectors of channels, images of fewer elements than lanes,
// windows of which some or none lie within the image.
const char* const kSmallDepthwise[] = {
    "input x : f32[2,40,2,6,5]\ninput w1 : f32[40,1,2,3,5]\ninput w2 : f32[40]\na = Conv(x, w1, w2) {group=40, "
    "strides=[1,2,1], pads=[0,1,2,1,0,2]}\nb = HardSwish(a)\noutput y = b",
    "input x : f32[1,16,8,14,14]\ninput w1 : f32[16,1,3,7,7]\na = Conv(x, w1) {group=16, strides=[4,4,4]}\n"
    "output y = a",
    "input x : f32[2,33,7,7]\ninput w1 : f32[33,1,3,3]\ninput r : f32[2,33,7,7]\na = Conv(x, w1) {group=33, "
    "pads=[1,1,1,1]}\nb = Add(a, r)\nc = Relu(b)\noutput y = c",
    "input x : f32[1,5,3,3]\ninput w1 : f32[5,1,2,2]\na = Conv(x, w1) {group=5, pads=[1,1,1,1], dilations=[2,2]}\n"
    "output y = a",
    "input x : f32[1,48,20]\ninput w1 : f32[48,1,9]\nr = Tanh(x)\na = Conv(r, w1) {group=48, strides=[3], "
    "dilations=[5], pads=[30,10]}\noutput y = a",
    "input x : f32[1,17,20,20]\ninput w1 : f32[17,1,16,16]\na = Conv(x, w1) {group=17, strides=[16,16], "
    "dilations=[4,8], pads=[30,60,30,60]}\noutput y = a",
    "input x : f32[3,20,9,9]\ninput w : f32[20,1,3,3]\na = Conv(x, w) {group=20}\noutput y = a",
};
TEST(DepthwiseConvolutionsOfSmallImages, AgreeWithTheInterpreter) {
  std::vector<BatchCase> cases;
  for (const char* text : kSmallDepthwise) cases.push_back(make_case("d" + std::to_string(cases.size()), text, 41));
  for (const int threads : {1, 2}) {
    CostsByName costs("channel-lanes", true);
    for (const std::string& line :
         run_batch(cases, costs, "small_depthwise", {.kind = TargetKind::Cpu, .threads = threads}))
      ADD_FAILURE() << line;
  }
}

// Very few channels of the output, many of the input: taps are channels first. And images that are read where they lie.
const char* const kToFewChannels[] = {
    "input x : f32[1,40,37]\ninput w1 : f32[40,1,8]\ninput w2 : f32[1]\na = ConvTranspose(x, w1, w2) {strides=[4]}\n"
    "b = Sigmoid(a)\noutput y = b",
    "input x : f32[2,33,9,11]\ninput w1 : f32[33,1,4,4]\ninput r : f32[2,1,18,22]\n"
    "a = ConvTranspose(x, w1) {strides=[2,2], pads=[1,1,1,1]}\nb = Add(a, r)\nc = Relu(b)\noutput y = c",
    "input x : f32[1,64,8,8]\ninput w1 : f32[64,3,3,3]\n"
    "a = ConvTranspose(x, w1) {strides=[2,2], pads=[1,1,0,1], output_padding=[1,0]}\noutput y = a",
    "input x : f32[1,35,3,7,5]\ninput w1 : f32[35,2,2,2,3]\n"
    "a = ConvTranspose(x, w1) {strides=[2,1,3], dilations=[1,2,2]}\noutput y = a",
    "input x : f32[2,40,17,19]\ninput w1 : f32[1,40,3,3]\na = Conv(x, w1) {pads=[1,1,1,1]}\nb = Relu(a)\noutput y = b",
    "input x : f32[1,48,21,40]\ninput w1 : f32[2,48,7,5]\ninput w2 : f32[2]\n"
    "a = Conv(x, w1, w2) {dilations=[2,1], pads=[6,2,5,1]}\nb = Tanh(a)\noutput y = b",
    "input x : f32[1,80,12,13]\ninput w1 : f32[4,40,2,3]\na = Conv(x, w1) {group=2, pads=[1,0,0,2]}\noutput y = a",
    "input x : f32[1,33,7,5]\ninput w1 : f32[5,33,1,1]\na = Conv(x, w1)\noutput y = a",
    "input x : f32[3,9,2,20]\ninput w1 : f32[6,9,2,3]\na = Conv(x, w1)\nb = Elu(a)\noutput y = b",
    "input x : f32[1,5,2,10]\ninput w1 : f32[7,5,1,1]\na = Conv(x, w1)\noutput y = a",
    "input x : f32[1,36,300]\ninput w1 : f32[1,36,4]\nr = Relu(x)\na = Conv(r, w1)\noutput y = a",
};
TEST(ConvolutionsToFewChannels, AgreeWithTheInterpreter) {
  std::vector<BatchCase> cases;
  for (const char* text : kToFewChannels) cases.push_back(make_case("c" + std::to_string(cases.size()), text, 77));
  for (const char* implementation : {"direct", "planar"})
    for (const int threads : {1, 2}) {
      CostsByName costs(implementation, true);
      const std::string name = std::string("few") + implementation + std::to_string(threads);
      for (const std::string& line : run_batch(cases, costs, name, {.kind = TargetKind::Cpu, .threads = threads}))
        ADD_FAILURE() << line;
    }
}

// Rows of a vector, of two and of more; windows that lie in the padding alone in part; strides up to four.
TEST(Pooling, AgreesWithTheInterpreter) {
  std::vector<BatchCase> cases;
  const auto add = [&](const std::string& extents, const std::string& attributes) {
    for (const char* op : {"MaxPool", "AveragePool"}) {
      const std::string more = std::string(op) == "AveragePool" ? ", count_include_pad=1" : "";
      const std::string text =
          "input x : f32[" + extents + "]\na = " + op + "(x) {" + attributes + more + "}\noutput y = a";
      cases.push_back(make_case("p" + std::to_string(cases.size()), text, 5));
    }
  };
  for (const char* width : {"1", "7", "16", "17", "32", "33", "70"}) {
    add(std::string("2,3,9,") + width, "kernel_shape=[3,1], strides=[2,2], pads=[1,0,1,0]");
    if (std::string(width) == "1") continue;
    add(std::string("2,3,9,") + width, "kernel_shape=[3,3], strides=[1,1], pads=[1,1,1,1]");
    add(std::string("1,5,8,") + width, "kernel_shape=[2,2], strides=[2,2], ceil_mode=1");
    add(std::string("1,2,4,6,") + width, "kernel_shape=[2,3,3], strides=[1,3,4], pads=[0,1,1,1,1,1]");
  }
  // Windows of two to five elements, on the first and the last image and between, whose neighbours' rows are read.
  for (const char* kernel : {"2", "3", "4", "5"})
    for (const char* steps : {"1", "2"})
      for (const char* width : {"35", "38", "61"})
        add(std::string("2,2,6,") + width, "kernel_shape=[3," + std::string(kernel) + "], strides=[2," + steps +
                                               "], pads=[1,1,1,1], ceil_mode=" + (kernel[0] % 2 ? "1" : "0"));
  // The window is larger than the padded input by less than a stride.
  add("1,1,1", "kernel_shape=[2], strides=[2], ceil_mode=1");
  add("2,16,3,1", "kernel_shape=[5,3], strides=[5,4], pads=[0,1,1,0], ceil_mode=1");
  add("3,4,150", "kernel_shape=[5], strides=[2], pads=[2,2]");
  add("1,2,20,40", "kernel_shape=[3,3], strides=[2,1], dilations=[2,3], pads=[2,3,2,3]");
  LayoutCosts costs(true);
  for (const std::string& line : run_batch(cases, costs, "pooling", {.kind = TargetKind::Cpu, .threads = 1}))
    ADD_FAILURE() << line;
}

}  // namespace
}  // namespace gopt
