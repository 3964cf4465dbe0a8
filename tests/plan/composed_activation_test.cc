// Activations that a graph writes as several nodes: steps of library kernels where they are what they seem to be, and
// nobody else uses what lies between.
#include <gtest/gtest.h>

#include <optional>

#include "../support/graph_with_weights.h"
#include "gopt/kernel_costs.h"

namespace gopt {
namespace {

// The activation that ends the one matrix product of a graph; none: it has none.
std::optional<Activation> activation_after_product(const std::string& nodes, std::optional<size_t> kernels = 1,
                                                   const std::string& type = "f32") {
  std::string constants;
  for (const auto& [name, number] :
       std::initializer_list<std::pair<const char*, const char*>>{{"c_half", "0.5"},
                                                                  {"c_one", "1"},
                                                                  {"c_two", "2"},
                                                                  {"c_three", "3"},
                                                                  {"c_sqrt_two", "1.4142135"},
                                                                  {"c_root", "0.70710678"},
                                                                  {"c_quick", "1.702"},
                                                                  {"c_cubic", "0.044715"},
                                                                  {"c_slope", "0.7978846"},
                                                                  {"c_six", "6"},
                                                                  {"c_near", "0.7072"}})
    constants += std::string("constant ") + name + " = " + type + "[] {" + number + "}\n";
  const std::string shapes =
      "input q : " + type + "[8,16]\ninput w : " + type + "[16,16]\ninput z : " + type + "[8,16]\n";
  auto costs = analytic_kernel_costs({});
  Target target{TargetKind::Cpu, 2};
  target.without.insert(kFusionByCost);
  const auto plan = make_plan(graph_with_weights(shapes + constants + "x = MatMul(q, w)\n" + nodes), target, *costs);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  if (!plan.ok()) return std::nullopt;
  EXPECT_TRUE(check_plan(*plan).ok());
  if (kernels) {
    EXPECT_EQ(plan->kernels.size(), *kernels) << print_plan(*plan);
  }
  std::optional<Activation> found;
  for (const Kernel& kernel : plan->kernels)
    for (const Epilogue& step : kernel.epilogues)
      if (step.kind == Epilogue::Kind::Activation) found = step.activation;
  return found;
}

struct Written {
  const char* name;
  const char* nodes;
  ActivationKind kind;
  double a = 0;
};
std::ostream& operator<<(std::ostream& os, const Written& row) { return os << row.name; }

class ComposedActivation : public testing::TestWithParam<Written> {};

TEST_P(ComposedActivation, IsAStepOfTheKernelBefore) {
  const auto found = activation_after_product(GetParam().nodes + std::string("\noutput y = r"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, GetParam().kind);
  EXPECT_NEAR(found->a, GetParam().a, 1e-6);
}

const Written kWritten[] = {
    {"GeluScaledLast", "d = Div(x, c_sqrt_two)\ne = Erf(d)\na = Add(e, c_one)\nm = Mul(x, a)\nr = Mul(m, c_half)",
     ActivationKind::GeluErf},
    {"GeluScaledFirst", "d = Mul(c_root, x)\ne = Erf(d)\na = Add(c_one, e)\nh = Mul(x, c_half)\nr = Mul(h, a)",
     ActivationKind::GeluErf},
    {"GeluScaledGate", "d = Div(x, c_sqrt_two)\ne = Erf(d)\na = Add(e, c_one)\nh = Mul(c_half, a)\nr = Mul(h, x)",
     ActivationKind::GeluErf},
    {"GeluScaledFunction", "d = Mul(x, c_root)\ne = Erf(d)\nh = Mul(e, c_half)\na = Add(h, c_half)\nr = Mul(a, x)",
     ActivationKind::GeluErf},
    {"GeluHalved", "d = Mul(x, c_root)\ne = Erf(d)\na = Add(e, c_one)\nm = Mul(a, x)\nr = Div(m, c_two)",
     ActivationKind::GeluErf},
    {"GeluByTanh",
     "c = Pow(x, c_three)\nk = Mul(c, c_cubic)\ns = Add(x, k)\nl = Mul(s, c_slope)\nt = Tanh(l)\na = Add(t, c_one)\n"
     "m = Mul(x, a)\nr = Mul(c_half, m)",
     ActivationKind::GeluTanh},
    {"GeluByTanhOfProducts",
     "c1 = Mul(x, x)\nc2 = Mul(c1, x)\nk = Mul(c_cubic, c2)\ns = Add(k, x)\nl = Mul(c_slope, s)\nt = Tanh(l)\n"
     "a = Add(c_one, t)\nh = Mul(x, c_half)\nr = Mul(h, a)",
     ActivationKind::GeluTanh},
    {"Swish", "s = Sigmoid(x)\nr = Mul(s, x)", ActivationKind::Swish, 1},
    {"QuickGelu", "k = Mul(x, c_quick)\ns = Sigmoid(k)\nr = Mul(x, s)", ActivationKind::Swish, 1.702},
    {"HardSwish", "s = HardSigmoid(x) {alpha=0.16666667, beta=0.5}\nr = Mul(x, s)", ActivationKind::HardSwish},
    {"HardSwishByClip", "s = Add(x, c_three)\nt = Clip(s) {min=0.0, max=6.0}\nm = Mul(x, t)\nr = Div(m, c_six)",
     ActivationKind::HardSwish},
    {"HardSwishOfScaledGate", "s = Add(c_three, x)\nt = Clip(s) {min=0.0, max=6.0}\nu = Div(t, c_six)\nr = Mul(u, x)",
     ActivationKind::HardSwish},
};
INSTANTIATE_TEST_SUITE_P(Rows, ComposedActivation, testing::ValuesIn(kWritten),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ComposedActivations, OfHalvesHaveConstantsOfHalves) {
  const char* gelu =
      "d = Mul(x, c_near)\ne = Erf(d)\na = Add(e, c_one)\nm = Mul(x, a)\nr = Mul(m, c_half)\noutput y = r";
  EXPECT_TRUE(activation_after_product(gelu, std::nullopt, "bf16"));
  EXPECT_FALSE(activation_after_product(gelu, std::nullopt, "f32"));
}

TEST(ComposedActivations, AreNothingElse) {
  const char* const texts[] = {
      // Another constant, scale, argument or factor.
      "d = Mul(x, c_half)\ne = Erf(d)\na = Add(e, c_one)\nm = Mul(x, a)\nr = Mul(m, c_half)\noutput y = r",
      "d = Mul(x, c_root)\ne = Erf(d)\na = Add(e, c_one)\nr = Mul(x, a)\noutput y = r",
      "d = Mul(x, c_root)\ne = Erf(d)\na = Add(e, c_two)\nm = Mul(x, a)\nr = Mul(m, c_half)\noutput y = r",
      "d = Mul(z, c_root)\ne = Erf(d)\na = Add(e, c_one)\nm = Mul(x, a)\nr = Mul(m, c_half)\noutput y = r",
      "s = Sigmoid(x)\nm = Mul(x, s)\nr = Mul(m, x)\noutput y = r", "s = Sigmoid(x)\nr = Div(x, s)\noutput y = r",
      "s = HardSigmoid(x) {alpha=0.2, beta=0.5}\nr = Mul(x, s)\noutput y = r",
      "s = Add(x, c_three)\nt = Clip(s) {min=1.0, max=6.0}\nm = Mul(x, t)\nr = Div(m, c_six)\noutput y = r",
      "t0 = Sub(c_three, x)\nt = Clip(t0) {min=0.0, max=-6.0}\nu = Div(t, c_six)\nm = Neg(u)\nr = Mul(x, m)\noutput y "
      "= r",
      "k = Sub(c_one, x)\ns = Sigmoid(k)\nr = Mul(x, s)\noutput y = r",
      // Somebody else uses what lies between, or the product.
      "s = Sigmoid(x)\nr = Mul(x, s)\noutput y = r\noutput u = s",
      "s = Sigmoid(x)\nr = Mul(x, s)\noutput y = r\noutput u = x",
      "s = Sigmoid(x)\nr = Mul(x, s)\nt = Add(s, z)\noutput y = r\noutput u = t"};
  for (const char* text : texts) EXPECT_FALSE(activation_after_product(text, std::nullopt)) << text;
}

// Halves of what goes on for ever are read in no time.
TEST(ComposedActivations, LongChainsAreLeftAlone) {
  std::string nodes = "v0 = Mul(x, x)\n";
  for (int i = 1; i < 60; i++) {
    const std::string before = "v" + std::to_string(i - 1);
    nodes += "v" + std::to_string(i) + " = Mul(" + before + ", " + before + ")\n";
  }
  EXPECT_FALSE(activation_after_product(nodes + "output y = v59", std::nullopt));
}

}  // namespace
}  // namespace gopt
