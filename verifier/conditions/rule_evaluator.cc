#include "rule_evaluator.h"

#include <algorithm>
#include <cmath>

#include "equality/gathered_indices.h"

namespace gopt::verifier {
namespace {

constexpr double kTolerance = 1e-7;

bool agree_values(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b)) return std::isfinite(a) == std::isfinite(b);
  return std::fabs(a - b) <= kTolerance * std::max({1.0, std::fabs(a), std::fabs(b)});
}

// Corners, since what differs at a border differs at one of them, and one position for each place on each axis.
std::vector<std::vector<int64_t>> positions_to_try(const std::vector<int64_t>& dims, std::mt19937_64& random,
                                                   size_t limit) {
  const int64_t count = element_count(dims);
  std::vector<std::vector<int64_t>> positions;
  const size_t corners = size_t{1} << std::min<size_t>(dims.size(), 6);
  if (count <= static_cast<int64_t>(limit + corners)) {
    for (int64_t flat = 0; flat < count; flat++) positions.push_back(position_of_flat(flat, dims));
    return positions;
  }
  auto anywhere = [&] { return position_of_flat(static_cast<int64_t>(random() % static_cast<uint64_t>(count)), dims); };
  for (size_t k = 0; k < limit; k++) positions.push_back(anywhere());
  for (size_t corner = 0; corner < corners; corner++) {
    positions.emplace_back(dims.size(), 0);
    for (size_t axis = 0; axis < dims.size() && axis < 6; axis++)
      if ((corner >> axis) & 1) positions.back()[axis] = dims[axis] - 1;
  }
  for (size_t axis = 0; axis < dims.size(); axis++) {
    for (int64_t place = 0; place < dims[axis]; place++) {
      positions.push_back(anywhere());
      positions.back()[axis] = place;
    }
  }
  return positions;
}

bool applies_partial_functions(const Expr& e) {
  if (e->kind == ExprKind::Call) return true;
  if (e->kind == ExprKind::Divide && e->args[1]->kind != ExprKind::Size && e->args[1]->kind != ExprKind::Constant)
    return true;
  return std::any_of(e->args.begin(), e->args.end(), [](const Expr& a) { return applies_partial_functions(a); });
}
bool applies_partial_functions(const SideMeaning& side) {
  return std::any_of(side.outputs.begin(), side.outputs.end(), [](const TensorExpr& output) {
    return applies_partial_functions(output.at(output_subscripts(0, output.shape.size())));
  });
}

}  // namespace

RuleEvaluator::RuleEvaluator(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right)
    : rule_(rule),
      left_(left),
      right_(right),
      left_condition_(left_condition(rule, left)),
      left_side_(compile_side(left)),
      right_side_(compile_side(right)),
      floats_(float_variables(rule).size()),
      index_extents_(index_extents(rule)),
      truncating_(std::none_of(rule.variables.begin(), rule.variables.end(),
                               [](const RuleVariable& v) { return is_floating(v.type.element); })),
      is_partial_(applies_partial_functions(left) || applies_partial_functions(right)) {}

int RuleEvaluator::rounds() const { return 2 + (is_partial_ ? static_cast<int>(rule_.variables.size() + floats_) : 0); }

int RuleEvaluator::draws() const {
  constexpr int64_t kFew = 16;
  int64_t elements = 0;
  for (size_t o = 0; o < left_.outputs.size(); o++)
    if (const auto own = dims(o)) elements += element_count(*own);
  return elements == 0 || elements > kFew ? 1 : 4;
}

void RuleEvaluator::set_sizes(const Environment& sizes) { sizes_ = sizes; }

bool RuleEvaluator::is_left_defined() const {
  if (evaluate(left_condition_, sizes_) != true) return false;
  for (size_t o = 0; o < left_.outputs.size(); o++)
    if (!dims(o)) return false;  // an attribute's product may be negative
  return true;
}

bool RuleEvaluator::is_right_defined() const {
  for (const Requirement& r : right_.requirements)
    if (evaluate(r.cond, sizes_) != true) return false;
  for (size_t o = 0; o < left_.outputs.size(); o++)
    if (numbers(left_.outputs[o].shape, sizes_) != numbers(right_.outputs[o].shape, sizes_)) return false;
  return true;
}

std::optional<std::vector<int64_t>> RuleEvaluator::dims(size_t output) const {
  return numbers(left_.outputs[output].shape, sizes_);
}

bool RuleEvaluator::has_elements() const {
  for (const RuleVariable& variable : rule_.variables) {
    const auto dims = numbers(*variable.type.shape, sizes_);
    if (!dims || element_count(*dims) == 0) return false;
  }
  for (size_t o = 0; o < left_.outputs.size(); o++) {
    const auto own = dims(o);
    if (!own || element_count(*own) == 0) return false;
  }
  return true;
}

void RuleEvaluator::draw_inputs(std::mt19937_64& random, int round) {
  int zero = round - 2;  // this variable is 0
  auto draw = [&](ElementType type) {
    if (zero == 0) return 0.0;
    if (type == ElementType::Bool) return static_cast<double>(random() % 2);
    if (is_integer(type)) return static_cast<double>(random() % 3);
    const double value = static_cast<double>(random() % 4001) / 1000.0;
    return round % 2 == 1 ? value + 0.125 : value - 2.0;
  };
  for (size_t i = 0; i < rule_.variables.size(); i++) {
    SampleTensor tensor{*numbers(*rule_.variables[i].type.shape, sizes_), {}};
    const auto index = index_extents_.find(rule_.variables[i].name);
    const int64_t places = index == index_extents_.end() ? 0 : places_within(index->second, sizes_);
    for (int64_t k = element_count(tensor.dims); k > 0; k--)
      tensor.values.push_back(
          places > 0
              ? static_cast<double>(static_cast<int64_t>(random() % (2 * static_cast<uint64_t>(places))) - places)
              : draw(rule_.variables[i].type.element));
    inputs_[static_cast<int>(i)] = std::move(tensor);
    zero--;
  }
  for (size_t k = 0; k < floats_; k++) {
    inputs_[kFirstFloatSlot + static_cast<int>(k)] = {{}, {draw(ElementType::Float32)}};
    zero--;
  }
}

bool RuleEvaluator::agree_at(size_t output, const std::vector<int64_t>& position, bool* is_finite) {
  for (size_t axis = 0; axis < position.size(); axis++) sizes_[left_side_.positions[output][axis]] = position[axis];
  const CompiledExpr::Options options{false, truncating_};
  const double a = left_side_.values[output](sizes_, inputs_, options);
  if (is_finite) *is_finite = std::isfinite(a);
  if (agree_values(a, right_side_.values[output](sizes_, inputs_, options))) return true;
  return !surely_differ(left_side_.values[output].enclose(sizes_, inputs_, options),
                        right_side_.values[output].enclose(sizes_, inputs_, options));
}

bool RuleEvaluator::agree(std::mt19937_64& random, size_t limit) {
  for (size_t o = 0; o < left_.outputs.size(); o++)
    for (const std::vector<int64_t>& position : positions_to_try(*dims(o), random, limit))
      if (!agree_at(o, position)) return false;
  return true;
}

}  // namespace gopt::verifier
