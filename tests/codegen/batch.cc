#include "batch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "gopt/text.h"
#include "test_folder.h"

namespace gopt {
namespace {

Tensor random_tensor(const TensorType& type, std::mt19937_64& random, int64_t integer_limit) {
  const std::vector<int64_t> dims = type.static_shape();
  const auto count = static_cast<size_t>(element_count(dims));
  if (is_floating(type.element)) {
    std::vector<double> values(count);
    for (double& v : values) v = std::normal_distribution<double>()(random);
    return Tensor::from_values(type.element, dims, values);
  }
  std::vector<int64_t> values(count);
  for (int64_t& v : values) v = std::uniform_int_distribution<int64_t>(0, integer_limit - 1)(random);
  return Tensor::from_values(type.element, dims, values);
}

// What is stored so is rounded between kernels.
double digits_of(Precision precision) {
  switch (precision) {
    case Precision::Fp32: return 1e-4;
    case Precision::Tf32: return 5e-3;
    case Precision::Fp16: return 1e-2;
    case Precision::Bf16: return 8e-2;  // of a line of 200 products and Tanh rounding the operands alone takes 0.0605
    case Precision::Bf16x3: return 2e-5;
  }
  return 0;
}

}  // namespace

std::string difference(const Tensor& got, const Tensor& wanted, Precision precision, double step) {
  if (got.type() != wanted.type() || got.dims() != wanted.dims()) return "another type";
  const std::vector<double> a = got.to_doubles(), b = wanted.to_doubles();
  const double of_type = got.type() == ElementType::Float16 ? 2e-3 : got.type() == ElementType::BFloat16 ? 2e-2 : 0;
  const double digits = std::max(of_type, digits_of(precision));
  double largest = 1e-6;
  for (double v : b)
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  size_t steps = step > 0 ? 1 + a.size() / 100 : 0;
  for (size_t i = 0; i < a.size(); i++) {
    const bool is_near = (step == 0 || is_floating(got.type())) && std::abs(a[i] - b[i]) <= digits * largest;
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])) || is_near;
    if (!same && steps > 0 && std::abs(a[i] - b[i]) <= step)
      steps--;
    else if (!same)
      return "element " + std::to_string(i) + " of " + std::to_string(a.size()) + " is " + std::to_string(a[i]) +
             ", not " + std::to_string(b[i]);
  }
  return "";
}

std::string scratch_folder(const std::string& name) {
  static const TestFolder folder;
  return folder.file(name);
}

double LayoutCosts::time_ms(const Plan& plan, const Kernel& kernel) {
  double cost = 1;
  for (BufferId b : kernel.output_buffers) cost += plain_ && plan.buffer(b).layout.is_blocked() ? 100 : 0;
  return kernel.implementation == "winograd" ? cost - 0.5 : cost;
}

std::string text_of(const EmittedCode& code, const std::string& prefix) {
  std::string text;
  for (const EmittedFile& file : code.files)
    if (file.name.starts_with(prefix)) text += file.text;
  return text;
}

BatchCase make_case(const std::string& name, const std::string& text, uint64_t seed, int64_t integer_limit) {
  auto parsed = parse_graph("graph " + name + "\n" + text + "\nend");
  EXPECT_TRUE(parsed.ok()) << name << ": " << (parsed.ok() ? "" : parsed.error().message);
  if (!parsed) return {name, Graph(), {}};
  std::mt19937_64 random(seed);
  GraphBuilder builder;
  BatchCase c{name, {}, {}};
  std::map<Value, Value> replaced;
  std::vector<Value> kept;
  for (const Value& input : parsed->inputs()) {
    const Tensor data = random_tensor(input.type(), random, integer_limit);
    if (input.node->name[0] == 'w') {
      replaced[input] = builder.constant(data, input.node->name);
    } else {
      kept.push_back(input);
      c.inputs[input.node->name] = data;
    }
  }
  auto graph = replace_values(*parsed, replaced);
  EXPECT_TRUE(graph.ok()) << name << ": " << (graph.ok() ? "" : graph.error().message);
  c.graph = Graph(kept, graph->outputs(), graph->metadata());
  return c;
}

std::vector<std::string> run_batch(const std::vector<BatchCase>& cases, bool plain, const Target& target) {
  LayoutCosts costs(plain);
  return run_batch(cases, costs, plain ? "plain" : "blocked", target);
}

std::vector<std::string> run_batch(const std::vector<BatchCase>& cases, KernelCosts& costs, const std::string& name,
                                   const Target& target) {
  GraphBuilder builder;
  std::vector<Value> inputs;
  std::vector<GraphOutput> outputs;
  std::vector<Tensor> data;
  for (const BatchCase& c : cases) {
    std::map<Value, Value> renamed;
    for (const Value& input : c.graph.inputs()) {
      const Value fresh = builder.input(c.name + "." + input.node->name, input.type());
      renamed[input] = fresh;
      inputs.push_back(fresh);
      data.push_back(c.inputs.at(input.node->name));
    }
    auto graph = replace_values(c.graph, renamed);
    if (!graph) return {c.name + ": " + graph.error().message};
    for (const GraphOutput& o : graph->outputs()) outputs.push_back({c.name + "." + o.name, o.value});
  }
  const Graph whole(inputs, outputs, {});
  auto plan = make_plan(whole, target, costs);
  if (!plan) return {plan.error().message};
  if (auto checked = check_plan(*plan); !checked) return {checked.error().message};
  auto code = emit(*plan);
  if (!code) return {code.error().message};
  const std::string folder =
      scratch_folder(cases[0].name + "_" + name + std::to_string(target.threads) + to_string(target.precision));
  if (auto written = write_emitted(*code, folder, true); !written) return {written.error().message};
  auto model = LoadedModel::build_and_load(folder, target.threads);
  if (!model) return {model.error().message};
  LoadedModel loaded = *model;
  // Twice: the second run must not depend on what the first left behind.
  std::vector<Tensor> results;
  for (int run = 0; run < 2; run++) {
    auto r = loaded.run(data);
    if (!r) return {r.error().message};
    results = *r;
  }
  std::vector<std::string> wrong;
  size_t at = 0;
  for (const BatchCase& c : cases) {
    auto wanted = interpret(c.graph, c.inputs);
    if (!wanted) return {c.name + ": " + wanted.error().message};
    for (size_t o = 0; o < wanted->size(); o++, at++)
      if (const std::string d = difference(results[at], (*wanted)[o], target.precision, c.step); !d.empty())
        wrong.push_back(c.name + ": " + d);
  }
  return wrong;
}

}  // namespace gopt
