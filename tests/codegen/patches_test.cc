// Convolutions of images of few channels by patches on CUDA: windows, steps and pads of all kinds, images of three and
// four channels. Without a device they are compiled and linked.
#include <gtest/gtest.h>

#include <algorithm>

#include "cuda_device.h"
#include "gopt/tile.h"
#include "implementations.h"

namespace gopt {
namespace {

std::vector<std::string> patch_names() {
  std::vector<std::string> names;
  for (const planner::Implementation& row : planner::implementations())
    if (parse_patch_tile(row.name)) names.emplace_back(row.name);
  return names;
}

// Every convolution by one of them that can be.
class CostsOfPatches : public KernelCosts {
 public:
  explicit CostsOfPatches(std::string name) : name_(std::move(name)) {}
  double time_ms(const Plan&, const Kernel& kernel) override {
    if (kernel.kind != KernelKind::Convolution) return 0.01;
    return kernel.implementation == name_ ? 1 : 3;
  }
  bool is_measured(const Plan&, const Kernel&) const override { return true; }
  bool prices_unlikely() const override { return true; }

 private:
  std::string name_;
};

BatchCase case_of(const std::string& name, const std::string& image, const std::string& weights,
                  const std::string& attributes, const std::string& rest = "output y = a") {
  return make_case(
      name, "input x : f32" + image + "\ninput w1 : f32" + weights + "\na = Conv(x, w1) {" + attributes + "}\n" + rest,
      name.size());
}

std::vector<BatchCase> cases() {
  return {
      case_of("seven", "[2,3,65,49]", "[64,3,7,7]", "strides=[2,2], pads=[3,3,3,3]",
              "input w2 : f32[64]\nb = Conv(x, w1, w2) {strides=[2,2], pads=[3,3,3,3]}\nc = Relu(b)\n"
              "d = MaxPool(c) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]}\noutput y = d"),
      case_of("three", "[1,3,37,70]", "[40,3,3,3]", "pads=[1,1,1,1]", "b = Sigmoid(a)\nc = Mul(a, b)\noutput y = c"),
      case_of("eleven", "[1,3,63,63]", "[72,3,11,11]", "strides=[4,4], pads=[2,2,2,2]", "b = Relu(a)\noutput y = b"),
      case_of("line", "[1,3,200]", "[32,3,7]", "pads=[3,3]"),
      case_of("four", "[1,4,20,33]", "[96,4,2,9]", "strides=[1,3], pads=[0,8,1,8]",
              "input z : f32[1,96,20,14]\nb = Add(a, z)\nc = Gelu(b)\noutput y = c"),
      case_of("points", "[2,3,9,21]", "[24,3,1,1]", "strides=[2,1]")};
}

const Kernel* convolution_by(const Plan& plan, const std::string& name) {
  const auto found = std::ranges::find(plan.kernels, name, &Kernel::implementation);
  return found == plan.kernels.end() ? nullptr : &*found;
}

TEST(Patches, NamesAreReadBack) {
  ASSERT_EQ(patch_names().size(), 3U);
  for (const std::string& name : patch_names()) {
    EXPECT_EQ(patch_name(*parse_patch_tile(name)), name);
    EXPECT_FALSE(parse_tile(name) || parse_warpgroup_tile(name)) << name;
  }
  for (const char* other : {"", "patches", "patches:64", "patches:64x64:1", "tiles:64x64:1"})
    EXPECT_FALSE(parse_patch_tile(other)) << other;
}

// In 16 bits alone, where a block has room for the weights; the code says which kernel it is.
TEST(Patches, AreChosenByTheirTimes) {
  for (const std::string& name : patch_names())
    for (const BatchCase& c : cases())
      for (const Precision precision : {Precision::Fp32, Precision::Tf32, Precision::Fp16, Precision::Bf16}) {
        CostsOfPatches costs(name);
        const auto plan = make_plan(c.graph, {.kind = TargetKind::Cuda, .precision = precision}, costs);
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        const Kernel* kernel = convolution_by(*plan, name);
        const bool is_half = precision == Precision::Fp16 || precision == Precision::Bf16,
                   has_room = c.name != "eleven" || name != "patches:128x64";
        EXPECT_EQ(kernel != nullptr, is_half && has_room) << c.name << "\n" << print_plan(*plan);
        EXPECT_TRUE(!kernel || is_launched_ahead(*kernel));
        EXPECT_TRUE(emit(*plan).ok());
      }
}

// More channels, fewer, steps and windows that there is no room for, dilations, groups, a third axis.
TEST(Patches, LeaveOthersAlone) {
  const BatchCase others[] = {case_of("five", "[1,5,20,20]", "[32,5,3,3]", "pads=[1,1,1,1]"),
                              case_of("far", "[1,3,40,40]", "[32,3,3,3]", "strides=[1,5]"),
                              case_of("long", "[1,3,40,40]", "[32,3,12,3]", "pads=[1,1,1,1]"),
                              case_of("apart", "[1,3,40,40]", "[32,3,3,3]", "dilations=[1,2]"),
                              case_of("groups", "[1,4,20,20]", "[32,2,3,3]", "group=2"),
                              case_of("one", "[3,1,28,28]", "[32,1,5,5]", "pads=[2,0,1,2]"),
                              case_of("planes", "[1,3,5,20,20]", "[32,3,2,3,3]", "pads=[0,1,1,0,1,1]")};
  for (const BatchCase& c : others)
    for (const std::string& name : patch_names()) {
      CostsOfPatches costs(name);
      const auto plan = make_plan(c.graph, {.kind = TargetKind::Cuda, .precision = Precision::Fp16}, costs);
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      EXPECT_FALSE(convolution_by(*plan, name)) << c.name << "\n" << print_plan(*plan);
    }
}

// Tiles by how many they are: small ones of one image, large ones of sixteen.
TEST(Patches, ThoseThatAreFarBehindAreNotPriced) {
  const auto priced = [](const std::string& images) {
    return priced_for_halves(
        case_of("stem", "[" + images + ",3,224,224]", "[64,3,7,7]", "strides=[2,2], pads=[3,3,3,3]").graph);
  };
  EXPECT_TRUE(priced("1").contains("patches:64x32"));
  EXPECT_FALSE(priced("1").contains("patches:128x64"));
  EXPECT_TRUE(priced("16").contains("patches:128x64"));
  EXPECT_FALSE(priced("16").contains("patches:64x32"));
}

TEST(Patches, CompileAndLink) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (obstacles().run.empty()) GTEST_SKIP() << "there is a device: the test below builds and runs";
  CostsOfPatches costs("patches:128x64");
  expect_agreement_on_device(cases(), costs, "patches", Precision::Fp16);
}

TEST(Patches, AgreeWithTheInterpreter) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
  for (const std::string& name : patch_names())
    for (const Precision precision : {Precision::Fp16, Precision::Bf16}) {
      CostsOfPatches costs(name);
      expect_agreement_on_device(cases(), costs, "patches", precision);
    }
}

}  // namespace
}  // namespace gopt
