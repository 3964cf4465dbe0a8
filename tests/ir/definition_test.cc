// Every operator of the table, on random applications: the definition, its canonical attributes, its types, its stages
// and its element expressions agree with each other, and what does not fit is an error, never a crash.
#include "gopt/definition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "gopt/interpreter.h"
#include "naive_evaluator.h"
#include "random_nodes.h"

namespace gopt {
namespace {

constexpr uint64_t kSeeds = 150;

std::vector<TensorExpr> expressions(const RandomNode& node) {
  std::vector<TensorExpr> inputs;
  for (size_t k = 0; k < node.inputs.size(); k++) {
    inputs.push_back(input_tensor(static_cast<int>(k), node.inputs[k].tensor_type()));
    inputs.back().data = &node.inputs[k];
  }
  return inputs;
}

Result<std::vector<Tensor>> interpreted(const RandomNode& node) {
  GraphBuilder b;
  std::vector<Value> inputs;
  for (const Tensor& t : node.inputs) inputs.push_back(b.constant(t));
  GOPT_ASSIGN_OR_RETURN(NodePtr made, b.add(node.kind, inputs, node.attributes, node.output_count));
  for (int k = 0; k < node.output_count; k++) b.output("y" + std::to_string(k), {made, k});
  const Graph graph = b.build();
  GOPT_RETURN_IF_ERROR(validate(graph));
  return interpret(graph, {});
}

// How far stored results may lie apart that were summed in another order.
double tolerance(ElementType type) {
  switch (type) {
    case ElementType::Float64: return 1e-9;
    case ElementType::Float32: return 1e-5;
    case ElementType::Float16: return 2e-3;
    case ElementType::BFloat16: return 2e-2;
    default: return 0;
  }
}

void expect_close(const Tensor& actual, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(actual.type(), expected.type()) << what;
  ASSERT_EQ(actual.dims(), expected.dims()) << what;
  const std::vector<double> a = actual.to_doubles(), b = expected.to_doubles();
  for (size_t k = 0; k < a.size(); k++) {
    const bool same = a[k] == b[k] || (std::isnan(a[k]) && std::isnan(b[k]));
    ASSERT_TRUE(same || std::fabs(a[k] - b[k]) <= tolerance(actual.type()) * std::max(1.0, std::fabs(b[k])))
        << what << ": element " << k << " is " << a[k] << ", expected " << b[k];
  }
}

class DefinitionTest : public testing::TestWithParam<OpKind> {};

TEST_P(DefinitionTest, StagesGiveWhatTheExpressionSays) {
  int defined = 0;
  for (uint64_t seed = 0; seed < kSeeds; seed++) {
    const RandomNode node = RandomNodes(seed).node(GetParam());
    const std::string what = "seed " + std::to_string(seed) + ": " + to_string(node);
    const auto definition = define(node.kind, expressions(node), node.attributes, node.output_count);
    const auto outputs = interpreted(node);
    if (!definition) {
      EXPECT_FALSE(outputs.ok()) << what;
      continue;
    }
    if (!outputs) {  // indexes that lie outside, only known from the data
      EXPECT_NE(outputs.error().message.find("out of bounds"), std::string::npos) << what << outputs.error().message;
      continue;
    }
    defined++;
    for (size_t k = 0; k < outputs->size(); k++)
      expect_close((*outputs)[k], evaluate_naively(definition->outputs[k], node.inputs), what);
    if (HasFailure()) return;
  }
  EXPECT_GE(defined, 10) << "of " << kSeeds << " random applications";
}

TEST_P(DefinitionTest, CanonicalAttributesMeanTheSame) {
  for (uint64_t seed = 0; seed < kSeeds; seed++) {
    const RandomNode node = RandomNodes(seed).node(GetParam());
    const std::string what = "seed " + std::to_string(seed) + ": " + to_string(node);
    const std::vector<TensorType> types = node.input_types();
    const auto plain = define(node.kind, expressions(node), node.attributes, node.output_count);
    const auto canonical = canonical_attributes(node.kind, types, node.attributes, node.output_count);
    if (!canonical) {
      EXPECT_FALSE(plain.ok()) << what << ": " << canonical.error().message;
      continue;
    }
    const auto again = canonical_attributes(node.kind, types, *canonical, node.output_count);
    ASSERT_TRUE(again.ok()) << what << ": " << again.error().message;
    EXPECT_EQ(again->size(), canonical->size()) << what;
    for (const auto& [name, value] : *canonical)
      EXPECT_TRUE(again->contains(name) && equal(again->at(name), value)) << what << ": " << name;
    const auto defined = define(node.kind, expressions(node), *canonical, node.output_count);
    ASSERT_EQ(plain.ok(), defined.ok()) << what << ": " << (plain.ok() ? defined : plain).error().message;
    if (!plain) continue;
    for (size_t k = 0; k < static_cast<size_t>(node.output_count); k++) {
      EXPECT_EQ(plain->outputs[k].element, defined->outputs[k].element) << what;
      ASSERT_EQ(plain->outputs[k].shape, defined->outputs[k].shape) << what;
      std::vector<Index> subscripts;
      for (size_t axis = 0; axis < plain->outputs[k].shape.size(); axis++)
        subscripts.push_back(symbol("i" + std::to_string(axis)));
      EXPECT_EQ(plain->outputs[k].at(subscripts), defined->outputs[k].at(subscripts)) << what;
    }
  }
}

// Extents become symbols: the same definitions serve rules, and nothing about them is decided by luck.
TEST_P(DefinitionTest, SymbolicTypesSpecializeToConcreteOnes) {
  int specialized = 0;
  for (uint64_t seed = 0; seed < kSeeds; seed++) {
    const RandomNode node = RandomNodes(seed).node(GetParam());
    const std::string what = "seed " + std::to_string(seed) + ": " + to_string(node);
    std::vector<TensorType> types = node.input_types();
    Substitution values;
    Environment environment;
    for (TensorType& type : types) {
      for (Index& extent : *type.shape) {
        const int64_t value = extent.constant();
        if (value < 2) continue;  // which extents are 1 is never symbolic
        extent = symbol("extent" + std::to_string(value));
        values[*extent.as_atom()] = Index(value);
        environment[*extent.as_atom()] = value;
      }
    }
    const auto symbolic = infer_types(node.kind, types, node.attributes, node.output_count);
    const auto concrete = infer_types(node.kind, node.input_types(), node.attributes, node.output_count);
    if (!symbolic || !concrete) continue;
    // A definition with symbols may ask for more than one with numbers does (a slice within its axis): it says so.
    const auto fails = [&](const Requirement& r) { return evaluate(r.cond, environment) == false; };
    if (std::any_of(symbolic->requirements.begin(), symbolic->requirements.end(), fails)) continue;
    for (size_t k = 0; k < symbolic->outputs.size(); k++) {
      Shape shape;
      for (const Index& extent : *symbolic->outputs[k].shape) shape.push_back(substitute(extent, values));
      EXPECT_EQ(shape, *concrete->outputs[k].shape) << what;
    }
    specialized++;
  }
  const bool from_data = GetParam() == OpKind::Range;  // its shape depends on its inputs' values
  EXPECT_GE(specialized, from_data ? 0 : 10);
}

TEST_P(DefinitionTest, AttributesWithSymbolsAreNoCrash) {
  for (uint64_t seed = 0; seed < kSeeds; seed++) {
    RandomNodes random(seed);
    RandomNode node = random.node(GetParam());
    for (auto& [name, value] : node.attributes) {
      if (auto* one = std::get_if<Index>(&value); one && random.one_in(2)) *one = symbol("attribute");
      if (auto* list = std::get_if<std::vector<Index>>(&value); list && !list->empty() && random.one_in(2))
        list->back() = symbol("attribute") + Index(random.uniform(-1, 1));
      if (std::holds_alternative<double>(value) && random.one_in(2)) value = FloatVariable{"v", 7};
    }
    const auto canonical = canonical_attributes(node.kind, node.input_types(), node.attributes, node.output_count);
    const auto inferred = infer_types(node.kind, node.input_types(), node.attributes, node.output_count);
    EXPECT_TRUE(inferred.ok() || !inferred.error().message.empty());
    EXPECT_TRUE(canonical.ok() || !canonical.error().message.empty());
  }
}

TEST_P(DefinitionTest, WorkIsPositiveForOutputsThatHaveElements) {
  for (uint64_t seed = 0; seed < kSeeds; seed++) {
    const RandomNode node = RandomNodes(seed).node(GetParam());
    const auto definition = define(node.kind, expressions(node), node.attributes, node.output_count);
    if (!definition) continue;
    for (const TensorExpr& output : definition->outputs) {
      const Work work = estimate_work(output);
      const auto count = static_cast<double>(element_count(TensorType{output.element, output.shape}.static_shape()));
      EXPECT_EQ(work.elements_written, count) << to_string(node);
      EXPECT_GE(work.operations, 0) << to_string(node);
      EXPECT_GE(work.elements_read, 0) << to_string(node);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, DefinitionTest, testing::ValuesIn(all_ops()),
                         [](const auto& info) { return op_info(info.param).name; });

// ---- work, by hand ----

double operations(OpKind kind, const std::vector<std::vector<int64_t>>& shapes, const Attributes& attributes = {}) {
  std::vector<TensorExpr> inputs;
  for (size_t k = 0; k < shapes.size(); k++)
    inputs.push_back(
        input_tensor(static_cast<int>(k), {ElementType::Float32, Shape(shapes[k].begin(), shapes[k].end())}));
  auto definition = define(kind, inputs, attributes);
  if (!definition) throw std::runtime_error(definition.error().message);
  return estimate_work(definition->outputs[0]).operations;
}

TEST(EstimateWork, CountsMultiplicationsAndAdditions) {
  EXPECT_EQ(operations(OpKind::MatMul, {{5, 7}, {7, 11}}), 2 * 5 * 7 * 11);
  EXPECT_EQ(operations(OpKind::Add, {{3, 4}, {4}}), 12);
  EXPECT_EQ(operations(OpKind::Conv, {{1, 8, 10, 10}, {16, 8, 3, 3}}), 2.0 * 16 * 8 * 8 * 8 * 9);
  EXPECT_EQ(operations(OpKind::ReduceSum, {{6, 7}}), 42);
  EXPECT_EQ(operations(OpKind::Transpose, {{6, 7}}), 0);
}

// Staged, a softmax is linear in its axis; unfolded at each element it would be cubic.
TEST(EstimateWork, SharedReductionsAreCountedOnce) {
  const double small = operations(OpKind::Softmax, {{4, 100}}), large = operations(OpKind::Softmax, {{4, 200}});
  EXPECT_NEAR(large / small, 2, 0.1);
  EXPECT_NEAR(operations(OpKind::LayerNormalization, {{4, 200}, {200}}) /
                  operations(OpKind::LayerNormalization, {{4, 100}, {100}}),
              2, 0.1);
}

TEST(Stage, NestedReductionsBecomeStagesOfTheirOwn) {
  const TensorExpr x = input_tensor(0, {ElementType::Float32, Shape{3, 5}});
  const auto softmax = define(OpKind::Softmax, {x}, {});
  ASSERT_TRUE(softmax.ok());
  const std::vector<Stage> stages = stage(softmax->outputs[0], {ElementType::Float32}, false);
  ASSERT_EQ(stages.size(), 3u);  // maximum, sum, quotient
  EXPECT_EQ(stages[0].shape, Shape{3});
  EXPECT_EQ(stages[1].shape, Shape{3});
  EXPECT_EQ(stages[2].shape, (Shape{3, 5}));
  EXPECT_EQ(stages[0].element, ElementType::Float64);
  EXPECT_EQ(stage(softmax->outputs[0], {ElementType::Float32}, true)[0].element, ElementType::Float32);
}

TEST(Stage, AReductionOverAllAxesOfTheOutputStaysInPlace) {
  const auto product = define(
      OpKind::MatMul,
      {input_tensor(0, {ElementType::Float32, Shape{3, 5}}), input_tensor(1, {ElementType::Float32, Shape{5, 4}})}, {});
  ASSERT_TRUE(product.ok());
  EXPECT_EQ(stage(product->outputs[0], {ElementType::Float32, ElementType::Float32}, false).size(), 1u);
}

TEST(DefinitionsHash, IsSixteenDigitsAndStable) {
  const std::string hash = definitions_hash();
  EXPECT_EQ(hash.size(), 16u);
  EXPECT_EQ(hash.find_first_not_of("0123456789abcdef"), std::string::npos) << hash;
  EXPECT_EQ(hash, definitions_hash());
}

// A definition that no probe reaches could change without any hash changing.
TEST(DefinitionsHash, EveryDefinitionIsProbed) {
  for (OpKind kind : all_ops()) {
    if (kind == OpKind::Range) continue;  // defined for constant inputs alone, which no probe has
    const std::string text = definition_text(kind),
                      row = op_info(kind).name + "|" + std::to_string(op_info(kind).traits);
    EXPECT_GT(text.size(), row.size() + 8) << text;
    EXPECT_EQ(definition_hash(kind).size(), 16u);
  }
}

TEST(OperatorTable, NamesFindTheirRows) {
  for (OpKind kind : all_ops()) {
    EXPECT_EQ(find_op(op_info(kind).name), kind);
    EXPECT_FALSE(op_info(kind).meaning.empty());
    EXPECT_LE(op_info(kind).min_inputs, op_info(kind).max_inputs < 0 ? 99 : op_info(kind).max_inputs);
  }
  EXPECT_EQ(find_op("Input"), std::nullopt);
  EXPECT_EQ(find_op("NoSuchOperator"), std::nullopt);
}

}  // namespace
}  // namespace gopt
