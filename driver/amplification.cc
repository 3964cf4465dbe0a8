#include "amplification.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "gopt/row_function.h"

namespace gopt::driver {
namespace {

constexpr int kRuns = 3;
// Roundings happen in every node, the change that is tried at the inputs alone.
constexpr double kFactor = 4;

// Eight units in the last place of what is computed with.
double change_of(ElementType type, Precision precision) {
  if (type == ElementType::BFloat16 || precision == Precision::Bf16) return 0x1p-5;
  if (type == ElementType::Float16 || precision == Precision::Fp16 || precision == Precision::Tf32) return 0x1p-8;
  return precision == Precision::Bf16x3 ? 0x1p-14 : 0x1p-21;
}

bool is_number(const Tensor& tensor) { return is_floating(tensor.type()) && is_computable(tensor.type()); }

std::map<std::string, Tensor> changed(std::map<std::string, Tensor> inputs, Precision precision,
                                      std::mt19937_64& random) {
  std::uniform_real_distribution<double> unit(-1, 1);
  for (auto& [name, tensor] : inputs) {
    if (!is_number(tensor)) continue;
    std::vector<double> values = tensor.to_doubles();
    const double change = change_of(tensor.type(), precision);
    for (double& value : values) value *= 1 + change * unit(random);
    tensor = Tensor::from_values<double>(tensor.type(), tensor.dims(), values);
  }
  return inputs;
}

// The graph with changed numbers where it puts such in order (a saturated function does not hand on what inputs change
// by, and what it gives is equal but for roundings).
Result<Graph> with_changed_order(const Graph& graph, Precision precision, std::mt19937_64& random) {
  std::uniform_real_distribution<double> unit(-1, 1);
  std::vector<NodePtr> orders;
  for (const NodePtr& node : graph.nodes())
    if (node->is_row_function() && node->opaque->row_function->kind == RowFunction::Kind::Top &&
        is_floating(node->inputs[0].type().element) && node->inputs[0].type().has_static_shape())
      orders.push_back(node);
  Graph changed = graph;
  std::ranges::reverse(orders);  // so that those before each are still there
  for (const NodePtr& node : orders) {
    const TensorType& type = node->inputs[0].type();
    std::vector<double> factors(static_cast<size_t>(element_count(type.static_shape())));
    for (double& factor : factors) factor = 1 + change_of(type.element, precision) * unit(random);
    GraphBuilder builder;
    const Value factor = builder.constant(Tensor::from_values<double>(type.element, type.static_shape(), factors));
    GOPT_ASSIGN_OR_RETURN(const Value input, builder.apply(OpKind::Mul, {node->inputs[0], factor}));
    const NodePtr made = builder.copy(*node, {input});
    GOPT_ASSIGN_OR_RETURN(
        changed, replace_values(changed, {{Value{node, 0}, Value{made, 0}}, {Value{node, 1}, Value{made, 1}}}));
  }
  return changed;
}

// How far two outputs are apart: at most, and in how many elements by more than the tolerance.
struct Distance {
  double largest = 0;
  size_t elements = 0;
};
Distance distance(const Tensor& expected, const Tensor& other, const Tolerance& tolerance) {
  const std::vector<double> a = expected.to_doubles(), b = other.to_doubles();
  double largest = 0;
  for (const double value : a)
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
  const double most = is_number(expected) ? std::max(tolerance.absolute, tolerance.relative * largest) : 0;
  Distance found;
  for (size_t i = 0; i < std::min(a.size(), b.size()); i++) {
    const double apart = std::fabs(a[i] - b[i]);
    if (!std::isfinite(apart)) continue;  // whether these may differ is for difference() to say
    found.largest = std::max(found.largest, apart);
    if (apart > most) found.elements++;
  }
  return found;
}

}  // namespace

Status allow_for_amplification(CheckReport& report, const GraphRunner& reference,
                               const std::map<std::string, Tensor>& inputs, const std::vector<Tensor>& expected,
                               const std::vector<Tensor>& found, const Tolerance& tolerance, Precision precision,
                               uint64_t seed) {
  const auto may_pass = [](const Difference& d) { return d.passed || d.comparable; };
  if (report.passed || !std::ranges::all_of(report.differences, may_pass)) return Unit{};
  std::vector<Distance> moved(expected.size());
  std::mt19937_64 random(seed);
  for (int run = 0; run < kRuns; run++) {
    GOPT_ASSIGN_OR_RETURN(const Graph graph,
                          reference.code ? reference.graph : with_changed_order(reference.graph, precision, random));
    const GraphRunner runner{graph, reference.code, reference.products};
    GOPT_ASSIGN_OR_RETURN(const auto others, runner.run(changed(inputs, precision, random)));
    for (size_t k = 0; k < expected.size(); k++) {
      if (others[k].dims() != expected[k].dims() || !is_computable(expected[k].type())) continue;
      const Distance own = distance(expected[k], others[k], tolerance);
      moved[k] = {std::max(moved[k].largest, own.largest), std::max(moved[k].elements, own.elements)};
    }
  }
  std::vector<Difference> differences = report.differences;
  std::string text;
  for (size_t k = 0; k < differences.size(); k++) {
    Difference& d = differences[k];
    if (d.passed) continue;
    const Distance off = distance(expected[k], found[k], tolerance);
    if (off.largest > kFactor * moved[k].largest ||
        static_cast<double>(off.elements) > kFactor * static_cast<double>(moved[k].elements))
      return Unit{};
    d.passed = true;
    d.note = fmt::format("by itself it moves by {:.2g} in {} elements", moved[k].largest, moved[k].elements);
    text += fmt::format("{}{} by {:.2g} in {} of {} elements (the code: {:.2g} in {})", text.empty() ? "" : "; ",
                        d.output, moved[k].largest, moved[k].elements, expected[k].count(), off.largest, off.elements);
  }
  report.differences = differences;
  report.differences_of_draw.back() = std::move(differences);
  report.passed = true;
  report.amplified =
      "where its inputs change in the last digits alone, and what it puts in order, the model's own outputs move: " +
      text;
  return Unit{};
}

}  // namespace gopt::driver
