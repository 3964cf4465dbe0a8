// Every operator of the table, with random shapes, attributes and element types, as loops of its own: one build for
// all.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "batch.h"
#include "random_nodes.h"

namespace gopt {
namespace {

// The node as a graph whose first inputs are inputs and whose other ones are constants now and then; nothing where it
// does not fit, or the interpreter refuses these inputs (an index out of bounds).
std::optional<BatchCase> as_case(const RandomNode& node, const std::string& name, RandomNodes& random) {
  GraphBuilder builder;
  BatchCase c{name, {}, {}};
  std::vector<Value> values;
  for (size_t i = 0; i < node.inputs.size(); i++) {
    const Tensor& t = node.inputs[i];
    if (t.type() == ElementType::Undefined) {
      values.emplace_back();
    } else if (node.kind == OpKind::Range || (i > 0 && random.one_in(2))) {
      values.push_back(builder.constant(t));
    } else {
      const std::string input = "x" + std::to_string(i);
      values.push_back(builder.input(input, t.tensor_type()));
      c.inputs[input] = t;
    }
  }
  auto added = builder.add(node.kind, values, node.attributes, node.output_count);
  if (!added) return std::nullopt;
  for (const Value& v : values)
    if (v && !is_computable(v.type().element)) return std::nullopt;
  // ONNX has these for floating point only; over integers their fractions have no meaning to agree on.
  bool real_only = op_info(node.kind).has(kComposite);
  for (const AttributeSchema& schema : op_info(node.kind).attributes)
    real_only = real_only || (schema.kind == AttributeKind::Float && op_info(node.kind).has(kElementwise));
  if (real_only && !is_floating(node.inputs[0].type())) return std::nullopt;
  for (size_t o = 0; o < (*added)->outputs.size(); o++) {
    if (!is_computable((*added)->outputs[o].element) || !(*added)->outputs[o].has_static_shape()) return std::nullopt;
    builder.output("y" + std::to_string(o), {*added, static_cast<int>(o)});
  }
  c.graph = builder.build();
  if (!interpret(c.graph, c.inputs).ok()) return std::nullopt;
  return c;
}

TEST(EmittedOperators, AgreeWithTheInterpreter) {
  for (const std::string& line : run_batch(operator_cases(), false, {TargetKind::Cpu, 2})) ADD_FAILURE() << line;
}

// NaN wins in a maximum, wherever it stands: in the vector part of a row, in what is left over, in the other operand.
TEST(EmittedOperators, KeepNan) {
  struct Row {
    const char *name, *text;
  };
  const Row rows[] = {
      {"max_row", "input x : f32[9,37]\ny = ReduceMax(x) {axes=[1]}\noutput y = y"},
      {"min_row", "input x : f64[9,37]\ny = ReduceMin(x) {axes=[1]}\noutput y = y"},
      {"max_all", "input x : f32[9,37]\ny = ReduceMax(x) {axes=[0,1]}\noutput y = y"},
      {"max_column", "input x : f32[37,33]\ny = ReduceMax(x) {axes=[0]}\noutput y = y"},
      {"min_column", "input x : f32[37,33]\ny = ReduceMin(x) {axes=[0]}\noutput y = y"},
      {"maximum", "input x : f32[9,37]\ninput z : f32[9,37]\ny = Max(x, z)\noutput y = y"},
      {"minimum", "input x : f32[9,37]\ninput z : f32[9,37]\ny = Min(x, z)\noutput y = y"},
      {"relu", "input x : f32[9,37]\ny = Relu(x)\noutput y = y"},
      {"clip", "input x : f32[9,37]\ny = Clip(x) {min=-1, max=1}\noutput y = y"},
      {"hard_sigmoid", "input x : f32[9,37]\ny = HardSigmoid(x) {alpha=0.2, beta=0.5}\noutput y = y"},
      {"softmax", "input x : f32[9,37]\ny = Softmax(x) {axis=-1}\noutput y = y"},
  };
  std::mt19937_64 random(30);
  std::vector<BatchCase> cases;
  for (const Row& row : rows)
    for (int drawn = 0; drawn < 3; drawn++) {
      BatchCase c = make_case(row.name + std::to_string(drawn), row.text, random());
      for (auto& [name, tensor] : c.inputs) {
        std::vector<double> values = tensor.to_doubles();
        for (double& v : values)
          if (random() % 64 == 0) v = NAN;
        tensor = Tensor::from_values(tensor.type(), tensor.dims(), values);
      }
      cases.push_back(std::move(c));
    }
  for (const std::string& line : run_batch(cases, false, {TargetKind::Cpu, 2})) ADD_FAILURE() << line;
}

}  // namespace

std::vector<BatchCase> operator_cases() {
  constexpr int kPerOperator = 4, kAttempts = 200;
  RandomNodes random(20);
  std::vector<BatchCase> cases;
  for (OpKind kind : all_ops()) {
    int made = 0;
    for (int attempt = 0; attempt < kAttempts && made < kPerOperator; attempt++) {
      auto c = as_case(random.node(kind), op_info(kind).name + std::to_string(made), random);
      if (!c) continue;
      cases.push_back(std::move(*c));
      made++;
    }
    EXPECT_GT(made, 0) << op_info(kind).name << " was never drawn";
  }
  return cases;
}

}  // namespace gopt
