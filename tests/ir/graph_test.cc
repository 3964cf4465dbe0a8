// Graphs: equal nodes are one, replacement shares what it can, and analyses agree with the structure.
#include "gopt/graph.h"

#include <gtest/gtest.h>

#include "gopt/interpreter.h"
#include "gopt/text.h"

namespace gopt {
namespace {

const TensorType kPair{ElementType::Float32, Shape{2}};

Value apply(GraphBuilder& b, OpKind kind, std::vector<Value> inputs, Attributes attributes = {}) {
  auto value = b.apply(kind, std::move(inputs), std::move(attributes));
  if (!value) throw std::runtime_error(value.error().message);
  return *value;
}
Graph parsed(const std::string& text) {
  auto graph = parse_graph(text);
  if (!graph) throw std::runtime_error(graph.error().message);
  return *graph;
}
Tensor pair_of(double a, double b) { return Tensor::from_values<double>(ElementType::Float32, {2}, {a, b}); }

std::shared_ptr<const OpaqueOp> opaque_op(const std::string& type) {
  auto op = std::make_shared<OpaqueOp>();
  op->domain = "custom";
  op->op_type = type;
  return op;
}

// ---- building ----

TEST(Graph, EqualNodesAreOne) {
  GraphBuilder b;
  const Value x = b.input("x", kPair), y = b.input("y", kPair);
  EXPECT_EQ(apply(b, OpKind::Add, {x, y}), apply(b, OpKind::Add, {x, y}));
  EXPECT_FALSE(apply(b, OpKind::Add, {x, y}) == apply(b, OpKind::Sub, {x, y}));
  EXPECT_FALSE(apply(b, OpKind::Sub, {x, y}) == apply(b, OpKind::Sub, {y, x}));
  EXPECT_EQ(b.constant(pair_of(1, 2)), b.constant(pair_of(1, 2)));
  EXPECT_FALSE(b.constant(pair_of(1, 2)) == b.constant(pair_of(1, 3)));
  EXPECT_EQ(apply(b, OpKind::Softmax, {x}, {{"axis", Index(-1)}}),
            apply(b, OpKind::Softmax, {x}, {{"axis", Index(0)}}));
  const auto expanded = [&](std::vector<Index> shape) {
    return apply(b, OpKind::Expand, {x}, {{"shape", std::move(shape)}});
  };
  EXPECT_EQ(expanded({Index(3), Index(1)}), expanded({Index(3), Index(2)}));
  EXPECT_FALSE(expanded({Index(3), Index(1)}) == expanded({Index(4), Index(1)}));
  EXPECT_FALSE(apply(b, OpKind::Elu, {x}, {{"alpha", 1.0}}) == apply(b, OpKind::Elu, {x}, {{"alpha", 2.0}}));
}

TEST(Graph, NamesAreOutsideTheHash) {
  GraphBuilder b;
  const Value x = b.input("x", kPair);
  const NodePtr first = *b.add(OpKind::Relu, {x}, {}, 1, "first", {"a"});
  EXPECT_EQ(first, *b.add(OpKind::Relu, {x}, {}, 1, "second", {"b"}));
  EXPECT_EQ(first->name, "first");
}

TEST(Graph, HashesAreTheSameInEveryGraph) {
  const std::string text = "graph g\ninput x : f32[2]\ny = Relu(x)\nz = Add(x, y)\noutput z = z\nend";
  EXPECT_EQ(parsed(text).hash(), parsed(text).hash());
  EXPECT_FALSE(parsed(text).hash() ==
               parsed("graph g\ninput x : f32[2]\ny = Relu(x)\nz = Add(y, x)\noutput z = z\nend").hash());
  EXPECT_FALSE(parsed(text).hash() ==
               parsed("graph g\ninput x : f32[3]\ny = Relu(x)\nz = Add(x, y)\noutput z = z\nend").hash());
}

TEST(Graph, OpaqueNodesAreNeverMerged) {
  GraphBuilder b;
  const Value x = b.input("x", kPair);
  const auto op = opaque_op("Random");
  const NodePtr first = b.opaque(op, {x}, {kPair}), second = b.opaque(op, {x}, {kPair});
  EXPECT_NE(first, second);
  EXPECT_NE(apply(b, OpKind::Relu, {{first, 0}}).node, apply(b, OpKind::Relu, {{second, 0}}).node);
}

TEST(Graph, TrailingInputsLeftOutAreDropped) {
  GraphBuilder b;
  const Value a = b.input("a", {ElementType::Float32, Shape{2, 2}});
  EXPECT_EQ(apply(b, OpKind::Gemm, {a, a, Value{}}), apply(b, OpKind::Gemm, {a, a}));
}

TEST(Graph, NodesFollowWhatTheyUseAndTheDeadAreLeftOut) {
  GraphBuilder b;
  const Value x = b.input("x", kPair), unused = b.input("unused", kPair);
  const Value dead = apply(b, OpKind::Neg, {unused});
  const Value y = apply(b, OpKind::Relu, {x}), z = apply(b, OpKind::Add, {y, y});
  b.output("z", z);
  const Graph graph = b.build();
  EXPECT_EQ(graph.nodes(), (std::vector<NodePtr>{x.node, y.node, z.node}));
  EXPECT_FALSE(graph.contains(dead.node));
  EXPECT_EQ(graph.inputs().size(), 2u);
  EXPECT_EQ(graph.node(graph.id_of(y.node)), y.node);
  EXPECT_EQ(graph.users()[0], std::vector<NodeId>{graph.id_of(y.node)});
  EXPECT_EQ(graph.users()[1], std::vector<NodeId>{graph.id_of(z.node)});  // once, although it is used twice
  EXPECT_TRUE(graph.users()[2].empty());
}

TEST(Graph, IsNoDeeperThanTheStack) {
  GraphBuilder b;
  Value v = b.input("x", kPair);
  const Value x = v;
  for (int k = 0; k < 100'000; k++) v = apply(b, k % 2 ? OpKind::Neg : OpKind::Relu, {v});
  b.output("y", v);
  const Graph graph = b.build();
  EXPECT_EQ(graph.nodes().size(), 100'001u);
  EXPECT_TRUE(validate(graph).ok());
  auto replaced = replace_values(graph, {{x, b.constant(pair_of(1, 2))}});
  ASSERT_TRUE(replaced.ok()) << replaced.error().message;
  EXPECT_EQ(replaced->nodes().size(), 100'001u);
}

TEST(Graph, SymbolicBroadcastsAreUnknownInModelsAndRequiredInRules) {
  const Index n = symbol("n"), m = symbol("m");
  GraphBuilder rules, models;
  models.set_broadcast_unknown(true);
  auto sum_type = [&](GraphBuilder& b) {
    return apply(b, OpKind::Add,
                 {b.input("x", {ElementType::Float32, Shape{n}}), b.input("y", {ElementType::Float32, Shape{m}})})
        .type();
  };
  EXPECT_TRUE(sum_type(rules).shape.has_value());
  EXPECT_FALSE(sum_type(models).shape.has_value());
}

TEST(Graph, ErrorsNameTheOperatorAndTheShapes) {
  GraphBuilder b;
  const Value x = b.input("x", kPair), y = b.input("y", {ElementType::Float32, Shape{3}});
  auto sum = b.apply(OpKind::Add, {x, y});
  ASSERT_FALSE(sum.ok());
  EXPECT_EQ(sum.error().message, "Add(f32[2], f32[3]): extents 2 and 3 are equal: this does not hold");
  EXPECT_EQ(b.apply(OpKind::Relu, {x, y}).error().message, "Relu: 2 inputs, expected 1");
  EXPECT_EQ(b.apply(OpKind::Relu, {x}, {{"slope", 1.0}}).error().message, "Relu: unknown attribute slope");
  EXPECT_EQ(b.apply(OpKind::Softmax, {x}, {{"axis", 1.0}}).error().message,
            "Softmax: attribute axis is of the wrong kind");
}

// ---- weights ----

TEST(Graph, KnowsWhatDependsOnWeightsOnly) {
  GraphBuilder b;
  const Value x = b.input("x", kPair), w = b.constant(pair_of(1, 2));
  const Value folded = apply(b, OpKind::Exp, {w}), mixed = apply(b, OpKind::Mul, {x, folded});
  const Value shape = apply(b, OpKind::Shape, {x});  // of a static shape: known without the input's values
  const Value custom = {b.opaque(opaque_op("Custom"), {folded}, {kPair}), 0}, after = apply(b, OpKind::Neg, {custom});
  for (const Value& v : {mixed, shape, after}) b.output("out" + std::to_string(v.node->hash.low), v);
  const Graph graph = b.build();
  auto is_weight = [&](const Value& v) { return graph.depends_on_weights_only(graph.id_of(v.node)); };
  EXPECT_TRUE(is_weight(w));
  EXPECT_TRUE(is_weight(folded));
  EXPECT_TRUE(is_weight(shape));
  EXPECT_FALSE(is_weight(x));
  EXPECT_FALSE(is_weight(mixed));
  EXPECT_FALSE(is_weight(custom));
  EXPECT_FALSE(is_weight(after));
}

// ---- replacing ----

TEST(ReplaceValues, IsTheSameGraphWhereNothingChanges) {
  const Graph graph = parsed("graph g\ninput x : f32[2]\ny = Relu(x)\noutput y = y\nend");
  GraphBuilder other;
  const Value stranger = other.input("z", kPair), replacement = other.constant(pair_of(1, 2));
  EXPECT_TRUE(replace_values(graph, {})->same_as(graph));
  EXPECT_TRUE(replace_values(graph, {{stranger, replacement}})->same_as(graph));
  const Value y = graph.outputs()[0].value;
  EXPECT_TRUE(replace_values(graph, {{y, y}})->same_as(graph));
}

TEST(ReplaceValues, SaysWhatBecameOfEachValue) {
  GraphBuilder b;
  const Value x = b.input("x", kPair);
  const Value old = apply(b, OpKind::Exp, {x}), user = apply(b, OpKind::Neg, {old});
  const Value put_in = apply(b, OpKind::Relu, {x});
  b.output("y", user);
  ValueMap became;
  auto replaced = replace_values(b.build(), {{old, put_in}}, &became);
  ASSERT_TRUE(replaced.ok()) << replaced.error().message;
  EXPECT_EQ(became.at(x), x);
  EXPECT_EQ(became.at(old), put_in);
  EXPECT_EQ(became.at(put_in), put_in);
  EXPECT_EQ(became.at(user), replaced->outputs()[0].value);
}

TEST(ReplaceValues, SharesWhatDoesNotChange) {
  GraphBuilder b;
  const Value x = b.input("x", kPair);
  const Value left = apply(b, OpKind::Exp, {x}), right = apply(b, OpKind::Relu, {x}),
              sum = apply(b, OpKind::Add, {left, right});
  b.output("sum", sum);
  b.output("left", left);
  const Graph graph = b.build();
  auto replaced = replace_values(graph, {{right, x}});
  ASSERT_TRUE(replaced.ok()) << replaced.error().message;
  EXPECT_TRUE(replaced->contains(left.node));
  EXPECT_FALSE(replaced->contains(right.node));
  EXPECT_EQ(replaced->outputs()[1].value, left);
  const Node& added = *replaced->outputs()[0].value.node;
  EXPECT_EQ(added.inputs, (std::vector<Value>{left, x}));
  EXPECT_TRUE(graph.contains(right.node));  // the old graph is as it was
}

TEST(ReplaceValues, EqualNodesThatArisBecomeOne) {
  GraphBuilder b;
  const Value x = b.input("x", kPair), y = b.input("y", kPair);
  const Value a = apply(b, OpKind::Exp, {x}), c = apply(b, OpKind::Exp, {y});
  b.output("sum", apply(b, OpKind::Add, {a, c}));
  auto replaced = replace_values(b.build(), {{y, x}});
  ASSERT_TRUE(replaced.ok());
  const Node& sum = *replaced->outputs()[0].value.node;
  EXPECT_EQ(sum.inputs[0], sum.inputs[1]);
  EXPECT_EQ(sum.inputs[0], a);
}

// Keys that replacements mention are replaced there too: both rewrites happen.
TEST(ReplaceValues, ReplacementsMayMentionOtherKeys) {
  GraphBuilder b;
  const Value x = b.input("x", kPair);
  const Value a = apply(b, OpKind::Exp, {x}), c = apply(b, OpKind::Neg, {a}), d = apply(b, OpKind::Relu, {c});
  b.output("d", d);
  const Value new_a = apply(b, OpKind::Sin, {x}), new_c = apply(b, OpKind::Cos, {a});  // new_c mentions a
  auto replaced = replace_values(b.build(), {{a, new_a}, {c, new_c}});
  ASSERT_TRUE(replaced.ok()) << replaced.error().message;
  b.adopt(*replaced);
  EXPECT_EQ(replaced->outputs()[0].value, apply(b, OpKind::Relu, {apply(b, OpKind::Cos, {new_a})}));
}

TEST(ReplaceValues, ACycleIsAnError) {
  GraphBuilder b;
  const Value x = b.input("x", kPair);
  const Value a = apply(b, OpKind::Exp, {x}), user = apply(b, OpKind::Neg, {a});
  b.output("user", user);
  EXPECT_FALSE(replace_values(b.build(), {{a, user}}).ok());
  const Value c = apply(b, OpKind::Sin, {x});
  b.output("both", apply(b, OpKind::Add, {a, c}));
  EXPECT_FALSE(replace_values(b.build(), {{a, apply(b, OpKind::Cos, {c})}, {c, apply(b, OpKind::Cos, {a})}}).ok());
}

TEST(ReplaceValues, TypesThatDoNotFitAreAnErrorWithTheNode) {
  GraphBuilder b;
  const Value x = b.input("x", kPair), y = b.input("y", kPair);
  const NodePtr sum = *b.add(OpKind::Add, {x, y}, {}, 1, "the_sum", {});
  b.output("sum", {sum, 0});
  const Value wide = b.constant(Tensor::from_values<double>(ElementType::Float32, {3}, {1, 2, 3}));
  auto replaced = replace_values(b.build(), {{y, wide}});
  ASSERT_FALSE(replaced.ok());
  EXPECT_NE(replaced.error().message.find("node the_sum: Add(f32[2], f32[3])"), std::string::npos)
      << replaced.error().message;
}

TEST(ReplaceValues, OneOutputOfSeveral) {
  const Graph graph = parsed(
      "graph g\ninput x : f32[4]\na, b = Split(x) {axis=0, split=[2,2]}\ns = Sub(a, b)\noutput s = s\noutput a = "
      "a\nend");
  const Node& difference = *graph.outputs()[0].value.node;
  const Value a = difference.inputs[0], b = difference.inputs[1];
  auto replaced = replace_values(graph, {{a, b}});
  ASSERT_TRUE(replaced.ok()) << replaced.error().message;
  auto values = interpret(*replaced, {{"x", Tensor::from_values<double>(ElementType::Float32, {4}, {1, 2, 3, 5})}});
  ASSERT_TRUE(values.ok());
  EXPECT_EQ((*values)[0].to_doubles(), (std::vector<double>{0, 0}));
  EXPECT_EQ((*values)[1].to_doubles(), (std::vector<double>{3, 5}));
}

TEST(ReplaceValues, OpaqueNodesAreKeptWithNewInputs) {
  GraphBuilder b;
  const Value x = b.input("x", kPair), y = b.input("y", kPair);
  const auto op = opaque_op("Custom");
  const Value custom{b.opaque(op, {x}, {kPair}, "custom_node", {"out"}), 0};
  b.output("custom", custom);
  auto replaced = replace_values(b.build(), {{x, y}});
  ASSERT_TRUE(replaced.ok());
  const Node& node = *replaced->outputs()[0].value.node;
  EXPECT_EQ(node.opaque, op);
  EXPECT_EQ(node.name, "custom_node");
  EXPECT_EQ(node.inputs[0], y);
}

TEST(ReplaceValues, MetadataAndInputsSurvive) {
  GraphBuilder b;
  const Value x = b.input("x", kPair), unused = b.input("unused", kPair);
  b.metadata().doc_string = "what it was";
  b.output("y", apply(b, OpKind::Neg, {x}));
  auto replaced = replace_values(b.build(), {{x, unused}});
  ASSERT_TRUE(replaced.ok());
  EXPECT_EQ(replaced->metadata().doc_string, "what it was");
  EXPECT_EQ(replaced->inputs(), (std::vector<Value>{x, unused}));
  EXPECT_EQ(replaced->outputs()[0].name, "y");
}

// ---- validity ----

Graph with_node(std::shared_ptr<Node> node) { return Graph({}, {{"y", {std::move(node), 0}}}, {}); }

TEST(Validate, FindsTypesThatAreNotAsInferred) {
  GraphBuilder b;
  const Value x = b.input("x", kPair);
  auto node = std::make_shared<Node>(*apply(b, OpKind::Relu, {x}).node);
  EXPECT_TRUE(validate(with_node(node)).ok());
  node->outputs[0].shape = Shape{3};
  auto status = validate(with_node(node));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "node Relu: output 0 is f32[3], inferred is f32[2]");
}

TEST(Validate, FindsAnInputThatItsNodeLacks) {
  GraphBuilder b;
  auto node = std::make_shared<Node>(*apply(b, OpKind::Relu, {b.input("x", kPair)}).node);
  node->inputs[0].output = 1;
  EXPECT_FALSE(validate(with_node(node)).ok());
}

}  // namespace
}  // namespace gopt
