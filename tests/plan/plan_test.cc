// Which kernels cover a graph, which nodes cost nothing, and where buffers lie.
#include "gopt/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "../support/graph_with_weights.h"
#include "gopt/kernel_costs.h"
#include "gopt/kernel_spec.h"
#include "gopt/text.h"
#include "gopt/tile.h"

namespace gopt {
namespace {

Result<Plan> plan_of(const std::string& text) {
  auto costs = analytic_kernel_costs({});
  return make_plan(graph_with_weights(text), {TargetKind::Cpu, 2}, *costs);
}

struct CoverRow {
  const char* name;
  const char* text;
  std::vector<std::string> kernels;  // their names without the number
};
std::ostream& operator<<(std::ostream& os, const CoverRow& row) { return os << row.name; }

class CoverTest : public testing::TestWithParam<CoverRow> {};

TEST_P(CoverTest, HasTheseKernels) {
  auto plan = plan_of(GetParam().text);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  auto checked = check_plan(*plan);
  EXPECT_TRUE(checked.ok()) << (checked.ok() ? "" : checked.error().message);
  std::vector<std::string> names;
  for (const Kernel& k : plan->kernels) names.push_back(k.name.substr(k.name.find('_') + 1));
  EXPECT_EQ(names, GetParam().kernels);
}

const CoverRow kCoverRows[] = {
    {"ElementwiseChainIsOne", "input x : f32[9]\na = Exp(x)\nb = Neg(a)\nc = Tanh(b)\noutput y = c", {"Exp_Neg_Tanh"}},
    {"ConvTakesBiasAddAndRelu",
     "input x : f32[1,32,8,8]\ninput w : f32[32,32,1,1]\na = Conv(x, w)\nb = Relu(a)\nc = Conv(b, w)\nd = Add(c, b)\ne "
     "= Relu(d)\nf = Conv(e, w)\noutput y = f",
     {"Conv_Relu", "Conv_Add_Relu", "Conv"}},
    {"MatMulTakesBiasAndGelu",
     "input x : f32[8,16]\ninput w : f32[16,16]\ninput w2 : f32[16]\na = MatMul(x, w)\nb = Add(a, w2)\nc = "
     "Gelu(b)\noutput y = c",
     {"MatMul_Add_Gelu"}},
    {"ReshapeIsAView",
     "input x : f32[2,6]\na = Exp(x)\nb = Reshape(a) {shape=[3,4]}\nc = Softmax(b) {axis=1}\nd = Flatten(c) "
     "{axis=0}\noutput y = d",
     {"Exp", "Softmax"}},
    {"ContiguousSplitIsAView",
     "input x : f32[4,6]\na = Softmax(x) {axis=1}\nb, c = Split(a) {axis=0, split=[1,3]}\nd = Exp(b)\ne = "
     "Exp(c)\noutput y = d\noutput z = e",
     {"Softmax", "Exp", "Exp"}},
    {"ConcatOfConvolutionsIsInPlace",
     "input x : f32[1,3,8,8]\ninput w : f32[16,3,1,1]\ninput w2 : f32[32,3,3,3]\ninput w3 : f32[16,48,1,1]\na = "
     "Conv(x, w)\nb = Conv(x, w2) {pads=[1,1,1,1]}\n"
     "c = Concat(a, b) {axis=1}\nd = Conv(c, w3)\ne = Relu(d)\nf = GlobalAveragePool(e)\noutput y = f",
     {"Conv", "Conv", "Conv_Relu", "GlobalAveragePool"}},
    {"SoftmaxIsNotComputedTwice",
     "input x : f32[4,6]\na = Softmax(x) {axis=1}\nb = Exp(a)\nc = Transpose(a) {perm=[1,0]}\noutput y = b\noutput z = "
     "c",
     {"Softmax", "Exp", "Transpose"}},
    {"ReductionIsNotInlinedIntoABroadcast",
     "input x : f32[4,6]\na = ReduceMax(x) {axes=[1], keepdims=1}\nb = Sub(x, a)\noutput y = b",
     {"ReduceMax", "Sub"}},
    {"WeightsAreNoKernels", "input x : f32[4]\ninput w : f32[4]\na = Exp(w)\nb = Add(x, a)\noutput y = b", {"Add"}},
};
INSTANTIATE_TEST_SUITE_P(Rows, CoverTest, testing::ValuesIn(kCoverRows),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Plan, ResidualIsAddedInPlace) {
  auto plan = plan_of(
      "input x : f32[1,3,8,8]\ninput w : f32[32,3,1,1]\ninput w2 : f32[32,32,1,1]\na = Conv(x, w)\nb = Relu(a)\nc = "
      "Conv(b, w2)\nd = Conv(c, w2)\n"
      "e = Add(d, b)\nf = GlobalAveragePool(e)\noutput y = f");
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const Kernel* adds = nullptr;
  for (const Kernel& k : plan->kernels)
    if (k.name.ends_with("Conv_Add")) adds = &k;
  ASSERT_NE(adds, nullptr);
  const Buffer& out = plan->buffer(adds->output_buffers[0]);
  ASSERT_TRUE(out.is_view);
  EXPECT_EQ(out.parent, adds->epilogues.back().operand);
}

TEST(Plan, SourceIsNeverOverwrittenByItsResidual) {
  // The convolution reads what it adds: the sum must go elsewhere.
  auto plan = plan_of(
      "input x : f32[1,3,8,8]\ninput w : f32[32,3,1,1]\ninput w2 : f32[32,32,3,3]\na = Conv(x, w)\nb = Conv(a, w2) "
      "{pads=[1,1,1,1]}\nc = Add(b, a)\n"
      "d = GlobalAveragePool(c)\noutput y = d");
  ASSERT_TRUE(plan.ok());
  for (const Kernel& k : plan->kernels)
    if (k.name.ends_with("Conv_Add")) {
      EXPECT_FALSE(plan->buffer(k.output_buffers[0]).is_view);
    }
}

// Costs of one implementation, measured or not; of others more.
class CostsOf : public KernelCosts {
 public:
  CostsOf(std::string cheap, std::string measured) : cheap_(std::move(cheap)), measured_(std::move(measured)) {}
  double time_ms(const Plan&, const Kernel& kernel) override { return kernel.implementation == cheap_ ? 1 : 2; }
  bool is_measured(const Plan&, const Kernel& kernel) const override { return kernel.implementation == measured_; }

 private:
  std::string cheap_, measured_;
};

// Where a time was measured, the plan chooses; else whoever creates the model.
TEST(Plan, NothingIsChosenAtStartWhereTimesAreKnown) {
  const Graph graph = graph_with_weights(
      "input x : f32[1,32,8,8]\ninput w : f32[32,32,3,3]\na = Conv(x, w)\nb = Relu(a)\noutput y = b");
  for (const auto& [measured, expected] : {std::pair("", "fastest"), {"cudnn:1", "cudnn:1"}, {"unfolded", "cudnn:1"}}) {
    CostsOf costs("fastest", measured);
    const auto plan = make_plan(graph, {TargetKind::Cuda, 1}, costs);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ(plan->kernels[0].implementation, expected) << measured;
  }
  const auto admitted = admitted_kernels(graph, {TargetKind::Cuda, 1});
  ASSERT_TRUE(admitted.ok());
  for (const KernelSpec& spec : *admitted) EXPECT_NE(spec.kernel.implementation, "fastest");
}

TEST(Plan, OnlyWhatALibraryHasIsItsOwn) {
  const auto implementations = [](const std::string& convolution) {
    std::set<std::string> names;
    const auto admitted = admitted_kernels(graph_with_weights(convolution + "\noutput y = y"), {TargetKind::Cuda, 1});
    EXPECT_TRUE(admitted.ok());
    for (const KernelSpec& spec : *admitted) {
      const bool is_plain = spec.buffers[static_cast<uint32_t>(spec.kernel.output_buffers[0])].layout.is_plain();
      if (spec.kernel.kind == KernelKind::Convolution)
        names.insert((is_plain ? "" : "last ") +
                     spec.kernel.implementation.substr(0, spec.kernel.implementation.find(':')));
    }
    return names;
  };
  using Names = std::set<std::string>;
  EXPECT_EQ(implementations("input x : f32[1,32,8,8]\ninput w : f32[32,32,3,3]\ny = Conv(x, w)"),
            (Names{"cudnn", "unfolded", "last cudnn", "last tiles", "last wgmma"}));
  EXPECT_EQ(implementations("input x : f32[1,80,8,8]\ninput w : f32[32,80,1,1]\ny = Conv(x, w)"),
            (Names{"cudnn", "unfolded", "last cudnn", "last unfolded", "last tiles", "last wgmma"}));
  // Of one tap in steps, with pads around: as many positions, but others.
  EXPECT_FALSE(implementations("input x : f32[1,80,3,3]\ninput w : f32[32,80,1,1]\n"
                               "y = Conv(x, w) {pads=[1,1,1,1], strides=[2,2]}")
                   .contains("last unfolded"));
  EXPECT_EQ(implementations(
                "input x : f32[1,32,8,8]\ninput w : f32[32,32,3,3]\ny = Conv(x, w) {pads=[0,0,1,1], strides=[2,2]}"),
            (Names{"unfolded", "last tiles", "last wgmma"}));
  EXPECT_EQ(implementations("input x : f32[1,32,8,8]\ninput w : f32[32,1,3,3]\ny = Conv(x, w) {group=32}"),
            (Names{"cudnn", "unfolded", "generated", "last generated", "last channels"}));
  EXPECT_EQ(implementations("input x : f32[1,64,256,256]\ninput w : f32[2,64,5,5]\ny = Conv(x, w) {pads=[0,0,1,2]}"),
            (Names{"generated", "last tiles", "last wgmma"}));
}

// Rows of a product are the same memory in other shapes: what follows them in those is done before it is stored.
class ProductsOnTargets : public testing::TestWithParam<TargetKind> {};

TEST_P(ProductsOnTargets, LookThroughShapes) {
  auto costs = analytic_kernel_costs({});
  const auto names = [&](const std::string& text) {
    const auto plan = make_plan(graph_with_weights(text), {.kind = GetParam()}, *costs);
    EXPECT_TRUE(plan.ok() && check_plan(*plan).ok()) << text;
    std::vector<std::string> found;
    for (const Kernel& k : plan->kernels) found.push_back(k.name.substr(k.name.find('_') + 1));
    return found;
  };
  const std::string head =
      "input x : f32[64,128]\ninput z : f32[1,64,96]\ninput w : f32[128,96]\ninput w2 : f32[96]\n"
      "a = Gemm(x, w, w2)\n";
  EXPECT_EQ(
      names(head + "b = Reshape(a) {shape=[64,1,96]}\nc = Transpose(b) {perm=[1,0,2]}\nd = Add(z, c)\noutput y = d"),
      std::vector<std::string>{"Gemm_Reshape_Transpose_Add"});
  // Not where rows are cut, where another needs the product as it was, and not where elements move.
  EXPECT_EQ(names(head + "b = Reshape(a) {shape=[64,2,48]}\nc = Relu(b)\noutput y = c").size(), 2U);
  EXPECT_EQ(
      names(head + "b = Reshape(a) {shape=[1,64,96]}\nc = Relu(b)\nd = Exp(b)\noutput y = c\noutput u = d").size(), 3U);
  EXPECT_EQ(names(head + "b = Transpose(a) {perm=[1,0]}\nc = Relu(b)\noutput y = c").size(), 2U);
}
INSTANTIATE_TEST_SUITE_P(All, ProductsOnTargets, testing::Values(TargetKind::Cpu, TargetKind::Cuda));

// Pixels whose channels come last are an image of channels last, and the other way around: nothing is moved. Where the
// image lies otherwise, or axes really change places, it is.
TEST(Plan, PixelsMadeAnImageLieAsTheyDo) {
  const std::string weights = "input w : f32[64,32,1,1]\ninput w2 : f32[64,64]\ninput w3 : f32[48,64,1,1]\n",
                    head = "a = Conv(x, w)\nt = Transpose(a) {perm=[0,2,3,1]}\nm = MatMul(t, w2)\n",
                    tail = "c = Add(u, a)\nd = Conv(c, w3)\noutput y = d";
  const auto moves = [&](const std::string& back, const Target& target) {
    auto costs = analytic_kernel_costs({});
    const std::string image = target.open.empty() ? "input x : f32[1,32,14,14]\n" : "input x : f32[n,32,14,14]\n";
    const auto plan = make_plan(graph_with_weights(image + weights + head + back + tail), target, *costs);
    EXPECT_TRUE(plan.ok() && check_plan(*plan).ok()) << back;
    const auto is_transpose = [](const NodePtr& node) { return node->is(OpKind::Transpose); };
    return plan.ok() ? std::ranges::count_if(
                           plan->kernels, [&](const Kernel& k) { return std::ranges::any_of(k.nodes, is_transpose); })
                     : -1;
  };
  const std::string back = "u = Transpose(m) {perm=[0,3,1,2]}\n", turned = "u = Transpose(m) {perm=[0,3,2,1]}\n";
  const Target gpu{.kind = TargetKind::Cuda, .precision = Precision::Fp16},
      plain{.kind = TargetKind::Cuda, .precision = Precision::Fp16, .without = {"layout:channels-last"}},
      cpu{.without = {"layout:blocked"}}, any_batch{.without = {"layout:blocked"}, .open = {{symbol_atom("n"), 2}}};
  EXPECT_EQ(moves(back, gpu), 0);
  EXPECT_EQ(moves(back, cpu), 0);
  EXPECT_EQ(moves(back, any_batch), 0);
  EXPECT_GT(moves(back, plain), 0);
  EXPECT_GT(moves(turned, gpu), 0);
  EXPECT_GT(moves(turned, cpu), 0);
}

// Between pixels whose channels come last, what keeps an image's layout may lie so from end to end: one kernel makes
// it.
TEST(Plan, ImagesBetweenPixelsMayLieAsTheseDo) {
  class CostsOfKernels : public KernelCosts {
   public:
    double time_ms(const Plan&, const Kernel&) override { return 1; }
  } costs;
  for (const char* between :
       {"AveragePool(a) {kernel_shape=[3,3]}", "Repeat(a) {repeats=[1,1,2,2]}", "Pad(a) {pads=[0,0,1,1,0,0,1,1]}"})
    for (const TargetKind kind : {TargetKind::Cpu, TargetKind::Cuda}) {
      const std::string text = std::string("input x : f32[1,14,14,32]\na = Transpose(x) {perm=[0,3,1,2]}\nb = ") +
                               between + "\nc = Transpose(b) {perm=[0,2,3,1]}\noutput y = c";
      const auto plan = make_plan(graph_with_weights(text), {.kind = kind, .without = {"layout:blocked"}}, costs);
      ASSERT_TRUE(plan.ok() && check_plan(*plan).ok()) << text;
      EXPECT_EQ(plan->kernels.size(), 1U) << print_plan(*plan);
    }
}

// Constant right operands of CUDA's products, where nothing else reads them and where columns are whole chunks.
TEST(Plan, WeightsOfProductsAreWrittenByColumns) {
  const std::string image = "input x : f32[2,5,64]\n";
  const struct {
    std::string text;
    bool is_turned, is_by_columns;
  } cases[] = {
      {image + "input w : f32[64,48]\ny = MatMul(x, w)", true, true},
      {image + "input w : f32[64,45]\ny = MatMul(x, w)", true, true},
      {image + "input w : f32[1,64,48]\ny = MatMul(x, w)", true, true},
      {image + "input w : f32[64,48]\na = MatMul(x, w)\nb = Tanh(x)\nc = MatMul(b, w)\ny = Concat(a, c) {axis=0}", true,
       true},
      {"input x : f32[5,64]\ninput w : f32[64,48]\ny = Gemm(x, w)", true, true},
      {"input x : f32[5,64]\ninput w : f32[48,64]\ny = Gemm(x, w) {transB=1}", false, true},
      {"input x : f32[5,60]\ninput w : f32[60,48]\ny = MatMul(x, w)", true, true},
      {"input x : f32[5,62]\ninput w : f32[62,48]\ny = MatMul(x, w)", false, false},
      {"input x : f32[2,5,64]\ninput w : f32[2,64,48]\ny = MatMul(x, w)", false, false},
      {"input x : f32[5,64]\ninput v : f32[64,48]\ny = MatMul(x, v)", false, false},
      {"input x : f32[5,64]\ninput i : i64[3]\ninput w : f32[64,48]\na = MatMul(x, w)\nb = Gather(w, i) {axis=0}\n"
       "y = Concat(a, b) {axis=0}",
       false, false},
  };
  auto costs = analytic_kernel_costs({});
  for (const auto& c : cases)
    for (const bool is_switched_off : {false, true}) {
      Target target{.kind = TargetKind::Cuda};
      if (is_switched_off) target.without.insert("layout:transposed-weights");
      const auto plan = make_plan(graph_with_weights(c.text + "\noutput y = y"), target, *costs);
      ASSERT_TRUE(plan.ok()) << c.text << plan.error().message;
      EXPECT_GT(std::ranges::count(plan->kernels, KernelKind::MatrixProduct, &Kernel::kind), 0) << c.text;
      for (const Kernel& kernel : plan->kernels) {
        if (kernel.kind != KernelKind::MatrixProduct) continue;
        const bool is_turned = c.is_turned && !is_switched_off;
        EXPECT_EQ(plan->buffer(kernel.input_buffers[1]).layout.is_transposed(), is_turned) << c.text;
        EXPECT_EQ(is_by_columns(*plan, kernel), c.is_by_columns && (is_turned || !c.is_turned)) << c.text;
      }
    }
}

TEST(Plan, MemoryIsReused) {
  std::string text = "input x : f32[1000]\na0 = Softmax(x) {axis=0}\n";
  for (int i = 1; i < 9; i++) text += "a" + std::to_string(i) + " = Softmax(a" + std::to_string(i - 1) + ") {axis=0}\n";
  auto plan = plan_of(text + "output y = a8");
  ASSERT_TRUE(plan.ok());
  EXPECT_LE(plan->arena_bytes, 2 * 4032);
}

// Softmax, then two products of it, the second of which also reads the first's result.
TEST(Plan, ABufferLivesFromItsFirstKernelToItsLast) {
  auto plan = plan_of(
      "input x : f32[8,8]\ninput w : f32[8,8]\na = Softmax(x) {axis=1}\nb = MatMul(a, w)\nc = MatMul(b, a)\nd = "
      "Flatten(c) {axis=0}\noutput y = d");
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  ASSERT_EQ(plan->kernels.size(), 3U) << print_plan(*plan);
  const std::vector<BufferLife> lives = buffer_lives(*plan);
  const auto life_of = [&](BufferId id) {
    const BufferLife& life = lives.at(static_cast<uint32_t>(id));
    return std::pair(life.first, life.last);
  };
  EXPECT_EQ(life_of(plan->kernels[0].output_buffers[0]), std::pair(0, 2));
  EXPECT_EQ(life_of(plan->kernels[1].output_buffers[0]), std::pair(1, 2));
  for (size_t b = 0; b < plan->buffers.size(); b++)
    if (plan->buffers[b].is_view) {
      EXPECT_EQ(lives[b].first, -1);
    }
}

// Whether the plan has the part of plans of this name.
bool has_part(const Plan& plan, const std::string& part) {
  const auto any_buffer = [&](auto is) {
    return std::any_of(plan.buffers.begin(), plan.buffers.end(), [&](const Buffer& b) { return is(b.layout); });
  };
  const auto any_kernel = [&](auto is) { return std::any_of(plan.kernels.begin(), plan.kernels.end(), is); };
  if (part == "layout:blocked") return any_buffer([](const Layout& l) { return l.is_blocked(); });
  if (part == "layout:channels-last") return any_buffer([](const Layout& l) { return l.is_channels_last(); });
  if (part == "fusion:epilogues") return any_kernel([](const Kernel& k) { return !k.epilogues.empty(); });
  if (part == "fusion:inlining")
    return any_kernel([](const Kernel& k) { return k.kind == KernelKind::Generated && k.nodes.size() > 1; });
  if (part == "fusion:pieces")
    return any_kernel([](const Kernel& k) {
      const auto joins = [](const NodePtr& node) { return node->is(OpKind::Concat); };
      return k.nodes.size() > 1 && std::any_of(k.nodes.begin(), k.nodes.end(), joins);
    });
  return any_kernel([&](const Kernel& k) { return "kernel:" + k.implementation == part; });
}

// Convolutions of plain images take long, so that these lie in the layout that is left.
class DearPlainImages : public KernelCosts {
 public:
  double time_ms(const Plan& plan, const Kernel& kernel) override {
    const bool is_plain = std::any_of(kernel.output_buffers.begin(), kernel.output_buffers.end(),
                                      [&](BufferId id) { return plan.buffer(id).layout.is_plain(); });
    return kernel.kind == KernelKind::Convolution && is_plain ? 100 : 1;
  }
};

// Kernels that copy rows of images of so many channels, joined and cut between convolutions.
long copies_of_rows(int64_t images, int64_t channels, const std::string& without) {
  const std::string n = std::to_string(images), c = std::to_string(channels);
  const Graph graph = graph_with_weights(
      "input x : f32[" + n + ",32,8,8]\ninput w : f32[" + c + ",32,3,3]\ninput w2 : f32[" + c +
          ",32,3,3]\ninput w3 : f32[" + c + "," + c +
          ",3,3]\na = Conv(x, w) {pads=[1,1,1,1]}\nb = Conv(x, w2) {pads=[1,1,1,1]}\nd = Concat(a, b) {axis=2}\n"
          "e = Conv(d, w3)\nf = Slice(e) {axes=[2], starts=[2], ends=[9]}\ng = Conv(f, w3)\noutput y = g",
      [value = 0.0]() mutable { return value += 0.01; });
  Target target;
  target.without = {without};
  DearPlainImages costs;
  const auto plan = make_plan(graph, target, costs);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  if (!plan.ok()) return -1;
  return std::count_if(plan->kernels.begin(), plan->kernels.end(),
                       [](const Kernel& k) { return k.kind == KernelKind::Generated; });
}

// Rows of one image lie together where channels are last, and where there is one block of them.
TEST(Plan, RowsOfAnImageAreJoinedAndCutInPlace) {
  EXPECT_EQ(copies_of_rows(1, 32, "layout:blocked"), 0);
  EXPECT_EQ(copies_of_rows(2, 32, "layout:blocked"), 2);
  EXPECT_EQ(copies_of_rows(1, 16, "layout:channels-last"), 0);
  EXPECT_EQ(copies_of_rows(1, 32, "layout:channels-last"), 2);
}

TEST(Plan, GoesWithoutWhatIsSwitchedOff) {
  const Graph graph = graph_with_weights(
      "input x : f32[1,64,32,32]\ninput w : f32[64,64,3,3]\na = Conv(x, w) {pads=[1,1,1,1]}\nb = Relu(a)\nc = Conv(b, "
      "w) {pads=[1,1,1,1]}\nd = Exp(c)\ne = Neg(d)\nf = Concat(d, e) {axis=2}\noutput y = f");
  auto costs = analytic_kernel_costs({});
  const auto all_on = make_plan(graph, {}, *costs);
  ASSERT_TRUE(all_on.ok()) << all_on.error().message;
  int present = 0;
  for (const std::string& part : plan_parts(TargetKind::Cpu)) {
    present += has_part(*all_on, part);
    Target target;
    target.without = {part};
    const auto plan = make_plan(graph, target, *costs);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_FALSE(has_part(*plan, part)) << part << "\n" << print_plan(*plan);
    EXPECT_GE(plan->estimated_ms, all_on->estimated_ms) << part;
  }
  EXPECT_GE(present, 4) << print_plan(*all_on);
}

TEST(Plan, KeepsTheOnlyWayToRunAKernel) {
  const Graph graph =
      graph_with_weights("input x : f32[1,64,8,8]\ninput w : f32[64,32,2,2]\na = ConvTranspose(x, w)\noutput y = a");
  auto costs = analytic_kernel_costs({});
  Target target;
  for (const std::string& part : plan_parts(TargetKind::Cpu)) target.without.insert(part);
  const auto plan = make_plan(graph, target, *costs);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->kernels.back().kind, KernelKind::Convolution) << print_plan(*plan);
}

TEST(Plan, SymbolicExtentsAreAnErrorThatSaysShape) {
  auto plan = plan_of("input x : f32[n,4]\na = Exp(x)\noutput y = a");
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().message.find("--shape"), std::string::npos) << plan.error().message;
}

TEST(Plan, OpaqueNodesAreAnErrorByName) {
  GraphBuilder builder;
  const Value x = builder.input("x", {ElementType::Float32, Shape{Index(4)}});
  auto op = std::make_shared<OpaqueOp>(OpaqueOp{"custom", "Frobnicate", "", {}});
  builder.output("y", {builder.opaque(op, {x}, {{ElementType::Float32, Shape{Index(4)}}}, "frob"), 0});
  auto costs = analytic_kernel_costs({});
  auto plan = make_plan(builder.build(), {TargetKind::Cpu, 1}, *costs);
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().message.find("node `frob` (custom::Frobnicate)"), std::string::npos) << plan.error().message;
}

// All of them at once, but not what only follows from them.
TEST(Plan, NodesWithoutCodeAreListedTogether) {
  GraphBuilder builder;
  const Value x = builder.input("x", {ElementType::Float32, Shape{Index(4)}});
  auto op = std::make_shared<OpaqueOp>(OpaqueOp{"custom", "Frobnicate", "", {}});
  const auto opaque = [&](const std::string& name) {
    return Value{builder.opaque(op, {x}, {{ElementType::Float32, Shape{symbol("found")}}}, name), 0};
  };
  const Value first = opaque("frob"), second = opaque("grob");
  const auto after = builder.add(OpKind::Exp, {first}, {}, 1, "after");
  ASSERT_TRUE(after.ok()) << after.error().message;
  builder.output("y", {*after, 0});
  builder.output("z", second);
  auto costs = analytic_kernel_costs({});
  const auto plan = make_plan(builder.build(), {TargetKind::Cpu, 1}, *costs);
  ASSERT_FALSE(plan.ok());
  const std::string& message = plan.error().message;
  EXPECT_EQ(message.rfind("2 nodes have no code:\n  node `frob` (custom::Frobnicate) has no definition here", 0), 0U)
      << message;
  EXPECT_NE(message.find("\n  node `grob` (custom::Frobnicate)"), std::string::npos) << message;
  EXPECT_EQ(message.find("after"), std::string::npos) << message;
}

TEST(Plan, AnIndexBeyondTheAxisHasNoCode) {
  for (const char* index : {"9", "-7"}) {
    auto plan = plan_of("input x : f32[6,4]\nconstant i = i64[] {" + std::string(index) +
                        "}\na = Gather(x, i) {axis=0}\nb = Exp(a)\noutput y = b");
    ASSERT_FALSE(plan.ok());
    EXPECT_NE(plan.error().message.find("index " + std::string(index) + " lies beyond the axis of f32[6,4]"),
              std::string::npos)
        << plan.error().message;
  }
}

// What lies inside another value does so at every size: rows of a batch that is planned as 1 are no leading axis.
TEST(Plan, OpenExtentsDecideViewsAsSymbols) {
  Target target{TargetKind::Cpu, 1};
  target.open = {{symbol_atom("n"), 1}, {symbol_atom("m"), 7}};
  const auto kernels = [&](const std::string& text) {
    auto costs = analytic_kernel_costs({});
    const auto plan = make_plan(graph_with_weights(text), target, *costs);
    EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
    if (!plan.ok()) return size_t{0};
    EXPECT_TRUE(check_plan(*plan).ok()) << check_plan(*plan).error().message;
    return plan->kernels.size();
  };
  const std::string in = "input x : f32[%,m,6]\ninput w : f32[6,6]\na = MatMul(x, w)\nb = MatMul(a, w)\n";
  const auto with = [&](const std::string& first, const std::string& rest) {
    std::string text = in;
    return kernels(text.replace(text.find('%'), 1, first) + rest);
  };
  const std::string concat = "c = Concat(a, b) {axis=1}\ny = MatMul(c, w)\noutput y = y";
  EXPECT_EQ(with("1", concat), 3U);  // in place, behind m rows
  EXPECT_EQ(with("n", concat), 4U);
  const std::string split = "s, t = Split(b) {axis=1, split=[3, m - 3]}\ny = MatMul(t, w)\noutput y = y";
  EXPECT_EQ(with("1", split), 3U);
  EXPECT_EQ(with("n", split), 4U);
}

TEST(Plan, IsPrintedForReaders) {
  auto plan =
      plan_of("input x : f32[4,1000]\na = Softmax(x) {axis=1}\nb = Exp(a)\nc = Softmax(b) {axis=1}\noutput y = c");
  ASSERT_TRUE(plan.ok());
  std::string text = print_plan(*plan);
  for (size_t at; (at = text.find(" ms\n")) != std::string::npos;)  // times are the costs' own
    text.erase(text.rfind(", ", at), at + 3 - text.rfind(", ", at));
  EXPECT_EQ(text,
            "plan for cpu, 2 thread(s), arena of 16000 bytes\n"
            "k0_Softmax_Exp: generated of Softmax Exp\n"
            "  reads  b0 x f32[4,1000] plain input+0\n"
            "  writes b1 Exp f32[4,1000] plain arena+0\n"
            "k1_Softmax: generated of Softmax\n"
            "  reads  b1 Exp f32[4,1000] plain arena+0\n"
            "  writes b2 Softmax f32[4,1000] plain output+0\n");
}

TEST(PlanCheck, FindsOverlaps) {
  auto plan = plan_of(
      "input x : f32[1000]\na = Softmax(x) {axis=0}\nb = Softmax(a) {axis=0}\nc = Softmax(b) {axis=0}\noutput y = c");
  ASSERT_TRUE(plan.ok());
  Plan broken = *plan;
  ASSERT_TRUE(check_plan(broken).ok());
  for (Buffer& b : broken.buffers)
    if (b.place == BufferPlace::Arena) b.offset = 0;
  EXPECT_FALSE(check_plan(broken).ok());
}

// A definition may say the same of several axes: each of them is demanded.
TEST(SizeDemands, OfAxesThatAreToldInTheSameWordsAreAllKept) {
  const auto graph = parse_graph(
      "graph g\ninput x : f32[a,b,c]\ninput i : i64[d,e,f]\ny = GatherElements(x, i) {axis=1}\noutput y = y\nend");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  std::vector<OpenExtent> open;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) open.push_back({symbol_atom(name), 4});
  const std::vector<SizeDemand> demands = size_demands(*graph, open);
  const auto are_met = [&](int64_t d, int64_t f) {
    const std::vector<int64_t> extents = {4, 4, 4, d, 9, f};
    Environment sizes;
    for (size_t k = 0; k < open.size(); k++) sizes[open[k].symbol] = extents[k];
    return std::ranges::all_of(demands,
                               [&](const SizeDemand& demand) { return evaluate(demand.cond, sizes).value_or(false); });
  };
  EXPECT_TRUE(are_met(4, 4));
  EXPECT_FALSE(are_met(5, 4));
  EXPECT_FALSE(are_met(4, 5));
}

}  // namespace
}  // namespace gopt
