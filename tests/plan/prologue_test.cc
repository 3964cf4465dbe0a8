// What convolutions on CUDA do to their source before they multiply it, and where they may not.
#include <gtest/gtest.h>

#include <algorithm>

#include "../support/graph_with_weights.h"
#include "gopt/kernel_costs.h"
#include "gopt/kernel_spec.h"

namespace gopt {
namespace {

// A millisecond a kernel, however it is run; of what has a prologue as many as are given.
class CostsOfKernels : public KernelCosts {
 public:
  explicit CostsOfKernels(double with_prologue) : with_prologue_(with_prologue) {}
  double time_ms(const Plan& plan, const Kernel& kernel) override {
    const bool is_last = !plan.buffer(kernel.output_buffers[0]).layout.is_plain();
    return (kernel.prologue ? with_prologue_ : 1) + (is_last ? 0 : 0.5);
  }
  bool is_measured(const Plan&, const Kernel&) const override { return true; }

 private:
  double with_prologue_;
};

Plan plan_of(const std::string& text, Precision precision, double with_prologue = 1,
             const std::set<std::string>& without = {}) {
  CostsOfKernels costs(with_prologue);
  double next = 0;  // equal constants would be one
  const auto plan = make_plan(graph_with_weights(text, [&] { return ++next; }),
                              {.kind = TargetKind::Cuda, .precision = precision, .without = without}, costs);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_TRUE(check_plan(*plan).ok());
  return *plan;
}
const Kernel* kernel_with_prologue(const Plan& plan) {
  const auto found = std::ranges::find_if(plan.kernels, [](const Kernel& k) { return k.prologue.has_value(); });
  return found == plan.kernels.end() ? nullptr : &*found;
}

// `a` has 64 channels of 9x9 and several users; `last` is the convolution by `w`, or the node before it.
std::string graph_of(const std::string& between, const std::string& last = "y = Conv(r, w)",
                     const std::string& weights = "f32[40,64,1,1]") {
  return "input x : f32[2,32,9,9]\ninput w0 : f32[64,32,1,1]\ninput w : " + weights +
         "\ninput wc : f32[64,1,1]\ninput wd : f32[1,64,1,1]\ninput we : f32[64]\ninput wf : f32[64,9,9]\n"
         "input wv : f32[40,64,3,3]\na = Conv(x, w0)\nz = Conv(a, wv)\n" +
         between + "\n" + last + "\noutput y = y\noutput z = z";
}
constexpr const char* kNormalized = "n = BatchNormalization(a, we, we, we, we)\nr = Relu(n)";
constexpr const char* kGated =
    "p = GlobalAveragePool(a)\ninput wg : f32[64,64,1,1]\nq = Conv(p, wg)\ng = Sigmoid(q)\nr = Mul(g, a)";

TEST(Prologue, IsTakenWhereItCostsLess) {
  for (const Precision precision : {Precision::Fp16, Precision::Bf16}) {
    const Plan with = plan_of(graph_of(kNormalized), precision, 1.5),
               without = plan_of(graph_of(kNormalized), precision, 2.5);
    ASSERT_TRUE(kernel_with_prologue(with)) << print_plan(with);
    EXPECT_FALSE(kernel_with_prologue(without)) << print_plan(without);
    EXPECT_EQ(with.kernels.size() + 1, without.kernels.size());
    EXPECT_LT(with.estimated_ms, without.estimated_ms);
  }
}

TEST(Prologue, SaysWhatItIs) {
  const Plan normalized = plan_of(graph_of("n = BatchNormalization(a, we, we, we, we) {epsilon=0.5}\n"
                                           "r = Clip(n) {min=-1.0, max=2.0}"),
                                  Precision::Fp16);
  const Kernel* kernel = kernel_with_prologue(normalized);
  ASSERT_TRUE(kernel) << print_plan(normalized);
  const Prologue& p = *kernel->prologue;
  EXPECT_EQ(p.epsilon, 0.5);
  EXPECT_EQ(p.gates, -1);
  ASSERT_TRUE(p.activation);
  EXPECT_EQ(p.activation->kind, ActivationKind::Clip);
  EXPECT_EQ(p.activation->a, -1);
  EXPECT_EQ(p.activation->b, 2);
  for (const int operand : {p.scale, p.shift, p.mean, p.variance}) {
    ASSERT_GE(operand, 0);
    EXPECT_EQ(kernel->inputs.at(static_cast<size_t>(operand)).node->name, "we");
  }
  EXPECT_TRUE(kernel->inputs[0].node->is(OpKind::Conv));

  const Plan gated = plan_of(graph_of(kGated), Precision::Fp16);
  kernel = kernel_with_prologue(gated);
  ASSERT_TRUE(kernel) << print_plan(gated);
  ASSERT_GE(kernel->prologue->gates, 0);
  EXPECT_TRUE(kernel->inputs.at(static_cast<size_t>(kernel->prologue->gates)).node->is(OpKind::Sigmoid));
  EXPECT_EQ(kernel->prologue->scale, -1);
}

TEST(Prologue, IsAScaleAndAShiftEitherWayAround) {
  struct Form {
    const char* between;
    bool has_scale, has_shift;
  };
  for (const auto& [between, has_scale, has_shift] :
       {Form{"m = Mul(a, wc)\nn = Add(wd, m)\nr = Relu(n)", true, true},
        Form{"m = Mul(wd, a)\nr = Relu(m)", true, false}, Form{"m = Add(a, wc)\nr = Relu(m)", false, true},
        Form{"r = Mul(a, wd)", true, false}}) {
    const Plan plan = plan_of(graph_of(between), Precision::Fp16);
    const Kernel* kernel = kernel_with_prologue(plan);
    ASSERT_TRUE(kernel) << print_plan(plan);
    EXPECT_EQ(kernel->prologue->scale >= 0, has_scale) << between;
    EXPECT_EQ(kernel->prologue->shift >= 0, has_shift) << between;
  }
}

// What lies beyond an image is zero, not what the prologue makes of it; elements are not channels; what others read is
// stored; what tiles do not do.
TEST(Prologue, IsNotTakenWhereItWouldBeWrong) {
  const std::string three = "f32[40,64,3,3]";
  struct Other {
    std::string between, last = "y = Conv(r, w)", weights = "f32[40,64,1,1]";
  };
  const Other others[] = {
      {kNormalized, "y = Conv(r, w) {pads=[1,1,1,1]}"},
      {kNormalized, "y = Conv(r, w)", three},
      {kNormalized, "y = Conv(r, w) {group=2}", "f32[40,32,1,1]"},
      {std::string(kNormalized) + "\nt = Tanh(r)", "y1 = Conv(r, w)\ny = Add(y1, y1)\noutput t = t"},
      {"m = Mul(a, wf)\nr = Relu(m)"},
      {"m = Mul(a, a)\nr = Relu(m)"},
      {"n = BatchNormalization(a, we, we, we, we)\nr = Tanh(n)"},
      {"n = Add(a, wc)\nm = Mul(n, wd)\nr = Relu(m)"},  // (x + c) d, which is no x scale + shift
      {std::string(kGated) + "\noutput r = r"},
      {"p = GlobalAveragePool(a)\ng = Sigmoid(p)\nn = Mul(g, a)\nr = Relu(n)"},
      {"r = Relu(a)"},
  };
  for (const Other& other : others) {
    const Plan plan = plan_of(graph_of(other.between, other.last, other.weights), Precision::Fp16);
    EXPECT_FALSE(kernel_with_prologue(plan)) << other.between << "\n" << other.last << "\n" << print_plan(plan);
  }
  for (const Precision precision : {Precision::Fp32, Precision::Tf32})
    EXPECT_FALSE(kernel_with_prologue(plan_of(graph_of(kNormalized), precision)));
  EXPECT_FALSE(kernel_with_prologue(plan_of(graph_of(kNormalized), Precision::Fp16, 1, {"fusion:prologues"})));
  EXPECT_FALSE(kernel_with_prologue(
      plan_of(graph_of(kNormalized), Precision::Fp16, 1, {"layout:channels-last", "layout:channels-last-in-parts"})));
}

// Gates that no tile reads: of channels that are no pairs; of several images, each a part of a longer line.
TEST(Prologue, IsNotTakenWhereNoTileHasIt) {
  const auto graph = [](const std::string& images, const std::string& channels, const std::string& gates) {
    return "input x : f32[" + images + ",32,9,9]\ninput w0 : f32[" + channels + ",32,1,1]\ninput w1 : f32[40," +
           channels + ",1,1]\ninput wg : f32[" + channels + "," + channels + ",1,1]\ninput wh : f32[8," + channels +
           ",1,1]\na = Conv(x, w0)\np = GlobalAveragePool(a)\nq = Conv(p, wg)\ns = Sigmoid(q)\n" + gates +
           "\nr = Mul(s, a)\ny = Conv(r, w1)\noutput y = y";
  };
  const std::string in_line = "t = Conv(p, wh)\nu = Concat(s, t) {axis=1}\nv = Exp(u)\noutput v = v";
  EXPECT_TRUE(kernel_with_prologue(plan_of(graph("3", "64", ""), Precision::Fp16)));
  EXPECT_TRUE(kernel_with_prologue(plan_of(graph("3", "12", ""), Precision::Fp16)));
  EXPECT_FALSE(kernel_with_prologue(plan_of(graph("1", "9", ""), Precision::Fp16)));
  for (const char* images : {"1", "3"}) plan_of(graph(images, "64", in_line), Precision::Fp16);  // which is checked
}

// Nor where those that have it are switched off: it is stored then.
TEST(Prologue, IsNotTakenByWhatIsSwitchedOff) {
  for (const char* between : {kNormalized, kGated}) {
    EXPECT_TRUE(kernel_with_prologue(plan_of(graph_of(between), Precision::Fp16, 1, {"kernel:wgmma"})));
    EXPECT_TRUE(kernel_with_prologue(plan_of(graph_of(between), Precision::Fp16, 1, {"kernel:tiles"})));
    EXPECT_FALSE(
        kernel_with_prologue(plan_of(graph_of(between), Precision::Fp16, 1, {"kernel:wgmma", "kernel:tiles"})));
  }
}

TEST(Prologue, WithoutATileIsNoPlan) {
  Plan plan = plan_of(graph_of(kNormalized), Precision::Fp16);
  ASSERT_TRUE(kernel_with_prologue(plan));
  for (Kernel& kernel : plan.kernels)
    if (kernel.prologue) kernel.implementation = "cudnn:1";
  EXPECT_FALSE(check_plan(plan).ok());
}

TEST(Prologue, IsAPartOfPlansAndOfSignatures) {
  const auto parts = plan_parts(TargetKind::Cuda);
  EXPECT_EQ(std::ranges::count(parts, "fusion:prologues"), 1);
  const auto cpu = plan_parts(TargetKind::Cpu);
  EXPECT_EQ(std::ranges::count(cpu, "fusion:prologues"), 0);

  const Plan normalized = plan_of(graph_of(kNormalized), Precision::Fp16),
             gated = plan_of(graph_of(kGated), Precision::Fp16);
  ASSERT_TRUE(kernel_with_prologue(normalized) && kernel_with_prologue(gated));
  Kernel bare = *kernel_with_prologue(normalized);
  EXPECT_NE(kernel_signature(normalized, bare), kernel_signature(gated, *kernel_with_prologue(gated)));
  const Plan clipped =
      plan_of(graph_of("n = BatchNormalization(a, we, we, we, we)\nr = Clip(n) {min=0.0, max=6.0}"), Precision::Fp16);
  ASSERT_TRUE(kernel_with_prologue(clipped));
  EXPECT_NE(kernel_signature(normalized, bare), kernel_signature(clipped, *kernel_with_prologue(clipped)));
  // Alone, too, as it is timed.
  const KernelSpec spec = spec_of(normalized, bare);
  EXPECT_EQ(kernel_signature(spec), kernel_signature(normalized, bare));
  ASSERT_TRUE(spec.kernel.prologue);
  EXPECT_EQ(spec.kernel.prologue->scale, bare.prologue->scale);
  // Kernels are timed with it and without.
  const auto admitted = admitted_kernels(graph_with_weights(graph_of(kNormalized)),
                                         {.kind = TargetKind::Cuda, .precision = Precision::Fp16});
  ASSERT_TRUE(admitted.ok());
  const auto has = [](const KernelSpec& s) { return s.kernel.prologue.has_value(); };
  EXPECT_GE(std::ranges::count_if(*admitted, has), 1);
  for (const KernelSpec& s : *admitted) EXPECT_TRUE(!has(s) || !s.kernel.implementation.empty());
}

}  // namespace
}  // namespace gopt
