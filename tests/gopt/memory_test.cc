// What an optimization holds in memory, beside the model's file: weights are read from it where they are looked at.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "program.h"

namespace gopt {
namespace {

// Matrices behind each other, with two transpositions that cancel, so that the model is rewritten and checked.
void write_large_model(const std::string& path, int layers, int64_t extent) {
  std::mt19937 random(1);
  std::uniform_int_distribution<uint32_t> mantissa(0, (1U << 23) - 1);
  GraphBuilder builder;
  builder.metadata().opsets[""] = 17;
  const Value x = builder.input("x", {ElementType::Float32, Shape{Index(4), Index(extent)}});
  const Value across = *builder.apply(OpKind::Transpose, {x}, {{"perm", std::vector<Index>{1, 0}}});
  Value value = *builder.apply(OpKind::Relu, {across});
  value = *builder.apply(OpKind::Transpose, {value}, {{"perm", std::vector<Index>{1, 0}}});
  for (int layer = 0; layer < layers; layer++) {
    std::vector<std::byte> weights(static_cast<size_t>(extent * extent) * sizeof(float));
    for (size_t at = 0; at < weights.size(); at += sizeof(float)) {
      const uint32_t bits = mantissa(random) | (random() % 2 ? 0x3d000000U : 0xbd000000U);  // between 1/32 and 1/16
      std::memcpy(weights.data() + at, &bits, sizeof bits);
    }
    const Value matrix =
        builder.constant(Tensor::from_bytes(ElementType::Float32, {extent, extent}, std::move(weights)));
    value = *builder.apply(OpKind::Relu, {*builder.apply(OpKind::MatMul, {value, matrix})});
  }
  builder.output("y", value);
  const Status status = export_onnx(builder.build(), path);
  ASSERT_TRUE(status.ok()) << status.error().message;
}

TEST(Memory, OfALargeModelIsLessThanOneAndAHalfOfItsFile) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer has memory of its own";
#endif
  const TestFolder folder;
  write_large_model(folder.file("m.onnx"), 12, 2048);
  const auto run = run_program("optimize " + folder.file("m.onnx") + " -o " + folder.file("o.onnx") + " --report " +
                               folder.file("r.json"));
  ASSERT_EQ(run.status, 0) << run.text;
  const auto report = nlohmann::json::parse(read_file(folder.file("r.json")));
  EXPECT_FALSE(report["applied"].empty()) << "the model is to be rewritten, and so checked";
  EXPECT_EQ(report["check"]["passed"], true);
  EXPECT_EQ(report["check"]["engine"], "interpreter");
  EXPECT_GE(report["check"]["draws"].size(), 5U);
  EXPECT_TRUE(report["check"]["not_drawn"].empty());
  const double file_mb = static_cast<double>(std::filesystem::file_size(folder.file("m.onnx"))) / (1 << 20);
  EXPECT_GT(file_mb, 190);
  EXPECT_LT(report["peak_memory_mb"].get<double>(), 1.5 * file_mb);
}

}  // namespace
}  // namespace gopt
