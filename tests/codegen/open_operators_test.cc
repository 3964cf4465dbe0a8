// Every operator, and the small graphs, with their extents left open: one build, run at several sizes.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "batch.h"

namespace gopt {
namespace {

// Extents of each number are a symbol: 5 is "e5".
std::string name_of(int64_t extent) { return "e" + std::to_string(extent); }
int64_t number_of(AtomId symbol) { return std::stoll(atom(symbol).name.substr(1)); }

constexpr int64_t kLeast = 2, kMost = 40;  // of extents that are opened

// The size that stands for extents of a number: as they are, larger, smaller.
int64_t extent_at(int size, int64_t number) { return size == 0 ? number : size == 1 ? number + 3 : (number + 1) / 2; }
constexpr int kSizes = 3;

struct OpenCase {
  std::string name;
  Graph graph;
  std::vector<std::map<std::string, Tensor>> inputs;  // by size
  std::vector<std::vector<Tensor>> expected;
};

Tensor drawn(const Tensor& like, const std::vector<int64_t>& dims, std::mt19937_64& random) {
  std::vector<double> values(static_cast<size_t>(element_count(dims)));
  std::normal_distribution<double> normal;
  for (double& value : values) value = is_floating(like.type()) ? normal(random) : static_cast<double>(random() % 2);
  return Tensor::from_values<double>(like.type(), dims, values);
}

// With the chosen extents open; nothing where its types do not follow then.
std::optional<Graph> opened(const BatchCase& c, const std::set<int64_t>& numbers) {
  GraphBuilder builder;
  std::map<Value, Value> replaced;
  std::vector<Value> inputs;
  for (const Value& input : c.graph.inputs()) {
    Shape shape;
    for (const Index& extent : *input.type().shape)
      shape.push_back(numbers.contains(extent.constant()) ? symbol(name_of(extent.constant())) : extent);
    inputs.push_back(input);
    if (shape == *input.type().shape) continue;
    inputs.back() = builder.input(input.node->name, {input.type().element, shape});
    replaced[input] = inputs.back();
  }
  const auto graph = replace_values(c.graph, replaced);
  if (!graph.ok()) return std::nullopt;
  for (const NodePtr& node : graph->nodes())
    for (const TensorType& type : node->outputs)
      if (!type.shape) return std::nullopt;
  return Graph(inputs, graph->outputs(), {});
}

std::vector<OpenExtent> extents_of(const Graph& graph) {
  std::set<std::string> names;
  for (const Value& input : graph.inputs())
    for (const Index& extent : *input.type().shape)
      if (const auto id = extent.as_atom()) names.insert(atom(*id).name);
  std::vector<OpenExtent> open;
  for (const std::string& name : names) open.push_back({symbol_atom(name), number_of(symbol_atom(name))});
  return open;
}

// With what is expected at each size; nothing where one is not allowed.
std::optional<OpenCase> with_sizes(const BatchCase& c, const Graph& graph, std::mt19937_64& random) {
  OpenCase made{c.name, graph, {}, {}};
  const auto open = extents_of(graph);
  const auto demands = size_demands(graph, open);
  for (int size = 0; size < kSizes; size++) {
    Environment sizes;
    for (const OpenExtent& extent : open) sizes[extent.symbol] = extent_at(size, extent.usual);
    for (const SizeDemand& demand : demands)
      if (!evaluate(demand.cond, sizes).value_or(false)) return std::nullopt;
    std::map<std::string, Tensor> inputs;
    for (const Value& input : graph.inputs()) {
      std::vector<int64_t> dims;
      for (const Index& extent : *input.type().shape) dims.push_back(evaluate(extent, sizes).value());
      const Tensor& own = c.inputs.at(input.node->name);
      inputs.emplace(input.node->name, size == 0 ? own : drawn(own, dims, random));
    }
    auto expected = interpret(graph, inputs);
    if (!expected.ok()) return std::nullopt;
    made.inputs.push_back(std::move(inputs));
    made.expected.push_back(*std::move(expected));
  }
  return made;
}

// As many extents open as can be: all, all of one number, or none.
std::optional<OpenCase> open_case(const BatchCase& c, std::mt19937_64& random) {
  std::set<int64_t> all;
  for (const auto& [name, tensor] : c.inputs)
    for (const int64_t extent : tensor.dims())
      if (extent >= kLeast && extent <= kMost) all.insert(extent);
  std::vector<std::set<int64_t>> choices{all};
  for (const int64_t number : all) choices.push_back({number});
  for (const auto& numbers : choices) {
    if (numbers.empty()) continue;
    const auto graph = opened(c, numbers);
    if (!graph) continue;
    Target target{TargetKind::Cpu, 1};
    target.open = extents_of(*graph);
    LayoutCosts costs(false);
    if (!make_plan(*graph, target, costs).ok()) continue;
    if (auto made = with_sizes(c, *graph, random)) return made;
  }
  return std::nullopt;
}

std::vector<std::string> run_open(const std::vector<OpenCase>& cases, const std::string& name, int threads,
                                  Precision precision) {
  GraphBuilder builder;
  std::vector<Value> inputs;
  std::vector<GraphOutput> outputs;
  for (const OpenCase& c : cases) {
    std::map<Value, Value> renamed;
    for (const Value& input : c.graph.inputs()) {
      inputs.push_back(builder.input(c.name + "." + input.node->name, input.type()));
      renamed[input] = inputs.back();
    }
    const auto graph = replace_values(c.graph, renamed);
    if (!graph.ok()) return {c.name + ": " + graph.error().message};
    for (const GraphOutput& o : graph->outputs()) outputs.push_back({c.name + "." + o.name, o.value});
  }
  const Graph whole(inputs, outputs, {});
  Target target{.kind = TargetKind::Cpu, .threads = threads, .precision = precision};
  target.open = extents_of(whole);
  LayoutCosts costs(false);
  const auto plan = make_plan(whole, target, costs);
  if (!plan.ok()) return {plan.error().message};
  const auto code = emit(*plan);
  if (!code.ok()) return {code.error().message};
  const std::string folder = scratch_folder(name + std::to_string(threads));
  if (const auto written = write_emitted(*code, folder, true); !written.ok()) return {written.error().message};
  auto model = LoadedModel::build_and_load(folder, threads);
  if (!model.ok()) return {model.error().message};
  LoadedModel loaded = *model;
  std::vector<std::string> wrong;
  for (const int size : {0, 1, 2, 1, 0}) {
    std::vector<Tensor> data;
    for (const OpenCase& c : cases)
      for (const Value& input : c.graph.inputs())
        data.push_back(c.inputs[static_cast<size_t>(size)].at(input.node->name));
    const auto results = loaded.run(data);
    if (!results.ok()) return {"size " + std::to_string(size) + ": " + results.error().message};
    size_t at = 0;
    for (const OpenCase& c : cases)
      for (const Tensor& expected : c.expected[static_cast<size_t>(size)])
        if (const std::string d = difference((*results)[at++], expected, precision); !d.empty())
          wrong.push_back(c.name + " at size " + std::to_string(size) + ": " + d);
  }
  return wrong;
}

void expect_right(const std::vector<BatchCase>& cases, const std::string& name, double share,
                  Precision precision = Precision::Fp32) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<OpenCase> open;
  for (const BatchCase& c : cases)
    if (auto made = open_case(c, random)) open.push_back(*std::move(made));
  EXPECT_GE(static_cast<double>(open.size()), share * static_cast<double>(cases.size()));
  for (const std::string& line : run_open(open, name, 2, precision)) ADD_FAILURE() << line;
}

TEST(OpenSizes, OperatorsAgreeWithTheInterpreter) { expect_right(operator_cases(), "open_operators", 0.5); }
// Rows as few as there are loops of our own for in floats, and more.
TEST(OpenSizes, ProductsAgreeIn16Bits) {
  std::vector<BatchCase> cases;
  for (const int rows : {2, 3, 4, 6, 8, 11, 30})
    cases.push_back(make_case("rows" + std::to_string(rows),
                              "input x : f32[" + std::to_string(rows) +
                                  ",100]\ninput w1 : f32[100,48]\ninput w2 : f32[48]\ninput w3 : f32[48,60]\n"
                                  "a = MatMul(x, w1)\nb = Add(a, w2)\nc = Relu(b)\nd = MatMul(c, w3)\noutput y = d",
                              static_cast<uint64_t>(rows)));
  cases.push_back(make_case("images",
                            "input x : f32[2,16,9,9]\ninput w1 : f32[32,16,3,3]\ninput w2 : f32[32]\n"
                            "a = Conv(x, w1, w2) {pads=[1,1,1,1]}\nb = Relu(a)\noutput y = b",
                            51));
  for (const Precision precision : {Precision::Bf16, Precision::Bf16x3})
    expect_right(cases, "open_" + to_string(precision), 1, precision);
}
TEST(OpenSizes, GraphsAgreeWithTheInterpreter) { expect_right(graph_cases(), "open_graphs", 0.5); }

}  // namespace
}  // namespace gopt
