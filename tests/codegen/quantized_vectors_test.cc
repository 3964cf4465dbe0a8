// Products of a few lines by quantized weights on CUDA: which are computed so, and that their numbers lie as the kernel
// reads them. Without a device they are compiled and linked; tests/codegen/emulation runs the kernel on the processor.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "batch.h"
#include "cuda_device.h"
#include "gopt/tile.h"
#include "gopt/vector_product.h"
#include "quantized_weights.h"
#include "share_weights.h"

namespace gopt {
namespace {

constexpr int kWarps[] = {4, 8};
constexpr Precision kPrecisions[] = {Precision::Fp32, Precision::Tf32, Precision::Fp16, Precision::Bf16};

// Every product by one of them that can be.
class CostsOfQuantized : public KernelCosts {
 public:
  explicit CostsOfQuantized(int warps) : name_(quantized_product_name(warps)) {}
  double time_ms(const Plan&, const Kernel& kernel) override { return kernel.implementation == name_ ? 0.1 : 0.2; }
  bool is_measured(const Plan&, const Kernel&) const override { return true; }

 private:
  std::string name_;
};

// One to eight lines; columns that fill no tile, depths that the warps of a block do not share alike; blocks of each
// size, scales of columns and one for all; numbers that lie either way.
std::vector<BatchCase> cases() {
  const std::string plain = "y = MatMul(x, dw)\n";
  std::vector<BatchCase> all;
  const auto add = [&](const std::string& name, const std::string& rows, const QuantizedWeights& w,
                       const std::string& steps) {
    all.push_back(make_case(name, product_of(rows, w, steps, all.size() + 1), all.size() + 1, 256));
  };
  add("one", "1", {1152, 121, 4, "u8", 32}, plain);
  add("two", "2", {512, 260, 4, "i8", 64}, plain);
  add("three", "3", {512, 262, 4, "i8", 128, false}, plain);
  add("four", "4", {1024, 135, 8, "u8", 256}, plain);
  add("six", "2,3", {512, 260, 8, "i8", 16}, plain);
  add("seven", "7", {128, 1030, 8, "u8", 0}, plain);
  add("eight", "8", {512, 270, 8, "i8", -1, false}, plain);
  add("turned", "1", {512, 260, 4, "u8", 32, true, true}, "t = Transpose(dw) {perm=[1,0]}\ny = MatMul(x, t)\n");
  add("gemm", "5", {512, 260, 8, "i8", 32, true, true},
      "input w1 : f32[260]\ng = Gemm(x, dw, w1) {transB=1, alpha=0.5}\ny = Relu(g)\n");
  add("epilogues", "1,2", {256, 520, 4, "u8", 32},
      "input w1 : f32[520]\ninput r : f32[1,2,520]\nm = MatMul(x, dw)\nb = Add(m, w1)\nh = Add(b, r)\n"
      "y = Gelu(h)\n");
  return all;
}

size_t count_of(const Plan& plan) {
  return static_cast<size_t>(std::ranges::count_if(
      plan.kernels, [](const Kernel& kernel) { return parse_quantized_product(kernel.implementation).has_value(); }));
}
Result<Plan> plan_of(const Graph& graph, Precision precision, int warps = 4) {
  CostsOfQuantized costs(warps);
  return make_plan(graph, {.kind = TargetKind::Cuda, .precision = precision}, costs);
}

TEST(QuantizedVectors, NamesAreReadBack) {
  for (const int warps : kWarps) EXPECT_EQ(parse_quantized_product(quantized_product_name(warps)), warps);
  for (const char* other : {"", "quantized", "quantized:", "quantized:4:1", "gemv:4"})
    EXPECT_FALSE(parse_quantized_product(other)) << other;
}

TEST(QuantizedVectors, AreChosenByTheirTimes) {
  for (const BatchCase& c : cases())
    for (const Precision precision : kPrecisions)
      for (const int warps : kWarps) {
        const auto plan = plan_of(c.graph, precision, warps);
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        EXPECT_EQ(count_of(*plan), 1U) << c.name << "\n" << print_plan(*plan);
        EXPECT_TRUE(std::ranges::all_of(plan->kernels, [](const Kernel& k) { return is_launched_ahead(k); })) << c.name;
        EXPECT_TRUE(emit(*plan).ok());
      }
}

// Numbers of 4 bits take a quarter of what halves do; scales that halves hold are halves.
TEST(QuantizedVectors, WeightsTakeTheirBits) {
  const BatchCase c = make_case("bits", product_of("1", {1024, 256, 4, "u8", 64, false}, "y = MatMul(x, dw)\n", 1), 1);
  const auto plan = plan_of(c.graph, Precision::Fp16);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  int64_t bytes = 0;
  for (const Buffer& buffer : plan->buffers)
    if (buffer.place == BufferPlace::Weight) bytes += buffer.size_bytes;
  EXPECT_EQ(bytes, 1024 * 256 / 2 + 1024 / 64 * 256 * 4) << "scales as drawn are no halves";
  const std::string text = "input x : f32[1,1024]\nconstant numbers = u8[1024,256] " +
                           listed(int64_t{1024} * 256, [](int64_t k) { return k % 16; }) + "\nconstant s = f32[256] " +
                           listed(256, [](int64_t k) { return 0.25 * static_cast<double>(k + 1); }) +
                           "\nconstant z = u8[] {7}\ndw = Dequantize(numbers, s, z)\ny = MatMul(x, dw)\noutput y = y";
  const auto of_halves = plan_of(make_case("halves", text, 1).graph, Precision::Fp32);
  ASSERT_TRUE(of_halves.ok()) << of_halves.error().message;
  const Kernel& kernel = of_halves->kernels.at(0);
  ASSERT_TRUE(kernel.quantized);
  EXPECT_EQ(of_halves->buffer(kernel.input_buffers[2]).element, ElementType::Float16);
}

// Of number k of a column: which word of the column's, and the lowest of its bits there.
std::pair<int64_t, int64_t> place_of(int64_t k, int bits) {
  const int64_t of_word = 32 / bits, word = k / of_word, number = k % of_word;
  const int64_t chunk = word / 16, group = word % 16 / 4, lane = word % 4;
  return {chunk * 16 + lane * 4 + group, bits == 8 ? number * 8 : number % 2 * 16 + number / 2 * 4};
}

TEST(QuantizedVectors, NumbersLieAsTheKernelReadsThem) {
  for (const int bits : {4, 8})
    for (const bool is_turned : {false, true})
      for (const ElementType type : {ElementType::UInt8, ElementType::Int8}) {
        constexpr int64_t kDepth = 256, kColumns = 3;
        const int64_t least = type == ElementType::Int8 ? -(1 << (bits - 1)) : 0;
        const auto above_least = [&](int64_t k, int64_t column) { return (k * 7 + column * 5 + k / 16) % (1 << bits); };
        std::vector<std::byte> bytes(kDepth * kColumns);
        for (int64_t k = 0; k < kDepth; k++)
          for (int64_t c = 0; c < kColumns; c++)
            bytes[static_cast<size_t>(is_turned ? c * kDepth + k : k * kColumns + c)] =
                static_cast<std::byte>(least + above_least(k, c));
        GraphBuilder builder;
        Buffer buffer;
        buffer.dims = is_turned ? std::vector<int64_t>{kColumns, kDepth} : std::vector<int64_t>{kDepth, kColumns};
        buffer.element = type;
        buffer.value = builder.constant(Tensor::from_bytes(type, buffer.dims, bytes));
        buffer.layout = (is_turned ? Layout() : Layout::transposed()).in_chunks(bits);
        buffer.size_bytes = buffer.layout.bytes(buffer.dims, buffer.element);
        EXPECT_EQ(buffer.size_bytes, kDepth * kColumns * bits / 8);
        const Status status = codegen::with_weight(buffer, [&](std::span<const char> written) {
          std::vector<uint32_t> words(written.size() / 4);
          std::memcpy(words.data(), written.data(), written.size());
          for (int64_t c = 0; c < kColumns; c++)
            for (int64_t k = 0; k < kDepth; k++) {
              const auto [word, bit] = place_of(k, bits);
              EXPECT_EQ(words.at(static_cast<size_t>(c * kDepth * bits / 32 + word)) >> bit & ((1 << bits) - 1),
                        above_least(k, c))
                  << k << " of column " << c;
            }
        });
        EXPECT_TRUE(status.ok());
      }
}

// Between the weights and the product: a cast to the left operand's type, and a transpose, in either order.
TEST(QuantizedVectors, AreSeenThroughCasts) {
  const std::string weights = text_of({512, 260, 4, "u8", 32, true, true}, 3), head = "input x : f16[3,512]\n";
  for (const char* steps : {"c = Cast(dw) {to=10}\nt = Transpose(c) {perm=[1,0]}\n",
                            "c = Transpose(dw) {perm=[1,0]}\nt = Cast(c) {to=10}\n"}) {
    const auto plan = plan_of(
        make_case("cast", head + weights + steps + "y = MatMul(x, t)\noutput y = y", 1, 256).graph, Precision::Fp16);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ(count_of(*plan), 1U) << print_plan(*plan);
  }
}

// Many lines, few weights, blocks that end within a group of words, depths of no whole chunks.
TEST(QuantizedVectors, LeaveOthersAlone) {
  const std::string plain = "y = MatMul(x, dw)\n";
  const std::pair<const char*, std::string> others[] = {
      {"lines", product_of("9", {512, 260, 4, "u8", 32}, plain, 1)},
      {"few", product_of("1", {128, 260, 4, "u8", 32}, plain, 1)},
      {"short", product_of("1", {512, 260, 4, "u8", 16}, plain, 1)},
      {"three_groups", product_of("1", {1536, 130, 4, "u8", 96}, plain, 1)},
      {"a_cast_that_truncates",
       product_of("1", {512, 260, 4, "u8", 32}, "c = Cast(dw) {to=3}\nf = Cast(c) {to=1}\ny = MatMul(x, f)\n", 1)},
      {"a_cast_that_rounds",
       product_of("1", {512, 260, 4, "u8", 32}, "c = Cast(dw) {to=10}\nf = Cast(c) {to=1}\ny = MatMul(x, f)\n", 1)},
      {"depth", product_of("1", {544, 260, 4, "u8", 32}, plain, 1)},
      {"scales_of_64_bits", "input x : f32[1,512]\nconstant n = u8[512,260] " +
                                listed(int64_t{512} * 260, [](int64_t k) { return k % 16; }) +
                                "\nconstant s = f64[] {0.03}\nconstant z = u8[] {7}\nd = Dequantize(n, s, z)\n"
                                "w = Cast(d) {to=1}\ny = MatMul(x, w)\noutput y = y"},
      {"halves_that_are_infinite", "input x : f16[1,512]\nconstant n = u8[512,260] " +
                                       listed(int64_t{512} * 260, [](int64_t k) { return k % 16; }) +
                                       "\nconstant s = f32[] {5000}\nconstant z = u8[] {0}\nd = Dequantize(n, s, z)\n"
                                       "w = Cast(d) {to=10}\ny = MatMul(x, w)\noutput y = y"}};
  for (const auto& [name, text] : others) {
    const auto plan = plan_of(make_case(name, text, 1, 256).graph, Precision::Fp16);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ(count_of(*plan), 0U) << name << "\n" << print_plan(*plan);
  }
  CostsOfQuantized costs(4);
  const auto off = make_plan(cases()[0].graph, {.kind = TargetKind::Cuda, .without = {kQuantized}}, costs);
  ASSERT_TRUE(off.ok()) << off.error().message;
  EXPECT_EQ(count_of(*off), 0U);
}

TEST(QuantizedVectors, CompileAndLink) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (obstacles().run.empty()) GTEST_SKIP() << "there is a device: the test below builds and runs";
  for (const auto& [precision, warps] : {std::pair(Precision::Fp32, 8), {Precision::Fp16, 4}, {Precision::Bf16, 8}}) {
    CostsOfQuantized costs(warps);
    expect_agreement_on_device(cases(), costs, "quantized", precision);
  }
}

TEST(QuantizedVectors, AgreeWithTheInterpreter) {
  if (!obstacles().build.empty()) GTEST_SKIP() << obstacles().build;
  if (!obstacles().run.empty()) GTEST_SKIP() << obstacles().run;
  for (const int warps : kWarps)
    for (const Precision precision : kPrecisions) {
      CostsOfQuantized costs(warps);
      expect_agreement_on_device(cases(), costs, "quantized_" + std::to_string(warps), precision);
    }
}

}  // namespace
}  // namespace gopt
