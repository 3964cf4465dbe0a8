// Tensors in files: TensorProto in all its ways to hold numbers, and NumPy's .npz.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "gopt/onnx.h"
#include "model_builder.h"
#include "run_command.h"
#include "test_folder.h"
#include "text_files.h"

namespace gopt {
namespace {

TEST(TensorFile, RoundTripKeepsTypeDimsBytesAndName) {
  const TestFolder folder;
  const std::vector<Tensor> tensors = {
      Tensor::from_values<double>(ElementType::Float32, {2, 2}, {1, -2.5, 0, 4}),
      Tensor::from_values<double>(ElementType::Float16, {3}, {1, -2.5, 0.125}),
      Tensor::from_values<double>(ElementType::BFloat16, {1}, {1.5}),
      Tensor::from_values<int64_t>(ElementType::Bool, {}, {1}),
      Tensor::from_values<int64_t>(ElementType::UInt8, {0, 4}, {}),
      Tensor::vector_i64({INT64_MIN, INT64_MAX}),
  };
  for (const Tensor& tensor : tensors) {
    ASSERT_TRUE(write_tensor_proto(tensor, "named", folder.file("t.pb")).ok());
    std::string name;
    const auto back = read_tensor_proto(folder.file("t.pb"), &name);
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(name, "named");
    EXPECT_EQ(back->content_id(), tensor.content_id());
    EXPECT_EQ(back->dims(), tensor.dims());
    EXPECT_EQ(back->type(), tensor.type());
  }
}

struct Typed {
  std::string name;
  int type;
  std::function<void(onnx::TensorProto&)> fill;
  std::vector<double> values;
};
void PrintTo(const Typed& row, std::ostream* out) { *out << row.name; }
using P = onnx::TensorProto;
const std::vector<Typed> kTyped = {
    {"Float", P::FLOAT, [](P& t) { t.add_float_data(1.5f), t.add_float_data(-2); }, {1.5, -2}},
    {"Double", P::DOUBLE, [](P& t) { t.add_double_data(1e300), t.add_double_data(0.1); }, {1e300, 0.1}},
    {"Float16", P::FLOAT16, [](P& t) { t.add_int32_data(0x3c00), t.add_int32_data(0xc000); }, {1, -2}},
    {"BFloat16", P::BFLOAT16, [](P& t) { t.add_int32_data(0x3f80), t.add_int32_data(0xc000); }, {1, -2}},
    {"Int8", P::INT8, [](P& t) { t.add_int32_data(-128), t.add_int32_data(127); }, {-128, 127}},
    {"UInt8", P::UINT8, [](P& t) { t.add_int32_data(0), t.add_int32_data(255); }, {0, 255}},
    {"Int16", P::INT16, [](P& t) { t.add_int32_data(-32768), t.add_int32_data(1); }, {-32768, 1}},
    {"UInt16", P::UINT16, [](P& t) { t.add_int32_data(65535), t.add_int32_data(1); }, {65535, 1}},
    {"Int32", P::INT32, [](P& t) { t.add_int32_data(-7), t.add_int32_data(1 << 30); }, {-7, 1 << 30}},
    {"Bool", P::BOOL, [](P& t) { t.add_int32_data(1), t.add_int32_data(0); }, {1, 0}},
    {"Int64", P::INT64, [](P& t) { t.add_int64_data(-7), t.add_int64_data(8); }, {-7, 8}},
    {"UInt32", P::UINT32, [](P& t) { t.add_uint64_data(4294967295u), t.add_uint64_data(8); }, {4294967295.0, 8}},
    {"UInt64", P::UINT64, [](P& t) { t.add_uint64_data(7), t.add_uint64_data(8); }, {7, 8}},
};

class TypedField : public testing::TestWithParam<Typed> {};

TEST_P(TypedField, IsConverted) {
  const TestFolder folder;
  onnx::TensorProto proto;
  proto.set_data_type(GetParam().type);
  proto.add_dims(2);
  GetParam().fill(proto);
  write_file(folder.file("t.pb"), proto.SerializeAsString());
  const auto tensor = read_tensor_proto(folder.file("t.pb"));
  ASSERT_TRUE(tensor.ok()) << tensor.error().message;
  EXPECT_EQ(tensor->to_doubles(), GetParam().values);
  proto.set_dims(0, 3);
  write_file(folder.file("t.pb"), proto.SerializeAsString());
  EXPECT_FALSE(read_tensor_proto(folder.file("t.pb")).ok());
}

INSTANTIATE_TEST_SUITE_P(TensorFile, TypedField, testing::ValuesIn(kTyped),
                         [](const auto& info) { return info.param.name; });

TEST(TensorFile, StringsAreKept) {
  const TestFolder folder;
  const Tensor tensor = Tensor::from_strings({2}, {"a", std::string("b\0c", 3)});
  ASSERT_TRUE(write_tensor_proto(tensor, "s", folder.file("t.pb")).ok());
  const auto back = read_tensor_proto(folder.file("t.pb"));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(*back->strings(), *tensor.strings());
}

TEST(TensorFile, WhatIsNoTensorIsAnError) {
  const TestFolder folder;
  EXPECT_FALSE(read_tensor_proto(folder.file("missing.pb")).ok());
  write_file(folder.file("t.pb"), "no tensor at all");
  EXPECT_FALSE(read_tensor_proto(folder.file("t.pb")).ok());
  EXPECT_FALSE(write_tensor_proto(Tensor::scalar_f32(1), "x", folder.file("nowhere/t.pb")).ok());
}

// ---- .npz ----

NamedTensors sample() {
  return {{"x", Tensor::from_values<double>(ElementType::Float32, {2, 3}, {1, 2, 3, 4, 5, -6})},
          {"scalar", Tensor::from_values<double>(ElementType::Float64, {}, {0.1})},
          {"empty", Tensor::from_values<int64_t>(ElementType::Int64, {0, 3}, {})},
          {"half", Tensor::from_values<double>(ElementType::Float16, {1}, {0.5})},
          {"flags", Tensor::from_values<int64_t>(ElementType::Bool, {3}, {1, 0, 1})},
          {"with/slash", Tensor::from_values<int64_t>(ElementType::UInt8, {2}, {0, 255})}};
}

void expect_equal(const NamedTensors& a, const NamedTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); i++) {
    EXPECT_EQ(a[i].first, b[i].first);
    EXPECT_EQ(a[i].second.content_id(), b[i].second.content_id()) << a[i].first;
    EXPECT_EQ(a[i].second.dims(), b[i].second.dims()) << a[i].first;
  }
}

TEST(Npz, RoundTrip) {
  const TestFolder folder;
  ASSERT_TRUE(write_npz(sample(), folder.file("a.npz")).ok());
  const auto back = read_npz(folder.file("a.npz"));
  ASSERT_TRUE(back.ok()) << back.error().message;
  expect_equal(sample(), *back);
  EXPECT_EQ(folder.count(), 1u);
}

TEST(Npz, AnyTruncationIsAnError) {
  const TestFolder folder;
  ASSERT_TRUE(write_npz(sample(), folder.file("a.npz")).ok());
  const std::string whole = read_file(folder.file("a.npz"));
  for (size_t length = 0; length < whole.size(); length += 7) {
    write_file(folder.file("t.npz"), whole.substr(0, length));
    EXPECT_FALSE(read_npz(folder.file("t.npz")).ok()) << length;
  }
}

TEST(Npz, NoByteCrashesTheReader) {
  const TestFolder folder;
  ASSERT_TRUE(write_npz(sample(), folder.file("a.npz")).ok());
  const std::string whole = read_file(folder.file("a.npz"));
  int errors = 0;
  for (size_t i = 0; i < whole.size(); i++) {
    std::string text = whole;
    text[i] = static_cast<char>(text[i] ^ 0xff);
    write_file(folder.file("t.npz"), text);
    errors += read_npz(folder.file("t.npz")).ok() ? 0 : 1;
  }
  EXPECT_GT(errors, 0);
}

TEST(Npz, ReadsWhatNumpyWrites) {
  if (!python_has("numpy")) GTEST_SKIP() << "no Python with NumPy (set GOPT_PYTHON to one)";
  const TestFolder folder;
  const std::string script =
      "import numpy as n; a = n.arange(6, dtype='f4').reshape(2, 3); "
      "n.savez_compressed('" +
      folder.file("c.npz") +
      "', a=a, f=n.asfortranarray(a), b=a.astype('>f8'), "
      "z=n.zeros(100000, 'i8'), s=n.float32(2.5)); n.savez('" +
      folder.file("s.npz") + "', a=a)";
  ASSERT_EQ(std::system((test_python() + " -c \"" + script + "\"").c_str()), 0);
  const auto packed = read_npz(folder.file("c.npz")), stored = read_npz(folder.file("s.npz"));
  ASSERT_TRUE(packed.ok()) << packed.error().message;
  ASSERT_TRUE(stored.ok()) << stored.error().message;
  const std::vector<double> values = {0, 1, 2, 3, 4, 5};
  for (const auto& [name, tensor] : *packed) {
    const std::vector<double> expected = name == "z"   ? std::vector<double>(100000)
                                         : name == "s" ? std::vector<double>{2.5}
                                                       : values;
    EXPECT_EQ(tensor.to_doubles(), expected) << name;
  }
  EXPECT_EQ(packed->size(), 5u);
  EXPECT_EQ(stored->at(0).second.to_doubles(), values);
  ASSERT_TRUE(write_npz(sample(), folder.file("ours.npz")).ok());
  const std::string check =
      "import numpy as n; d = n.load('" + folder.file("ours.npz") +
      "'); "
      "assert d['x'].tolist() == [[1, 2, 3], [4, 5, -6]] and d['scalar'].shape == () and d['empty'].shape == (0, 3)";
  EXPECT_EQ(std::system((test_python() + " -c \"" + check + "\"").c_str()), 0);
}

}  // namespace
}  // namespace gopt
