// Bad input: one clear error, exit status 1, nothing half written. A row each.
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>
#include <sys/stat.h>

#include <functional>

#include "program.h"

namespace gopt {
namespace {

onnx::ModelProto small_model() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("g");
  auto declare = [](onnx::ValueInfoProto& v, const std::string& name) {
    v.set_name(name);
    auto& type = *v.mutable_type()->mutable_tensor_type();
    type.set_elem_type(1);
    for (int64_t d : {2, 3}) type.mutable_shape()->add_dim()->set_dim_value(d);
  };
  declare(*graph.add_input(), "x");
  declare(*graph.add_output(), "y");
  return model;
}
onnx::NodeProto& add_node(onnx::ModelProto& model, const std::string& op, std::vector<std::string> inputs,
                          const std::string& output) {
  onnx::NodeProto& node = *model.mutable_graph()->add_node();
  node.set_op_type(op);
  node.set_name(op + "_" + output);
  for (const std::string& i : inputs) node.add_input(i);
  node.add_output(output);
  return node;
}
void add_int64s(onnx::ModelProto& model, const std::string& name, const std::vector<int64_t>& values) {
  onnx::TensorProto& t = *model.mutable_graph()->add_initializer();
  t.set_name(name);
  t.set_data_type(onnx::TensorProto::INT64);
  t.add_dims(static_cast<int64_t>(values.size()));
  for (const int64_t value : values) t.add_int64_data(value);
}
void add_external(onnx::ModelProto& model, const std::string& location) {
  onnx::TensorProto& t = *model.mutable_graph()->add_initializer();
  t.set_name("w");
  t.set_data_type(1);
  t.add_dims(2);
  t.add_dims(3);
  t.set_data_location(onnx::TensorProto::EXTERNAL);
  auto& entry = *t.add_external_data();
  entry.set_key("location");
  entry.set_value(location);
  add_node(model, "Add", {"x", "w"}, "y");
}
// A model whose weights, two kilobytes, lie beside it.
void write_large_external(const std::string& folder) {
  onnx::ModelProto model = small_model();
  onnx::TensorProto& t = *model.mutable_graph()->add_initializer();
  t.set_name("w");
  t.set_data_type(1);
  for (const int64_t extent : {3, 170}) t.add_dims(extent);
  t.set_data_location(onnx::TensorProto::EXTERNAL);
  auto& entry = *t.add_external_data();
  entry.set_key("location");
  entry.set_value("w.bin");
  add_node(model, "MatMul", {"x", "w"}, "h");
  add_node(model, "Abs", {"h"}, "y");
  auto& dims = *model.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  dims.mutable_dim(1)->set_dim_value(170);
  write_file(folder + "/m.onnx", model.SerializeAsString());
  write_file(folder + "/w.bin", std::string(4 * 3 * 170, '\0'));
}
std::string relu_model() {
  onnx::ModelProto model = small_model();
  add_node(model, "Relu", {"x"}, "y");
  return model.SerializeAsString();
}

struct Row {
  const char* name;
  // Prepares files in the folder; what the program is run with, {} standing for the folder.
  std::function<void(const std::string& folder)> prepare;
  const char* arguments;
  const char* message;  // part of it
};
std::ostream& operator<<(std::ostream& os, const Row& row) { return os << row.name; }

std::string with_folder(std::string text, const std::string& folder) {
  for (size_t at; (at = text.find("{}")) != std::string::npos;) text.replace(at, 2, folder);
  return text;
}

class BadInputTest : public testing::TestWithParam<Row> {};

TEST_P(BadInputTest, GivesOneErrorAndWritesNothing) {
  TestFolder folder;
  GetParam().prepare(folder.path().string());
  const size_t before = folder.count();
  const Outcome outcome = run_program(with_folder(GetParam().arguments, folder.path().string()));
  EXPECT_EQ(outcome.status, 1) << outcome.text;
  EXPECT_NE(outcome.text.find(with_folder(GetParam().message, folder.path().string())), std::string::npos)
      << outcome.text;
  EXPECT_EQ(folder.count(), before) << "files were left behind";
  EXPECT_EQ(outcome.text.find("internal error"), std::string::npos) << outcome.text;
}

const Row kRows[] = {
    {"FlagThatIsNone", [](const std::string&) {}, "optimize {}/m.onnx --frob",
     "gopt: The following argument was not expected: --frob\nRun `gopt optimize --help`"},
    {"ValueThatIsNone", [](const std::string&) {}, "optimize {}/m.onnx --precision half",
     "gopt: --precision: half not in {fp32,"},
    {"GpuOfNoTimes", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx -o {}/y.onnx --target cuda --gpu Nonesuch --cache {}/times",
     "{}/times: --gpu Nonesuch: there are no kernel times of it; the cache has none of any GPU"},
    {"GpuOfOtherTimes",
     [](const std::string& f) {
       write_file(f + "/m.onnx", relu_model());
       write_file(f + "/times", "gopt kernel times 2\nmachine cuda: One; code 0\nmachine cuda: Two; code 0\n");
     },
     "optimize {}/m.onnx -o {}/y.onnx --target cuda --gpu Nonesuch --cache {}/times",
     "--gpu Nonesuch: there are no kernel times of it; the cache has those of One, Two"},
    {"GpuNotNamed",
     [](const std::string& f) {
       write_file(f + "/m.onnx", relu_model());
       write_file(f + "/times", "gopt kernel times 2\nmachine cuda: Card 1; code 0\nmachine cuda: Card 2; code 0\n");
     },
     "optimize {}/m.onnx -o {}/y.onnx --target cuda --gpu card --cache {}/times",
     "there are kernel times of several GPUs; choose one with --gpu: Card 1, Card 2"},
    {"GpuForTheCpu", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx -o {}/y.onnx --gpu H100", "it does not go with --target onnx"},
    {"GpuWithoutTimes", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx -o {}/y.onnx --target cuda --cost analytic --gpu H100", "--cost analytic"},
    {"PrecisionOfTheCpu", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx -o {}/y.onnx --target cpu --precision tf32",
     "--precision tf32: --target cpu has fp32, bf16, bf16x3"},
    {"MissingFile", [](const std::string&) {}, "optimize {}/none.onnx -o {}/y.onnx", "none.onnx"},
    {"Truncated",
     [](const std::string& f) {
       const std::string bytes = relu_model();
       write_file(f + "/m.onnx", bytes.substr(0, bytes.size() - 9));
     },
     "optimize {}/m.onnx -o {}/y.onnx", "m.onnx"},
    {"NotOnnx", [](const std::string& f) { write_file(f + "/m.onnx", "this is a text, not a model\n"); },
     "optimize {}/m.onnx -o {}/y.onnx", "m.onnx"},
    {"Empty", [](const std::string& f) { write_file(f + "/m.onnx", ""); }, "optimize {}/m.onnx -o {}/y.onnx", "m.onnx"},
    {"Cycle",
     [](const std::string& f) {
       onnx::ModelProto m = small_model();
       add_node(m, "Add", {"x", "b"}, "a");
       add_node(m, "Relu", {"a"}, "b");
       add_node(m, "Relu", {"b"}, "y");
       write_file(f + "/m.onnx", m.SerializeAsString());
     },
     "optimize {}/m.onnx -o {}/y.onnx", "b"},
    {"MissingExternalFile",
     [](const std::string& f) {
       onnx::ModelProto m = small_model();
       add_external(m, "w.bin");
       write_file(f + "/m.onnx", m.SerializeAsString());
     },
     "optimize {}/m.onnx -o {}/y.onnx", "w.bin"},
    {"ShortExternalFile",
     [](const std::string& f) {
       onnx::ModelProto m = small_model();
       add_external(m, "w.bin");
       write_file(f + "/m.onnx", m.SerializeAsString());
       write_file(f + "/w.bin", "12345678");
     },
     "optimize {}/m.onnx -o {}/y.onnx", "w.bin"},
    {"ExternalFileOutside",
     [](const std::string& f) {
       onnx::ModelProto m = small_model();
       add_external(m, "../w.bin");
       std::filesystem::create_directory(f + "/in");
       write_file(f + "/in/m.onnx", m.SerializeAsString());
       write_file(f + "/w.bin", std::string(24, 'x'));
     },
     "optimize {}/in/m.onnx -o {}/y.onnx", "../w.bin"},
    {"ContradictoryShapes",
     [](const std::string& f) {
       onnx::ModelProto m = small_model();
       add_node(m, "MatMul", {"x", "x"}, "y");
       write_file(f + "/m.onnx", m.SerializeAsString());
     },
     "optimize {}/m.onnx -o {}/y.onnx", "MatMul_y"},
    {"MalformedRules",
     [](const std::string& f) {
       write_file(f + "/m.onnx", relu_model());
       write_file(f + "/bad.rules", "rule a\n  var x f32[a]\n  left\n    y = Relux(x)\n");
     },
     "optimize {}/m.onnx -o {}/y.onnx --rules {}/bad.rules", "bad.rules:4"},
    {"MissingRules", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx -o {}/y.onnx --rules {}/none.rules", "none.rules"},
    {"UnknownRule", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx -o {}/y.onnx --disable no-such-rule", "no-such-rule"},
    {"UnknownPartOfPlans", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx -o {}/y.onnx --target cpu --disable layout:tiles", "layout:blocked"},
    {"PartOfPlansOfAnotherTarget", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx -o {}/y.onnx --target onnx --disable layout:blocked", "they have none"},
    {"UnknownRuleEnabled", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx -o {}/y.onnx --enable no-such-rule", "no-such-rule"},
    {"InputLargerThanMemory", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "run {}/m.onnx --shape x=9999999999x9999", "input x"},
    {"MoreElementsThanIntegers", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "run {}/m.onnx --shape x=9999999999x9999999999", "2^59"},
    {"ConstantLargerThanAnyMachine",
     [](const std::string& f) {
       onnx::ModelProto model = small_model();
       add_int64s(model, "s", {int64_t{1} << 31, int64_t{1} << 30, 1, 1});
       add_node(model, "ConstantOfShape", {"s"}, "c");
       add_node(model, "Add", {"x", "c"}, "y");
       model.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
       write_file(f + "/m.onnx", model.SerializeAsString());
     },
     "optimize {}/m.onnx -o {}/y.onnx", "2^59"},
    {"CodeOfAnOutputLargerThanMemory",
     [](const std::string& f) {
       onnx::ModelProto model = small_model();
       add_int64s(model, "s", {int64_t{1} << 38, 1, 1});
       add_node(model, "Expand", {"x", "s"}, "y");
       model.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
       write_file(f + "/m.onnx", model.SerializeAsString());
     },
     "optimize {}/m.onnx --emit {}/code --cost analytic", "--no-measure"},
    {"FunctionsThatDouble",
     [](const std::string& f) {
       onnx::ModelProto model = small_model();
       model.add_opset_import()->set_domain("my");
       model.mutable_opset_import(model.opset_import_size() - 1)->set_version(1);
       for (int k = 0; k < 30; k++) {
         onnx::FunctionProto& function = *model.add_functions();
         function.set_domain("my");
         function.set_name("f" + std::to_string(k));
         function.add_input("a");
         function.add_output("b");
         for (const char* domain : {"", "my"}) {
           function.add_opset_import()->set_domain(domain);
           function.mutable_opset_import(function.opset_import_size() - 1)->set_version(*domain ? 1 : 17);
         }
         for (const auto& [from, to] : {std::pair("a", "c"), std::pair("c", "b")}) {
           onnx::NodeProto& node = *function.add_node();
           node.set_op_type(k == 0 ? "Neg" : "f" + std::to_string(k - 1));
           if (k > 0) node.set_domain("my");
           node.add_input(from);
           node.add_output(to);
         }
       }
       add_node(model, "f29", {"x"}, "y");
       model.mutable_graph()->mutable_node(0)->set_domain("my");
       write_file(f + "/m.onnx", model.SerializeAsString());
     },
     "optimize {}/m.onnx -o {}/y.onnx", "a million nodes"},
    {"OutputExists",
     [](const std::string& f) {
       write_file(f + "/m.onnx", relu_model());
       write_file(f + "/y.onnx", "mine");
     },
     "optimize {}/m.onnx -o {}/y.onnx", "--force"},
    {"EmitFolderExists",
     [](const std::string& f) {
       write_file(f + "/m.onnx", relu_model());
       std::filesystem::create_directory(f + "/code");
       write_file(f + "/code/emitted_files.txt", "model.h\n");
     },
     "optimize {}/m.onnx --emit {}/code", "--force"},
    {"OutputFolderMissing", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx -o {}/no/such/y.onnx", "{}/no/such"},
    {"OutputFolderUnwritable", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx -o /proc/gopt-y.onnx", "/proc"},
    {"EmitFolderUnwritable", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx --no-measure --emit /proc/gopt-code", "/proc"},
    {"OutputIsInput", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx -o {}/m.onnx --force", "is the input itself"},
    {"OutputIsTheInputsWeights",
     [](const std::string& f) {
       onnx::ModelProto model = small_model();
       add_external(model, "y.onnx.data");
       write_file(f + "/m.onnx", model.SerializeAsString());
       write_file(f + "/y.onnx.data", std::string(24, '\0'));
     },
     "optimize {}/m.onnx -o {}/y.onnx --force", "y.onnx.data holds weights of the input"},
    {"ReportIsTheOutput", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx -o {}/y.json --report {}/y.json", "is named twice"},
    {"ReportIsTheInput", [](const std::string& f) { write_file(f + "/m.json", relu_model()); },
     "optimize {}/m.json -o {}/y.onnx --report {}/m.json --force", "is the input itself"},
    {"SecondReportIsTheInput", [](const std::string& f) { write_file(f + "/m.html", relu_model()); },
     "optimize {}/m.html --report {}/r.json --report {}/m.html --force", "is the input itself"},
    {"ReportTwiceToOneFile", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx --report {}/r.html --report {}/r.html", "is named twice"},
    {"ReportOfNoKnownForm", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx --report {}/r.json --report {}/r.txt",
     "--report {}/r.txt: the name ends in .html, for a page to look at, or .json, for programs"},
    {"ReportWithoutExtension", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx --report {}/report", ".html"},
    {"OutputIsADevice", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx -o /dev/null --force", "is no regular file"},
    {"EmitIsTheOutput", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx -o {}/y --emit {}/y", "is named twice"},
    {"EmitIntoAProject",
     [](const std::string& f) {
       write_file(f + "/m.onnx", relu_model());
       write_file(f + "/model.cc", "mine");
     },
     "optimize {}/m.onnx --emit {} --force", "holds files that were not emitted"},
    {"EmitOverTheInputsWeights",
     [](const std::string& f) {
       onnx::ModelProto model = small_model();
       add_external(model, "weights.bin");
       write_file(f + "/m.onnx", model.SerializeAsString());
       write_file(f + "/weights.bin", std::string(24, '\0'));
       write_file(f + "/emitted_files.txt", "model.h\nweights.bin\nemitted_files.txt\n");
     },
     "optimize {}/m.onnx --emit {} --force", "would replace {}/weights.bin, which is read"},
    {"WeightsAreAPipe",
     [](const std::string& f) {
       onnx::ModelProto model = small_model();
       add_external(model, "w.bin");
       write_file(f + "/m.onnx", model.SerializeAsString());
       mkfifo((f + "/w.bin").c_str(), 0600);
     },
     "optimize {}/m.onnx -o {}/y.onnx", "w.bin: is no regular file"},
    {"ModelIsAPipe", [](const std::string& f) { mkfifo((f + "/m.onnx").c_str(), 0600); },
     "optimize {}/m.onnx -o {}/y.onnx", "is no regular file"},
    {"WeightsFileOfSomebodyElse",  // found out when all is written but for the names
     [](const std::string& f) {
       write_large_external(f);
       write_file(f + "/y.onnx.data", "mine");
     },
     "optimize {}/m.onnx -o {}/y.onnx --emit {}/code --no-measure --cost analytic --report {}/r.json",
     "y.onnx.data: exists already"},
    {"PrefixOfNoCode", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx -o {}/y.onnx --prefix net", "give --emit DIR, too"},
    {"PrefixThatIsNoName", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx --emit {}/code --prefix 2nd-net", "a letter first"},
    {"AllowOfNoMark", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx -o {}/y.onnx --allow speed", "expected one of finite-only, loses-range"},
    {"FileBesideTheModel",
     [](const std::string& f) {
       write_file(f + "/m.onnx", relu_model());
       write_file(f + "/m.opt.onnx", "mine");
     },
     "optimize {}/m.onnx", "m.opt.onnx exists; give --force"},
    {"BadShape", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx -o {}/y.onnx --shape x=2xq", "--shape"},
    {"ShapeOfUnknownInput", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx -o {}/y.onnx --shape z=2x3", "z"},
    {"SeedBelowZero", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx -o {}/y.onnx --seed -1", "-1 is no seed: expected a whole number, 0 or more"},
    {"SizeOfNoExtent",
     [](const std::string& f) {
       write_model("graph g\n  input x : f32[n,3]\n  y = Relu(x)\n  output y = y\nend\n", f + "/m.onnx");
     },
     "optimize {}/m.onnx --emit {}/code --specialize nosuch=4",
     "--specialize nosuch: the model has no open extent or input of that name; its open extents are n"},
    {"BadBudget", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx -o {}/y.onnx --budget fast", "--budget"},
    {"UnknownFlag", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "optimize {}/m.onnx -o {}/y.onnx --fast", "--fast"},
    {"OutputsOfNoKind", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "run {}/m.onnx -o {}/y.txt --engine interpreter", "y.txt' is neither FILE.npz"},
    {"MissingInputFile", [](const std::string& f) { write_file(f + "/m.onnx", relu_model()); },
     "run {}/m.onnx --input x={}/none.pb --engine interpreter", "none.pb"},
    {"UnknownInput",
     [](const std::string& f) {
       write_file(f + "/m.onnx", relu_model());
       (void)write_tensor_proto(Tensor::scalar_f32(1), "q", f + "/q.pb");
     },
     "run {}/m.onnx --input q={}/q.pb --engine interpreter", "no input 'q'"},
    {"InputOfAnotherShape",
     [](const std::string& f) {
       write_file(f + "/m.onnx", relu_model());
       (void)write_tensor_proto(Tensor::scalar_f32(1), "x", f + "/x.pb");
     },
     "run {}/m.onnx --input x={}/x.pb --engine interpreter", "expected f32[2,3]"},
    {"NoSuchRuleToShow", [](const std::string&) {}, "rules --show no-such-rule", "no-such-rule"},
};

INSTANTIATE_TEST_SUITE_P(Rows, BadInputTest, testing::ValuesIn(kRows),
                         [](const auto& info) { return info.param.name; });

TEST(BadInput, AnExistingFileKeepsItsContents) {
  TestFolder folder;
  write_file(folder.file("m.onnx"), relu_model());
  write_file(folder.file("y.onnx"), "mine");
  EXPECT_EQ(run_program("optimize " + folder.file("m.onnx") + " -o " + folder.file("y.onnx")).status, 1);
  EXPECT_EQ(read_file(folder.file("y.onnx")), "mine");
  const Outcome forced = run_program("optimize " + folder.file("m.onnx") + " -o " + folder.file("y.onnx") + " --force");
  EXPECT_EQ(forced.status, 0) << forced.text;
  EXPECT_NE(read_file(folder.file("y.onnx")), "mine");
}

TEST(Outputs, WeightsThatLayBesideTheModelDoSoAgain) {
  TestFolder folder;
  write_large_external(folder.path().string());
  const Outcome outcome =
      run_program("optimize " + folder.file("m.onnx") + " -o " + folder.file("y.onnx") + " --cost analytic");
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_EQ(std::filesystem::file_size(folder.file("y.onnx.data")), 4U * 3 * 170);
  onnx::ModelProto written;
  ASSERT_TRUE(written.ParseFromString(read_file(folder.file("y.onnx"))));
  EXPECT_EQ(written.graph().initializer(0).external_data(0).value(), "y.onnx.data");
}

}  // namespace
}  // namespace gopt
