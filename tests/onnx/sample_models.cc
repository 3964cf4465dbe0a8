#include "sample_models.h"

namespace gopt {
namespace {

void fill_opset_7(TestModel& m) {
  m.input("x", {1, 3, 6, 6});
  m.constant(float_tensor("w", {4, 3, 3, 3}));
  m.constant(float_tensor("p", {4}));
  m.constant(int_tensor("shape", {1, -1}));
  m.constant(float_tensor("gw", {5, 16}));
  m.constant(float_tensor("gb", {5}));
  m.node("Conv", {"x", "w"}, {"c"}).ints("pads", {1, 1, 1, 1});
  m.node("BatchNormalization", {"c", "p", "p", "p", "p"}, {"n"});
  m.node("Relu", {"n"}, {"r"});
  m.node("Dropout", {"r"}, {"d"});
  m.node("MaxPool", {"d"}, {"mp"}).ints("kernel_shape", {2, 2}).ints("strides", {2, 2});
  m.node("Slice", {"mp"}, {"sl"}).ints("starts", {0}).ints("ends", {2}).ints("axes", {2});
  m.node("Pad", {"sl"}, {"pd"}).ints("pads", {0, 0, 0, 0, 0, 0, 0, -1}).f("value", 0.5f);
  m.node("Clip", {"pd"}, {"cl"}).f("min", 0.0f).f("max", 0.9f);
  m.node("Unsqueeze", {"cl"}, {"us"}).ints("axes", {0});
  m.node("Squeeze", {"us"}, {"sq"}).ints("axes", {0});
  m.node("Reshape", {"sq", "shape"}, {"rs"});
  m.node("Gemm", {"rs", "gw", "gb"}, {"g"}).i("transB", 1);
  m.node("Softmax", {"g"}, {"y"});
  m.node("ReduceSum", {"g"}, {"z"}).ints("axes", {1}).i("keepdims", 0);
  m.output("y", {1, 5});
  m.output("z", {1});
}

void fill_elementwise(TestModel& m) {
  m.input("x", {2, 3});
  m.input("y", {3});
  m.constant(int_tensor("shape", {4, 1, 1}));
  m.node("Max", {"x", "y"}, {"a"});
  m.node("Sum", {"x", "y", "a"}, {"b"});
  m.node("Expand", {"b", "shape"}, {"c"});
  m.node("Mean", {"c", "x"}, {"z"});
  m.output("z", {4, 2, 3});
}

// Of a scalar all axes are none.
void fill_scalar_reductions(TestModel& m) {
  m.input("x", {});
  m.node("Abs", {"x"}, {"a"});  // has a logarithm
  for (const std::string name : {"Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp"}) {
    m.node("Reduce" + name, {"a"}, {name}).i("keepdims", 0);
    m.output(name, {});
  }
}

void fill_where(TestModel& m) {
  m.input("x", {2, 3});
  m.input("test", {2, 3}, kBool);
  m.constant(int_tensor("shape", {2, 3}));
  m.node("ConstantOfShape", {"shape"}, {"c"}).tensor("value", float_tensor("", {1}, {2.5f}));
  m.node("Where", {"test", "x", "c"}, {"w"});
  m.node("Erf", {"w"}, {"e"});
  m.node("Sign", {"e"}, {"y"});
  m.output("y", {2, 3});
}

void fill_slice_inputs(TestModel& m) {
  m.input("x", {4, 6});
  m.constant(int_tensor("starts", {-1, 0}));
  m.constant(int_tensor("ends", {-100, 5}));
  m.constant(int_tensor("axes", {0, 1}));
  m.constant(int_tensor("steps", {-2, 2}));
  m.node("Slice", {"x", "starts", "ends", "axes", "steps"}, {"s"});
  m.node("Mod", {"s", "s"}, {"y"}).i("fmod", 1);
  m.output("y", {2, 3});
}

void fill_clip_inputs(TestModel& m) {
  m.input("x", {3, 4});
  m.input("low", {});
  m.constant(float_tensor("high", {}, {0.7f}));
  m.constant(int_tensor("pads", {1, 0, 1, 1}));
  m.constant(float_tensor("fill", {}, {9.0f}));
  m.node("Clip", {"x", "low", "high"}, {"a"});
  m.node("Clip", {"a", "", "high"}, {"b"});
  m.node("Pad", {"b", "pads", "fill"}, {"c"});
  m.node("Gemm", {"c", "c"}, {"y"}).i("transB", 1).f("alpha", 0.5f);
  m.output("y", {5, 5});
}

void fill_old_softmax(TestModel& m) {
  m.input("x", {"n", 3, 4});
  m.node("Softmax", {"x"}, {"a"});
  m.node("LogSoftmax", {"x"}, {"b"}).i("axis", 2);
  m.node("Softmax", {"b"}, {"c"}).i("axis", 0);
  m.node("GreaterOrEqual", {"a", "c"}, {"g"});
  m.output("c", {"n", 3, 4});
  m.output("g", {"n", 3, 4}, kBool);
}

void fill_axes_inputs(TestModel& m) {
  m.input("x", {2, 3, 4});
  m.constant(int_tensor("axes", {1}));
  m.constant(int_tensor("parts", {1, 3}));
  m.node("ReduceSum", {"x", "axes"}, {"a"}).i("keepdims", 1);
  m.node("Squeeze", {"a", "axes"}, {"b"});
  m.node("Split", {"b", "parts"}, {"c", "d"}).i("axis", 1);
  m.node("Unsqueeze", {"d", "axes"}, {"e"});
  m.node("Softmax", {"e"}, {"y"});
  m.output("y", {2, 1, 3});
  m.output("c", {2, 1});
}

void fill_zero_size(TestModel& m) {
  m.input("x", {0, 3});
  m.constant(int_tensor("shape", {3, 0}));
  m.constant(int_tensor("k", {1}, true));
  m.node("Reshape", {"x", "shape"}, {"r"}).i("allowzero", 1);
  m.node("Transpose", {"r"}, {"t"}).ints("perm", {1, 0});
  m.node("Concat", {"t", "x"}, {"c"}).i("axis", 0);
  m.node("Trilu", {"c", "k"}, {"u"});
  m.node("HardSwish", {"u"}, {"y"});
  m.output("y", {0, 3});
}

void fill_shape_arithmetic(TestModel& m) {
  m.input("x", {"batch", "length", 8});
  m.constant(int_tensor("zero", {0}, true));
  m.constant(int_tensor("one", {1}, true));
  m.constant(int_tensor("first", {0}));
  m.constant(int_tensor("heads", {2, 4}));
  m.constant(float_tensor("row", {1, 1, 1, 4}));
  m.node("Shape", {"x"}, {"s"});
  m.node("Gather", {"s", "zero"}, {"b"});
  m.node("Gather", {"s", "one"}, {"t"});
  m.node("Unsqueeze", {"b", "first"}, {"b1"});
  m.node("Unsqueeze", {"t", "first"}, {"t1"});
  m.node("Concat", {"b1", "t1", "heads"}, {"shape"}).i("axis", 0);
  m.node("Reshape", {"x", "shape"}, {"r"});
  m.node("Expand", {"row", "shape"}, {"e"});
  m.node("Add", {"r", "e"}, {"y"});
  m.output("y", {"batch", "length", 2, 4});
}

void fill_layer_normalization(TestModel& m) {
  m.input("x", {2, 3, 4});
  m.constant(float_tensor("scale", {4}));
  m.node("LayerNormalization", {"x", "scale", "scale"}, {"n", "mean", ""}).i("axis", -1);
  m.node("Celu", {"n"}, {"y"}).f("alpha", 2.0f);
  m.output("y", {2, 3, 4});
  m.output("mean", {2, 3, 1});
}

void fill_opset_18(TestModel& m) {
  m.input("x", {2, 5});
  m.constant(int_tensor("axes", {1}));
  m.constant(int_tensor("pads", {1, 1}));
  m.node("ReduceMean", {"x", "axes"}, {"a"}).i("keepdims", 0);
  m.node("Split", {"x"}, {"s", "t"}).i("axis", 1).i("num_outputs", 2);
  m.node("ReduceMax", {"s"}, {"b"}).i("noop_with_empty_axes", 1);
  m.node("Pad", {"t", "pads", "", "axes"}, {"p"}).s("mode", "reflect");
  m.node("Mish", {"p"}, {"y"});
  m.output("y", {2, 4});
  m.output("a", {2});
  m.output("b", {2, 3});
}

void fill_opset_19(TestModel& m) {
  m.input("x", {1, 2, 7, 7});
  m.node("AveragePool", {"x"}, {"a"}).ints("kernel_shape", {2, 2}).ints("dilations", {2, 2}).i("ceil_mode", 1);
  m.node("Cast", {"a"}, {"h"}).i("to", onnx::TensorProto::FLOAT16).i("saturate", 1);
  m.node("Cast", {"h"}, {"y"}).i("to", kFloat);
  m.output("y", {1, 2, 5, 5});
}

void fill_gelu(TestModel& m) {
  m.input("x", {2, 5});
  m.node("Gelu", {"x"}, {"a"}).s("approximate", "tanh");
  m.node("Gelu", {"a"}, {"y"});
  m.output("y", {2, 5});
}

void fill_aliases(TestModel& m) {
  m.input("x", {2});
  m.input("unused", {7});
  m.constant(float_tensor("w", {3}));
  m.constant(float_tensor("v", {4}));
  m.node("Relu", {"x"}, {"a"});
  m.node("Identity", {"a"}, {"b"});
  m.node("Identity", {"x"}, {"c"});
  m.node("Sqrt", {"v"}, {"d"});
  m.output("a", {2});
  m.output("b", {2});
  m.output("c", {2});
  m.output("d", {4});
  m.output("w", {3});
}

void fill_constants(TestModel& m) {
  m.input("x", {2, 3});
  m.node("Constant", {}, {"a"}).f("value_float", 1.5f);
  m.node("Constant", {}, {"b"}).ints("value_ints", {3, 2});
  m.node("Constant", {}, {"c"}).floats("value_floats", {1, 2, 3});
  m.node("Add", {"x", "a"}, {"d"});
  m.node("Mul", {"d", "c"}, {"e"});
  m.node("Reshape", {"e", "b"}, {"y"});
  m.output("y", {3, 2});
}

onnx::GraphProto branch(const std::string& op, const Names& inputs, const std::string& output) {
  onnx::GraphProto graph;
  graph.set_name(op);
  GraphBuilderProto builder(graph);
  builder.node(op, inputs, {output});
  builder.output(output, {2, 3});
  return graph;
}

void fill_if(TestModel& m) {
  m.input("x", {2, 3});
  m.input("test", {}, kBool);
  m.constant(float_tensor("w", {3}));
  m.node("Relu", {"x"}, {"a"});
  m.node("If", {"test"}, {"o"})
      .graph("then_branch", branch("Add", {"a", "w"}, "p"))
      .graph("else_branch", branch("Sub", {"a", "x"}, "q"));
  m.node("Add", {"o", "a"}, {"y"});
  m.output("y", {2, 3});
}

void fill_constant_if(TestModel& m) {
  m.input("x", {2, 3});
  m.constant(float_tensor("w", {3}));
  m.constant(int_tensor("zero", {0}, true));
  m.constant(int_tensor("two", {2}, true));
  m.node("Shape", {"x"}, {"s"});
  m.node("Gather", {"s", "zero"}, {"n"});
  m.node("Equal", {"n", "two"}, {"test"});
  m.node("If", {"test"}, {"y"})
      .graph("then_branch", branch("Mul", {"x", "w"}, "p"))
      .graph("else_branch", branch("Sub", {"x", "w"}, "q"));
  m.output("y", {2, 3});
}

void fill_loop(TestModel& m) {
  m.input("x", {2, 3});
  m.constant(int_tensor("count", {4}, true));
  onnx::GraphProto inner;
  inner.set_name("body");
  GraphBuilderProto body(inner);
  body.input("i", {}, kInt64);
  body.input("go_in", {}, kBool);
  body.input("state", {2, 3});
  body.node("Greater", {"i", "count"}, {"late"});
  body.node("If", {"late"}, {"next"})
      .graph("then_branch", branch("Add", {"state", "a"}, "p"))
      .graph("else_branch", branch("Sub", {"state", "a"}, "q"));
  body.node("Identity", {"go_in"}, {"go_out"});
  body.output("go_out", {}, kBool);
  body.output("next", {2, 3});
  m.node("Relu", {"x"}, {"a"});
  m.node("Loop", {"count", "", "x"}, {"l"}).graph("body", inner);
  m.node("Relu", {"l"}, {"y"});
  m.output("y", {2, 3});
}

void fill_functions(TestModel& m) {
  m.opset_import("custom", 1);
  onnx::FunctionProto& act = *m.proto.add_functions();
  act.set_domain("custom");
  act.set_name("Act");
  act.add_input("v");
  act.add_output("u");
  act.add_attribute("slope");
  add_node(*act.add_node(), "LeakyRelu", {"v"}, {"l"});
  auto& alpha = *act.mutable_node(0)->add_attribute();
  alpha.set_name("alpha");
  alpha.set_type(onnx::AttributeProto::FLOAT);
  alpha.set_ref_attr_name("slope");
  add_node(*act.add_node(), "Tanh", {"l"}, {"u"});
  auto& import = *act.add_opset_import();
  import.set_domain("");
  import.set_version(17);
  m.input("x", {2, 3});
  m.node("Act", {"x"}, {"a"}).domain("custom").f("slope", 0.25f);
  m.node("Act", {"a"}, {"y"}).domain("custom");
  m.output("y", {2, 3});
}

void fill_unknown_operators(TestModel& m) {
  m.opset_import("com.example", 3);
  m.input("x", {1, 2, 4, 4});
  m.constant(float_tensor("scales", {4}, {1, 1, 2, 2}));
  m.node("Secret", {"x", "", "scales"}, {"a", "", "b"}).domain("com.example").s("mode", "strange").name("s");
  m.node("Resize", {"x", "", "scales"}, {"c"}).s("mode", "nearest");
  m.node("Relu", {"c"}, {"d"});
  m.node("RandomNormalLike", {"d"}, {"e"});
  m.node("RandomNormalLike", {"d"}, {"f"});
  m.node("Sub", {"e", "f"}, {"y"});
  m.output("a", {"rows", 3});
  m.output("y", {1, 2, 8, 8});
}

}  // namespace

const std::vector<SampleModel>& sample_models() {
  static const std::vector<SampleModel> models = {
      {"Opset7Ir3", 7, 3, fill_opset_7},
      {"Opset8Ir3", 8, 3, fill_elementwise},
      {"Opset9Ir4", 9, 4, fill_where},
      {"Opset10Ir5", 10, 5, fill_slice_inputs},
      {"Opset11Ir6", 11, 6, fill_clip_inputs},
      {"Opset12Ir7", 12, 7, fill_old_softmax},
      {"ScalarReductionsOpset12Ir7", 12, 7, fill_scalar_reductions},
      {"ScalarReductionsOpset16Ir8", 16, 8, fill_scalar_reductions},
      {"ScalarReductionsOpset18Ir8", 18, 8, fill_scalar_reductions},
      {"Opset13Ir7", 13, 7, fill_axes_inputs},
      {"Opset14Ir7", 14, 7, fill_zero_size},
      {"Opset15Ir8", 15, 8, fill_shape_arithmetic},
      {"Opset16Ir8", 16, 8, fill_aliases},
      {"Opset17Ir8", 17, 8, fill_layer_normalization},
      {"Opset18Ir8", 18, 8, fill_opset_18},
      {"Opset19Ir9", 19, 9, fill_opset_19},
      {"Opset20Ir9", 20, 9, fill_gelu},
      {"Opset21Ir10", 21, 10, fill_axes_inputs},
      {"Constants", 17, 8, fill_constants},
      {"IfOfComputedCondition", 17, 8, fill_if, true},
      {"IfOfConstantCondition", 17, 8, fill_constant_if},
      {"LoopThatCaptures", 17, 8, fill_loop, true},
      {"Functions", 17, 8, fill_functions},
      {"UnknownOperators", 17, 8, fill_unknown_operators, true},
  };
  return models;
}

void fill_sample(const std::string& name, TestModel& model) {
  for (const SampleModel& row : sample_models())
    if (row.name == name) return row.fill(model);
  FAIL() << "no sample model is named " << name;
}

}  // namespace gopt
