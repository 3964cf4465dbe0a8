// Each kind of bad input gives one clear error, and leaves nothing behind.
#include <gtest/gtest.h>

#include <functional>

#include "gopt/onnx.h"
#include "model_builder.h"
#include "test_folder.h"
#include "text_files.h"

namespace gopt {
namespace {

namespace fs = std::filesystem;

// A model with one weight, [2,3], as its external data say.
void fill_external(TestModel& model, const std::string& location, const std::string& offset,
                   const std::string& length) {
  model.input("x", {1, 2});
  onnx::TensorProto tensor;
  tensor.set_name("w");
  tensor.set_data_type(kFloat);
  tensor.add_dims(2);
  tensor.add_dims(3);
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  const auto add = [&](const std::string& key, const std::string& value) {
    auto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  };
  add("location", location);
  if (!offset.empty()) add("offset", offset);
  if (!length.empty()) add("length", length);
  model.constant(tensor);
  model.node("MatMul", {"x", "w"}, {"y"}).name("product");
  model.output("y", {1, 3});
}

void save_external(const TestFolder& folder, const std::string& location, const std::string& offset = "",
                   const std::string& length = "") {
  TestModel model;
  fill_external(model, location, offset, length);
  model.save(folder.file("m.onnx"));
}

void save_relu(const TestFolder& folder, const std::function<void(TestModel&)>& change) {
  TestModel model;
  model.input("x", {2, 3});
  model.node("Relu", {"x"}, {"y"}).name("relu");
  model.output("y", {2, 3});
  change(model);
  model.save(folder.file("m.onnx"));
}

// One value of so many, at `index`.
void add_sparse(TestModel& m, int64_t extent, int64_t index) {
  onnx::SparseTensorProto& sparse = *m.proto.mutable_graph()->add_sparse_initializer();
  *sparse.mutable_values() = float_tensor("w", {1});
  *sparse.mutable_indices() = int_tensor("", {index});
  sparse.add_dims(extent);
}

struct BadModel {
  std::string name;
  std::function<void(const TestFolder&)> write;  // m.onnx in the folder
  std::vector<std::string> says;                 // parts of the message
  std::map<std::string, std::vector<int64_t>> shapes = {};
};
void PrintTo(const BadModel& row, std::ostream* out) { *out << row.name; }

const std::vector<BadModel> kBadModels = {
    {"Missing", [](const TestFolder&) {}, {"no such file"}},
    {"Folder", [](const TestFolder& f) { fs::create_directory(f.path() / "m.onnx"); }, {"is a folder"}},
    {"Empty", [](const TestFolder& f) { write_file(f.file("m.onnx"), ""); }, {"empty"}},
    {"Text",
     [](const TestFolder& f) { write_file(f.file("m.onnx"), "hello, this is a text\n"); },
     {"not an ONNX model"}},
    {"Zeros", [](const TestFolder& f) { write_file(f.file("m.onnx"), std::string(100, '\0')); }, {"not an ONNX model"}},
    {"AnotherMessage",
     [](const TestFolder& f) { write_file(f.file("m.onnx"), float_tensor("t", {4}).SerializeAsString()); },
     {"not an ONNX model"}},
    {"Truncated",
     [](const TestFolder& f) {
       save_relu(f, [](TestModel& m) { m.constant(float_tensor("w", {100})); });
       fs::resize_file(f.file("m.onnx"), fs::file_size(f.file("m.onnx")) / 2);
     },
     {"truncated", "byte"}},
    {"Damaged",
     [](const TestFolder& f) {
       save_relu(f, [](TestModel& m) { m.proto.mutable_graph()->set_doc_string(std::string(50, 'x')); });
       std::string text = read_file(f.file("m.onnx"));
       text.replace(text.find("relu"), 4, std::string(4, '\xff'));
       text[text.find("xxxx") - 1] = '\x7f';  // the length of the graph's documentation
       write_file(f.file("m.onnx"), text);
     },
     {"truncated", "byte"}},
    {"NoGraph",
     [](const TestFolder& f) {
       TestModel m;
       m.proto.clear_graph();
       std::ofstream out(f.file("m.onnx"), std::ios::binary);
       m.proto.SerializeToOstream(&out);
     },
     {"has no graph"}},
    {"NoOpset",
     [](const TestFolder& f) { save_relu(f, [](TestModel& m) { m.proto.clear_opset_import(); }); },
     {"opset_import"}},
    {"NoOutputs",
     [](const TestFolder& f) { save_relu(f, [](TestModel& m) { m.proto.mutable_graph()->clear_output(); }); },
     {"no outputs"}},
    {"Cycle",
     [](const TestFolder& f) {
       save_relu(f, [](TestModel& m) {
         m.node("Add", {"y", "b"}, {"a"}).name("first");
         m.node("Relu", {"a"}, {"b"}).name("second");
         m.output("b", {2, 3});
       });
     },
     {"cycle", "first", "second"}},
    {"UndefinedValue",
     [](const TestFolder& f) { save_relu(f, [](TestModel& m) {
                                 m.node("Add", {"y", "ghost"}, {"z"}).name("adds");
                               }); },
     {"adds", "'ghost'", "nothing defines"}},
    {"UndefinedOutput",
     [](const TestFolder& f) { save_relu(f, [](TestModel& m) { m.output("ghost", {2}); }); },
     {"'ghost'"}},
    {"UndefinedCapture",
     [](const TestFolder& f) {
       save_relu(f, [](TestModel& m) {
         onnx::GraphProto body;
         GraphBuilderProto builder(body);
         builder.node("Relu", {"ghost"}, {"r"});
         builder.output("r", {2, 3});
         m.input("test", {}, kBool);
         m.node("If", {"test"}, {"z"}).graph("then_branch", body).graph("else_branch", body).name("choice");
       });
     },
     {"choice", "'ghost'"}},
    {"NameDefinedTwice",
     [](const TestFolder& f) { save_relu(f, [](TestModel& m) { m.node("Tanh", {"x"}, {"y"}).name("again"); }); },
     {"'y'", "twice", "relu", "again"}},
    {"InputRedefined",
     [](const TestFolder& f) { save_relu(f, [](TestModel& m) { m.node("Tanh", {"y"}, {"x"}).name("again"); }); },
     {"'x'", "again"}},
    {"InputTwice",
     [](const TestFolder& f) { save_relu(f, [](TestModel& m) {
                                 m.input("x", {2, 3});
                               }); },
     {"two graph inputs", "'x'"}},
    {"InitializerTwice",
     [](const TestFolder& f) {
       save_relu(f, [](TestModel& m) {
         m.constant(float_tensor("w", {2}));
         m.constant(float_tensor("w", {3}));
       });
     },
     {"two initializers", "'w'"}},
    {"ContradictoryMatMul",
     [](const TestFolder& f) {
       save_relu(f, [](TestModel& m) {
         m.constant(float_tensor("w", {4, 5}));
         m.node("MatMul", {"y", "w"}, {"z"}).name("product");
         m.output("z", {2, 5});
       });
     },
     {"product", "MatMul", "3", "4"}},
    {"ContradictoryConv",
     [](const TestFolder& f) {
       save_relu(f, [](TestModel& m) {
         m.input("p", {1, 3, 8, 8});
         m.constant(float_tensor("w", {4, 5, 3, 3}));
         m.node("Conv", {"p", "w"}, {"z"}).name("conv");
         m.output("z", {1, 4, 6, 6});
       });
     },
     {"conv", "Conv", "channels"}},
    {"WrongDeclaredOutput",
     [](const TestFolder& f) {
       save_relu(f, [](TestModel& m) {
         m.node("Tanh", {"y"}, {"z"}).name("tanh");
         m.output("z", {2, 4});
       });
     },
     {"tanh", "declared", "[2,4]", "[2,3]"}},
    {"WrongDeclaredValue",
     [](const TestFolder& f) {
       save_relu(f, [](TestModel& m) {
         m.node("Tanh", {"y"}, {"h"}).name("tanh");
         m.node("Tanh", {"h"}, {"z"});
         m.value("h", {2, 3}, kInt64);
         m.output("z", {2, 3});
       });
     },
     {"tanh", "'h'", "declared"}},
    {"BytesDoNotMatchDims",
     [](const TestFolder& f) {
       save_relu(f, [](TestModel& m) {
         auto tensor = float_tensor("w", {2, 2});
         tensor.set_dims(0, 3);
         m.constant(tensor);
       });
     },
     {"'w'", "16 bytes", "24"}},
    {"NegativeDims",
     [](const TestFolder& f) {
       save_relu(f, [](TestModel& m) {
         auto tensor = float_tensor("w", {2, 2});
         tensor.set_dims(0, -2);
         m.constant(tensor);
       });
     },
     {"'w'", "negative"}},
    {"HugeDims",
     [](const TestFolder& f) {
       save_relu(f, [](TestModel& m) {
         auto tensor = float_tensor("w", {2, 2});
         tensor.set_dims(0, int64_t{1} << 62);
         tensor.set_dims(1, int64_t{1} << 62);
         m.constant(tensor);
       });
     },
     {"'w'", "too large"}},
    {"UnknownElementType",
     [](const TestFolder& f) {
       save_relu(f, [](TestModel& m) {
         auto tensor = float_tensor("w", {2});
         tensor.set_data_type(99);
         m.constant(tensor);
       });
     },
     {"'w'", "element type"}},
    {"SparseLargerThanMemory",
     [](const TestFolder& f) { save_relu(f, [](TestModel& m) { add_sparse(m, int64_t{1} << 40, 5); }); },
     {"'w'", "is sparse", "not filled in"}},
    {"SparseIndexOutOfRange",
     [](const TestFolder& f) { save_relu(f, [](TestModel& m) { add_sparse(m, 4, INT64_MAX); }); },
     {"'w'", "out of range"}},
    {"ExternalMissing", [](const TestFolder& f) { save_external(f, "w.bin"); }, {"'w'", "w.bin", "no such file"}},
    {"ExternalTooShort",
     [](const TestFolder& f) {
       write_file(f.file("w.bin"), std::string(20, 'a'));
       save_external(f, "w.bin");
     },
     {"w.bin", "too short", "24", "20"}},
    {"ExternalOffsetBeyondEnd",
     [](const TestFolder& f) {
       write_file(f.file("w.bin"), std::string(24, 'a'));
       save_external(f, "w.bin", "9223372036854775807");
     },
     {"w.bin", "too short"}},
    {"ExternalNegativeOffset",
     [](const TestFolder& f) {
       write_file(f.file("w.bin"), std::string(24, 'a'));
       save_external(f, "w.bin", "-8");
     },
     {"offset", "negative"}},
    {"ExternalOffsetNoNumber",
     [](const TestFolder& f) {
       write_file(f.file("w.bin"), std::string(24, 'a'));
       save_external(f, "w.bin", "12monkeys");
     },
     {"offset", "12monkeys"}},
    {"ExternalLengthDoesNotMatch",
     [](const TestFolder& f) {
       write_file(f.file("w.bin"), std::string(24, 'a'));
       save_external(f, "w.bin", "0", "12");
     },
     {"12", "24"}},
    {"ExternalOutsideByDots",
     [](const TestFolder& f) {
       write_file(f.file("w.bin"), std::string(24, 'a'));
       save_external(f, "../" + f.path().filename().string() + "/../outside.bin");
     },
     {"outside the model's folder"}},
    {"ExternalAbsolute", [](const TestFolder& f) { save_external(f, f.file("w.bin")); }, {"absolute"}},
    {"ExternalOutsideBySymbolicLink",
     [](const TestFolder& f) {
       fs::create_symlink("/etc/hostname", f.path() / "w.bin");
       save_external(f, "w.bin");
     },
     {"outside the model's folder"}},
    {"ExternalFolder",
     [](const TestFolder& f) {
       fs::create_directory(f.path() / "w.bin");
       save_external(f, "w.bin");
     },
     {"is a folder"}},
    {"ExternalWithoutLocation", [](const TestFolder& f) { save_external(f, ""); }, {"location"}},
    {"ShapeOfUnknownInput",
     [](const TestFolder& f) { save_relu(f, [](TestModel&) {}); },
     {"--shape", "'z'", "x"},
     {{"z", {1}}}},
    {"ShapeOfWrongRank",
     [](const TestFolder& f) { save_relu(f, [](TestModel&) {}); },
     {"--shape", "2"},
     {{"x", {1, 2, 3}}}},
    {"ShapeNegative",
     [](const TestFolder& f) { save_relu(f, [](TestModel&) {}); },
     {"--shape", "negative"},
     {{"x", {-1, 3}}}},
    {"ShapesThatDisagree",
     [](const TestFolder& f) {
       TestModel m;
       m.input("x", {"n", 3});
       m.input("z", {"n", 3});
       m.node("Add", {"x", "z"}, {"y"});
       m.output("y", {"n", 3});
       m.save(f.file("m.onnx"));
     },
     {"--shape", "'n'", "4", "5"},
     {{"x", {4, 3}}, {"z", {5, 3}}}},
    {"ShapeThatTheModelCannotFollow",
     [](const TestFolder& f) {
       save_relu(f, [](TestModel& m) {
         m.constant(float_tensor("w", {3, 5}));
         m.node("MatMul", {"y", "w"}, {"z"}).name("product");
         m.output("z", {2, 5});
       });
     },
     {"product", "--shape"},
     {{"x", {2, 4}}}},
};

class BadModelTest : public testing::TestWithParam<BadModel> {};

TEST_P(BadModelTest, GivesOneClearError) {
  const TestFolder folder;
  GetParam().write(folder);
  ImportOptions options;
  options.shapes = GetParam().shapes;
  const auto imported = import_onnx(folder.file("m.onnx"), options);
  ASSERT_FALSE(imported.ok());
  const std::string& message = imported.error().message;
  EXPECT_TRUE(message.starts_with(folder.file("m.onnx"))) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  for (const std::string& part : GetParam().says) EXPECT_NE(message.find(part), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(Onnx, BadModelTest, testing::ValuesIn(kBadModels),
                         [](const auto& info) { return info.param.name; });

// A truncated file at every length: an error, or the whole model, but never a crash.
TEST(OnnxImport, AnyTruncationIsAnError) {
  const TestFolder folder;
  save_relu(folder, [](TestModel& m) { m.constant(float_tensor("w", {3})); });
  const std::string whole = read_file(folder.file("m.onnx"));
  for (size_t length = 0; length < whole.size(); length++) {
    write_file(folder.file("t.onnx"), whole.substr(0, length));
    const auto imported = import_onnx(folder.file("t.onnx"));
    EXPECT_FALSE(imported.ok()) << length << " of " << whole.size();
  }
}

// Any one byte changed: an error or a graph, but never a crash.
TEST(OnnxImport, NoByteCrashesTheReader) {
  const TestFolder folder;
  save_relu(folder, [](TestModel& m) {
    m.constant(float_tensor("w", {3}));
    m.constant(int_tensor("s", {3, 2}));
    m.node("Mul", {"y", "w"}, {"p"});
    m.node("Reshape", {"p", "s"}, {"z"});
    m.output("z", {3, 2});
  });
  const std::string whole = read_file(folder.file("m.onnx"));
  int errors = 0;
  for (size_t i = 0; i < whole.size(); i++) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string text = whole;
      text[i] = static_cast<char>(text[i] ^ flip);
      write_file(folder.file("t.onnx"), text);
      errors += import_onnx(folder.file("t.onnx")).ok() ? 0 : 1;
    }
  }
  EXPECT_GT(errors, 0);
}

// ---- writing ----

Graph relu_graph() {
  GraphBuilder builder;
  const Value x = builder.input("x", {ElementType::Float32, Shape{Index(2)}});
  builder.output("y", *builder.apply(OpKind::Relu, {x}));
  return builder.build();
}

struct BadTarget {
  std::string name;
  std::function<void(const TestFolder&)> prepare;
  std::string target;
  std::string says;
};
void PrintTo(const BadTarget& row, std::ostream* out) { *out << row.name; }

const std::vector<BadTarget> kBadTargets = {
    {"Exists", [](const TestFolder& f) { write_file(f.file("out.onnx"), "old"); }, "out.onnx", "exists already"},
    {"IsFolder", [](const TestFolder& f) { fs::create_directory(f.path() / "out.onnx"); }, "out.onnx", "is a folder"},
    {"FolderMissing", [](const TestFolder&) {}, "nowhere/out.onnx", "cannot be written"},
    {"FolderIsFile", [](const TestFolder& f) { write_file(f.file("file"), "old"); }, "file/out.onnx",
     "cannot be written"},
};

class BadTargetTest : public testing::TestWithParam<BadTarget> {};

TEST_P(BadTargetTest, GivesOneClearErrorAndLeavesNothing) {
  const TestFolder folder;
  GetParam().prepare(folder);
  const size_t before = folder.count();
  const Status written = export_onnx(relu_graph(), folder.file(GetParam().target));
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.error().message.find(GetParam().says), std::string::npos) << written.error().message;
  EXPECT_NE(written.error().message.find(GetParam().target), std::string::npos) << written.error().message;
  EXPECT_EQ(folder.count(), before);
}

INSTANTIATE_TEST_SUITE_P(Onnx, BadTargetTest, testing::ValuesIn(kBadTargets),
                         [](const auto& info) { return info.param.name; });

TEST(OnnxExport, ForceOverwrites) {
  const TestFolder folder;
  write_file(folder.file("out.onnx"), "old");
  ExportOptions options;
  options.force = true;
  ASSERT_TRUE(export_onnx(relu_graph(), folder.file("out.onnx"), options).ok());
  EXPECT_TRUE(import_onnx(folder.file("out.onnx")).ok());
  EXPECT_EQ(folder.count(), 1u);
}

TEST(OnnxExport, AModelMayBeWrittenOverItself) {
  const TestFolder folder;
  TestModel model;
  model.input("x", {2, 64});
  model.constant(float_tensor("w", {64, 33}));
  model.node("MatMul", {"x", "w"}, {"y"});
  model.output("y", {2, 33});
  model.save(folder.file("m.onnx"));
  const auto first = import_onnx(folder.file("m.onnx"));
  ASSERT_TRUE(first.ok());
  ExportOptions options;
  options.force = true;
  options.external_above = 0;
  ASSERT_TRUE(export_onnx(first->graph, folder.file("m.onnx"), options).ok());
  const auto second = import_onnx(folder.file("m.onnx"));
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_EQ(second->graph.hash(), first->graph.hash());
  ASSERT_TRUE(export_onnx(second->graph, folder.file("m.onnx"), options).ok());
  const auto third = import_onnx(folder.file("m.onnx"));
  ASSERT_TRUE(third.ok()) << third.error().message;
  EXPECT_EQ(third->graph.hash(), first->graph.hash());
  EXPECT_EQ(folder.count(), 2u);
}

TEST(OnnxExport, AnOperatorThatTheOpsetCannotExpressIsNamed) {
  const TestFolder folder;
  GraphBuilder builder;
  const Value x = builder.input("x", {ElementType::Float32, Shape{Index(2), Index(2)}});
  const auto node = builder.add(OpKind::Trilu, {x}, {}, 1, "triangle");
  ASSERT_TRUE(node.ok());
  builder.output("y", {*node, 0});
  builder.metadata().opsets[""] = 13;
  const Status written = export_onnx(builder.build(), folder.file("out.onnx"));
  ASSERT_FALSE(written.ok());
  for (const char* part : {"triangle", "Trilu", "opset 13", "opset 14"})
    EXPECT_NE(written.error().message.find(part), std::string::npos) << written.error().message;
  EXPECT_EQ(folder.count(), 0u);
}

TEST(OnnxExport, AWeightThatCannotBeEvaluatedLeavesNothing) {
  const TestFolder folder;
  GraphBuilder builder;
  const Value x = builder.input("x", {ElementType::Float32, Shape{Index(1), Index(3)}});
  const Value w = builder.constant(Tensor::from_values<double>(ElementType::Float32, {2, 3}, {1, 2, 3, 4, 5, 6}), "w");
  const Value i = builder.constant(Tensor::vector_i64({7}), "i");
  const auto row = builder.apply(OpKind::Gather, {w, i});
  ASSERT_TRUE(row.ok());
  builder.output("y", *builder.apply(OpKind::Add, {x, *row}));
  const Status written = export_onnx(builder.build(), folder.file("out.onnx"));
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.error().message.find("Gather"), std::string::npos) << written.error().message;
  EXPECT_EQ(folder.count(), 0u);
}

// Newer opsets allow what older ones refuse, where said is by which one a node is refused; types that this one does not
// know are no fault.
TEST(OnnxBadInput, OfANewerOpsetSaidIsByWhichANodeIsRefused) {
  for (const auto& [type, is_told] : {std::pair{kInt64, true}, {19, false}}) {
    const TestFolder folder;
    TestModel model(23, 10);
    model.input("x", {2, 3});
    if (is_told)
      model.node("Softmax", {"x"}, {"y"}).i("axis", 5);
    else
      model.node("Cast", {"x"}, {"y"}).i("to", type);
    model.output("y", {2, 3}, is_told ? kFloat : type);
    model.save(folder.file("a.onnx"));
    const auto imported = import_onnx(folder.file("a.onnx"));
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    ASSERT_EQ(imported->warnings.size(), is_told ? 1U : 0U);
    if (!is_told) continue;
    EXPECT_NE(imported->warnings[0].find("(by opset 17): 'axis' must"), std::string::npos) << imported->warnings[0];
  }
}

// A node that no definition takes is kept as it is: where ONNX's own check finds what is wrong with it, that is told.
TEST(OnnxBadInput, WhatIsWrongWithANodeThatIsKeptIsTold) {
  struct Case {
    const char *op, *attribute;
    std::vector<int64_t> numbers;  // one: an integer
    const char* told;              // nothing: no warning
  };
  for (const Case& c : {Case{"Softmax", "axis", {5}, "'axis' must be in [-3 , 2]"},
                        {"Transpose", "perm", {0, 0, 1}, "repeated value: 0"},
                        {"MaxPool", "kernel_shape", {3, 3, 3}, "kernel_shape has incorrect size"},
                        {"NonZero", nullptr, {}, nullptr},
                        {"Softmax", "axis", {-1}, nullptr}}) {
    const TestFolder folder;
    TestModel model;
    model.input("x", {2, 3, 4});
    NodeBuilder node = model.node(c.op, {"x"}, {"y"});
    if (c.numbers.size() == 1)
      node.i(c.attribute, c.numbers[0]);
    else if (c.attribute)
      node.ints(c.attribute, c.numbers);
    model.output("y", {2, 3, 4});
    model.save(folder.file("a.onnx"));
    const auto imported = import_onnx(folder.file("a.onnx"));
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    ASSERT_EQ(imported->warnings.size(), c.told ? 1U : 0U) << c.op;
    if (!c.told) continue;
    EXPECT_NE(imported->warnings[0].find(c.told), std::string::npos) << imported->warnings[0];
    EXPECT_NE(imported->warnings[0].find("node of 'y' (" + std::string(c.op) + ")"), std::string::npos);
  }
}

TEST(OnnxBadInput, TypesThatANodeMayNotMixAreTold) {
  const TestFolder folder;
  TestModel model;
  model.input("a", {2, 3});
  model.input("b", {2, 3}, kInt64);
  model.node("Add", {"a", "b"}, {"y"});
  model.output("y", {2, 3});
  model.save(folder.file("a.onnx"));
  const auto imported = import_onnx(folder.file("a.onnx"));
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  ASSERT_EQ(imported->warnings.size(), 1U);
  EXPECT_NE(imported->warnings[0].find("inconsistent type"), std::string::npos) << imported->warnings[0];
}

}  // namespace
}  // namespace gopt
