#include "trial.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "gopt/interpreter.h"

namespace gopt::generator {
namespace {

constexpr size_t kRandomTrials = 12, kTriesEach = 5;
// Numbers drawn for a rule in all: a divisor of few numbers is 0 in one draw of many, so that what reads few is tried
// more often.
constexpr size_t kWantedNumbers = 192;
constexpr int64_t kLeading = 16;  // extent of the leading axis where there may be one
constexpr double kSpecialValues[] = {0, 1, -1, 2, -2};
constexpr double kTolerance = 1e-7;

// Nothing where an index has no value.
std::optional<Attributes> with_sizes(Attributes attributes, const Environment& sizes) {
  const auto settle = [&](Index& index) {
    const auto value = evaluate(index, sizes);
    if (value) index = Index(*value);
    return value.has_value();
  };
  for (auto& [name, value] : attributes) {
    if (auto* index = std::get_if<Index>(&value); index && !settle(*index)) return std::nullopt;
    if (auto* list = std::get_if<std::vector<Index>>(&value))
      if (!std::all_of(list->begin(), list->end(), settle)) return std::nullopt;
  }
  return attributes;
}

class Trials {
 public:
  Trials(const RewriteRule& rule, uint64_t seed) : rule_(rule), random_(seed) {
    for (const RuleVariable& variable : rule.variables)
      for (const Index& extent : *variable.type.shape) gopt::collect_symbols(extent, extents_);
    for (const Graph* side : {&rule.left, &rule.right})
      for (const NodePtr& node : side->nodes())
        for (const auto& [name, value] : node->attributes) collect_symbols(value, attributes_);
  }

  bool run(size_t wanted_numbers) {
    size_t valid = 0, numbers = 0;
    for (size_t tries = 0; tries < kTriesEach * (kRandomTrials + numbers); tries++) {
      if (valid >= kRandomTrials && numbers >= wanted_numbers) break;
      const auto outcome = trial(static_cast<int>(valid % 4), std::nullopt);
      if (outcome && !outcome->agree) return false;
      if (outcome) valid++, numbers += std::max<size_t>(count_of_inputs(), 1);
    }
    size_t special = 0;
    for (size_t tries = 0; special < special_count() && tries < kTriesEach * special_count(); tries++) {
      const auto outcome = trial(1, special);
      if (outcome && !outcome->agree) return false;
      if (outcome && outcome->has_elements) special++;
    }
    return true;
  }

 private:
  struct Outcome {
    bool agree, has_elements;
  };

  // Nothing where a side does not fit the sizes drawn.
  std::optional<Outcome> trial(int kind, std::optional<size_t> special) {
    if (!extents_.empty() || !attributes_.empty()) draw_sizes();
    const auto [entry, is_new] = sides_.try_emplace(sizes_);
    if (is_new) {
      auto left = instantiated(rule_.left), right = instantiated(rule_.right);
      if (left.ok() && right.ok()) entry->second = {*std::move(left), *std::move(right)};
    }
    const auto& sides = entry->second;
    if (!sides) return std::nullopt;
    draw_values(kind);
    if (special) make_special(*special);
    const auto left = interpret(sides->first, inputs_), right = interpret(sides->second, inputs_);
    if (!left.ok() || !right.ok()) return std::nullopt;
    return Outcome{agree(*left, *right), has_elements(*left)};
  }

  size_t count_of_inputs() const {
    size_t count = 0;
    for (const auto& [name, tensor] : inputs_) count += static_cast<size_t>(tensor.count());
    return count;
  }

  void draw_sizes() {
    static constexpr int64_t kAttributes[] = {1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 0, 0, 0, 3, -1};
    const uint64_t largest = 1 + random_() % 3;
    sizes_.clear();
    for (AtomId symbol : attributes_) sizes_[symbol] = kAttributes[random_() % std::size(kAttributes)];
    for (AtomId symbol : extents_)
      sizes_[symbol] = random_() % 8 == 0 ? 0 : 1 + static_cast<int64_t>(random_() % largest);
  }

  Result<Graph> instantiated(const Graph& side) {
    GraphBuilder builder;
    std::map<const Node*, NodePtr> made;
    for (const Value& input : side.inputs()) {
      TensorType type{ElementType::Float64, *input.type().shape};
      for (Index& extent : *type.shape) {
        const auto value = evaluate(extent, sizes_);
        if (!value || *value < 0) return Error{"an extent is no size"};
        extent = Index(*value);
      }
      made[input.node.get()] = builder.input(input.node->name, type).node;
    }
    for (const NodePtr& node : side.nodes()) {
      if (node->is(OpKind::Input)) continue;
      if (node->is(OpKind::Constant)) {
        made[node.get()] =
            builder.constant(Tensor::from_values(ElementType::Float64, node->tensor.dims(), node->tensor.to_doubles()))
                .node;
        continue;
      }
      std::vector<Value> inputs;
      for (const Value& input : node->inputs) inputs.push_back({made.at(input.node.get()), input.output});
      auto attributes = with_sizes(node->attributes, sizes_);
      if (!attributes) return Error{"an attribute has no value"};
      GOPT_ASSIGN_OR_RETURN(made[node.get()], builder.add(node->op, inputs, *std::move(attributes),
                                                          static_cast<int>(node->outputs.size())));
    }
    for (const GraphOutput& output : side.outputs())
      builder.output(output.name, {made.at(output.value.node.get()), output.value.output});
    return builder.build();
  }

  // Halves of small integers, so that sums and differences are often 0; multiples of a quarter, mixed, positive or
  // mostly zeros.
  void draw_values(int kind) {
    static constexpr double kScales[] = {1, 1, 4, 32};
    const double scale = kScales[random_() % std::size(kScales)];
    const auto draw = [&](int count) { return static_cast<double>(random_() % static_cast<uint64_t>(count)); };
    inputs_.clear();
    for (const RuleVariable& variable : rule_.variables) {
      std::vector<int64_t> dims;
      for (const Index& extent : *variable.type.shape) dims.push_back(evaluate(extent, sizes_).value_or(0));
      std::vector<double> values(static_cast<size_t>(element_count(dims)));
      for (double& value : values) {
        switch (kind) {
          case 0: value = scale * 0.25 * (draw(17) - 8); break;
          case 1: value = scale * 0.25 * (1 + draw(17)); break;
          case 2: value = random_() % 2 ? 0 : scale * (draw(17) - 8); break;
          default: value = 0.5 * (draw(9) - 4);
        }
      }
      inputs_[variable.name] = Tensor::from_values(ElementType::Float64, dims, values);
    }
  }

  // What makes a divisor 0: each variable one small integer throughout, each two equal, each two opposite.
  size_t special_count() const { return rule_.variables.size() * (rule_.variables.size() + std::size(kSpecialValues)); }
  void make_special(size_t number) {
    const size_t count = rule_.variables.size(), first = number % count, second = number / count;
    Tensor& changed = inputs_[rule_.variables[first].name];
    std::vector<double> values(static_cast<size_t>(changed.count()), 0);
    if (second >= count) {
      values.assign(values.size(), kSpecialValues[second - count]);
    } else {
      const Tensor& model = inputs_[rule_.variables[second].name];
      if (changed.dims() != model.dims()) return;
      values = model.to_doubles();
      if (first > second)
        for (double& value : values) value = -value;
    }
    changed = Tensor::from_values(ElementType::Float64, changed.dims(), values);
  }

  static bool has_elements(const std::vector<Tensor>& tensors) {
    return std::any_of(tensors.begin(), tensors.end(), [](const Tensor& tensor) { return tensor.count() > 0; });
  }
  static bool agree(double a, double b) {
    if (!std::isfinite(a) || !std::isfinite(b)) return std::isfinite(a) == std::isfinite(b);
    return std::fabs(a - b) <= kTolerance * std::max({1.0, std::fabs(a), std::fabs(b)});
  }
  static bool agree(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    for (size_t output = 0; output < a.size(); output++) {
      if (a[output].dims() != b[output].dims()) continue;  // where they may differ is for the verifier to say
      const auto left = a[output].to_doubles(), right = b[output].to_doubles();
      for (size_t i = 0; i < left.size(); i++)
        if (!agree(left[i], right[i])) return false;
    }
    return true;
  }

  const RewriteRule& rule_;
  std::mt19937_64 random_;
  std::set<AtomId> extents_, attributes_;
  Environment sizes_;
  std::map<Environment, std::optional<std::pair<Graph, Graph>>> sides_;  // at sizes; nothing where they do not fit
  std::map<std::string, Tensor> inputs_;
};

}  // namespace

bool survives_trials(const RewriteRule& rule, uint64_t seed) {
  const bool has_prefix =
      std::any_of(rule.variables.begin(), rule.variables.end(), [](const RuleVariable& v) { return v.has_prefix; });
  const auto survives = [&](const Shape& prefix, size_t wanted_numbers) {
    const auto plain = with_prefix(rule, prefix);
    return plain.ok() && Trials(*plain, seed).run(wanted_numbers);
  };
  // Under leading axes a trial draws many numbers at once.
  if (has_prefix) return survives({}, 0) && survives({kLeading}, kWantedNumbers);
  return survives({}, kWantedNumbers);
}

}  // namespace gopt::generator
