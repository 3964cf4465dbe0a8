// Every operator of the table, with random shapes, attributes and element types, as loops of its own: one build for
// all.
#include <gtest/gtest.h>

#include "batch.h"
#include "random_nodes.h"

namespace gopt {
namespace {

bool has_code(const TensorType& type, TargetKind target) {
  const bool is_half = type.element == ElementType::Float16 || type.element == ElementType::BFloat16;
  return is_computable(type.element) && (!is_half || target == TargetKind::Cpu);
}

// The node as a graph whose first inputs are inputs and whose other ones are constants now and then; nothing where it
// does not fit, or the interpreter refuses these inputs (an index out of bounds).
std::optional<BatchCase> as_case(const RandomNode& node, const std::string& name, RandomNodes& random,
                                 TargetKind target) {
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
    if (v && !has_code(v.type(), target)) return std::nullopt;
  // ONNX has these for floating point only; over integers their fractions have no meaning to agree on.
  bool real_only = op_info(node.kind).has(kComposite);
  for (const AttributeSchema& schema : op_info(node.kind).attributes)
    real_only = real_only || (schema.kind == AttributeKind::Float && op_info(node.kind).has(kElementwise));
  if (real_only && !is_floating(node.inputs[0].type())) return std::nullopt;
  for (size_t o = 0; o < (*added)->outputs.size(); o++) {
    if (!has_code((*added)->outputs[o], target) || !(*added)->outputs[o].has_static_shape()) return std::nullopt;
    builder.output("y" + std::to_string(o), {*added, static_cast<int>(o)});
  }
  c.graph = builder.build();
  if (!interpret(c.graph, c.inputs).ok()) return std::nullopt;
  return c;
}

TEST(EmittedOperators, AgreeWithTheInterpreter) {
  for (const std::string& line : run_batch(operator_cases(TargetKind::Cpu), false, {TargetKind::Cpu, 2}))
    ADD_FAILURE() << line;
}

}  // namespace

std::vector<BatchCase> operator_cases(TargetKind target) {
  constexpr int kPerOperator = 4, kAttempts = 200;
  RandomNodes random(20);
  std::vector<BatchCase> cases;
  for (OpKind kind : all_ops()) {
    int made = 0;
    for (int attempt = 0; attempt < kAttempts && made < kPerOperator; attempt++) {
      auto c = as_case(random.node(kind), op_info(kind).name + std::to_string(made), random, target);
      if (!c) continue;
      cases.push_back(std::move(*c));
      made++;
    }
    EXPECT_GT(made, 0) << op_info(kind).name << " was never drawn";
  }
  return cases;
}

}  // namespace gopt
