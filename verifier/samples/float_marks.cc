#include "float_marks.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "compiled_side.h"
#include "float_inputs.h"
#include "side_evaluator.h"
#include "size_sampler.h"

namespace gopt::verifier {
namespace {

constexpr int64_t kMostElements = 1 << 12;
// Of what the digits of the inputs are worth to the result: an error below the first is none, one above the second
// leaves no digit that could be relied on, if it is also that part of the result.
constexpr double kGood = 16, kBad = 1024, kLost = 0.05;
// Terms that leave nothing behind are that many times what is left.
constexpr double kTermsOver = 64;

void collect_constants(const Expr& e, std::vector<double>& out) {
  if (e->kind == ExprKind::Constant && std::isfinite(e->value) && e->value != 0) out.push_back(e->value);
  for (const Expr& a : e->args) collect_constants(a, out);
}
std::vector<double> constants_of(const SideMeaning& left, const SideMeaning& right) {
  std::vector<double> constants;
  for (const SideMeaning* side : {&left, &right})
    for (size_t o = 0; o < side->outputs.size(); o++)
      collect_constants(side->outputs[o].at(output_subscripts(o, side->outputs[o].shape.size())), constants);
  return constants;
}

// A model of this type holds the left side's constants: a rule never matches where it cannot.
bool holds_constants(const Graph& left, ElementType real) {
  for (const NodePtr& node : left.nodes()) {
    if (!node->is(OpKind::Constant) || !is_floating(node->tensor.type())) continue;
    for (double value : node->tensor.to_doubles())
      if (rounded_to(real, value) != value) return false;
  }
  return true;
}

Cond both_defined(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right, const Cond& condition) {
  Cond all = left_condition(rule, left, condition);
  for (const Requirement& r : right.requirements) all = all && r.cond;
  for (size_t o = 0; o < left.outputs.size(); o++)
    for (size_t axis = 0; axis < left.outputs[o].shape.size(); axis++)
      all = all && equal(left.outputs[o].shape[axis], right.outputs[o].shape[axis]);
  return all;
}

class RangeJudge {
 public:
  RangeJudge(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right, const Cond& condition,
             uint64_t seed, ObservedMarks& observed)
      : rule_(rule),
        random_(seed),
        sizes_(rule_symbols(rule), extent_symbols(rule), both_defined(rule, left, right, condition)),
        left_(compile_side(left)),
        right_(compile_side(right)),
        constants_(constants_of(left, right)),
        observed_(observed) {}

  // `stated`: the rule in the type `real`. Errors: an operator that has no definition.
  Status judge(const RewriteRule& stated, ElementType real, int samples) {
    GOPT_ASSIGN_OR_RETURN(const SideEvaluator left, SideEvaluator::compile(stated.left));
    GOPT_ASSIGN_OR_RETURN(const SideEvaluator right, SideEvaluator::compile(stated.right));
    real_ = real;
    output_types_.clear();
    for (const GraphOutput& output : stated.left.outputs()) output_types_.push_back(output.value.type().element);
    const bool may_narrow = left.wide_operators(real) > right.wide_operators(real);
    const FloatInputs draws(stated, real, constants_);
    for (int i = 0; i < samples && !has_all_marks(); i++) {
      // A rule that is not applied any more is looked at for what else may be said of it, but not as long.
      if (i > samples / 2 && !may_apply(observed_.marks, {})) break;
      const auto dims = draw_sizes();
      if (!dims) return Unit{};
      const auto l = comfortable(left, draws, *dims, i);
      if (!l) continue;
      const auto r = right.run(environment_, inputs_, {real}, kMostElements);
      const auto digits = right.run(environment_, inputs_, {real, true}, kMostElements);
      if (!r || !digits) continue;
      if (may_narrow && r->narrow_roundings > l->narrow_roundings) compare_digits(*l, *r, i >= samples / 4);
      compare(*l, *r, *digits, draws);
    }
    return Unit{};
  }

 private:
  bool has_all_marks() const {
    const RuleMarks& marks = observed_.marks;
    return marks.loses_range && marks.cancels && marks.drops_rounding;
  }

  // Few elements, but some: what floats do shows on small tensors.
  std::optional<std::vector<std::vector<int64_t>>> draw_sizes() {
    constexpr int kTries = 12;
    constexpr int64_t kMostInputs = 100;
    for (int attempt = 0; attempt < kTries; attempt++) {
      if (!sizes_.draw(random_, environment_)) return std::nullopt;
      std::vector<std::vector<int64_t>> dims;
      int64_t elements = 0;
      bool is_empty = false;
      for (const RuleVariable& variable : rule_.variables) {
        dims.push_back(numbers(*variable.type.shape, environment_).value());
        elements += element_count(dims.back());
        is_empty = is_empty || element_count(dims.back()) == 0;
      }
      if (!is_empty && elements <= kMostInputs) return dims;
    }
    return std::nullopt;
  }

  // The left side's values for inputs that keep it far from both ends of the range; nothing where some draws have none.
  std::optional<SideEvaluator::Values> comfortable(const SideEvaluator& left, const FloatInputs& draws,
                                                   const std::vector<std::vector<int64_t>>& dims, int number) {
    constexpr int kTries = 4;
    for (int attempt = 0; attempt < kTries; attempt++) {
      inputs_ = draws.draw(dims, number, random_);
      auto values = left.run(environment_, inputs_, {real_}, kMostElements);
      if (!values) return std::nullopt;
      if (values->is_comfortable) return values;
    }
    return std::nullopt;
  }

  // The right side rounded where the left side had more digits: any difference shows it. Where comparisons or a last
  // rounding hide it, the rounding itself does (`is_enough`).
  void compare_digits(const SideEvaluator::Values& left, const SideEvaluator::Values& right, bool is_enough) {
    for (size_t o = 0; o < left.outputs.size(); o++) {
      for (size_t flat = 0; flat < left.outputs[o].values.size(); flat++) {
        const double a = left.outputs[o].values[flat], b = right.outputs[o].values[flat];
        if (a == b && !is_enough) continue;
        const std::vector<int64_t> position = position_of_flat(static_cast<int64_t>(flat), left.outputs[o].dims);
        if (const auto exact = exact_value(o, at(o, position), inputs_))
          note("narrows", o, position, a, b, static_cast<double>(exact->value));
        return;
      }
    }
  }

  // `digits` is the right side with the type's digits alone: what is right there was lost to the range.
  void compare(const SideEvaluator::Values& left, const SideEvaluator::Values& right,
               const SideEvaluator::Values& digits, const FloatInputs& draws) {
    for (size_t o = 0; o < left.outputs.size(); o++) {
      for (size_t flat = 0; flat < left.outputs[o].values.size(); flat++) {
        const double a = left.outputs[o].values[flat], b = right.outputs[o].values[flat];
        if (a == b || !std::isfinite(a)) continue;
        const double least = std::min(kLost, kBad * range_of_output(o).unit) / 2;
        if (std::isfinite(b) && std::fabs(a - b) <= least * std::max(std::fabs(a), std::fabs(b))) continue;
        const std::vector<int64_t> position = position_of_flat(static_cast<int64_t>(flat), left.outputs[o].dims);
        judge_element(o, position, a, b, digits.outputs[o].values[flat], draws);
        if (has_all_marks()) return;
      }
    }
  }

  Environment at(size_t output, const std::vector<int64_t>& position) const {
    Environment there = environment_;
    for (size_t axis = 0; axis < position.size(); axis++) there[left_.positions[output][axis]] = position[axis];
    return there;
  }

  RealRange range_of_output(size_t output) const { return range_of(output_types_[output]); }

  // The value over the reals, by the side that bounds it better.
  std::optional<Bounded> exact_value(size_t output, const Environment& there, const SampleInputs& inputs) const {
    const Bounded a = left_.values[output].enclose(there, inputs, {}),
                  b = right_.values[output].enclose(there, inputs, {});
    const Bounded& best = a.is_known() && (!b.is_known() || a.error <= b.error) ? a : b;
    if (!best.is_known() || !std::isfinite(best.value)) return std::nullopt;
    return best;
  }

  // What a rounding of the inputs changes of the exact value: digits below that mean nothing.
  std::optional<double> worth_of_digits(size_t output, const Environment& there, const Bounded& exact,
                                        const FloatInputs& draws) {
    constexpr int kPerturbations = 5;
    double most = 0;
    for (int i = 0; i < kPerturbations; i++) {
      const auto near = exact_value(output, there, draws.perturbed(inputs_, random_));
      if (!near) return std::nullopt;
      most = std::max(most, static_cast<double>(std::fabs(near->value - exact.value) + near->error));
    }
    const RealRange range = range_of_output(output);
    return most + range.unit * static_cast<double>(std::fabs(exact.value)) + range.smallest;
  }

  void judge_element(size_t output, const std::vector<int64_t>& position, double a, double b, double by_digits,
                     const FloatInputs& draws) {
    const Environment there = at(output, position);
    const auto exact = exact_value(output, there, inputs_);
    if (!exact) return;
    const auto worth = worth_of_digits(output, there, *exact, draws);
    if (!worth || static_cast<double>(exact->error) > *worth) return;
    const auto value = static_cast<double>(exact->value);
    const double left_error = std::fabs(a - value), right_error = std::fabs(b - value);
    const auto is_bad = [&](double error) { return !(error <= kBad * *worth || error <= kLost * std::fabs(value)); };
    if (left_error <= kGood * *worth && is_bad(right_error)) {
      note(is_bad(std::fabs(by_digits - value)) && std::isfinite(b) ? "cancels" : "loses-range", output, position, a, b,
           value);
    } else if (right_error <= kGood * *worth && !(left_error <= kBad * *worth)) {
      const double of_left = left_.values[output].magnitude(there, inputs_).size,
                   of_right = right_.values[output].magnitude(there, inputs_).size;
      const bool is_truth = output_types_[output] == ElementType::Bool;  // tanh 20 is 1, and not less than 1
      if (is_truth || of_left > kTermsOver * of_right) note("drops-rounding", output, position, a, b, value);
    }
  }

  void note(std::string_view mark, size_t output, const std::vector<int64_t>& position, double a, double b,
            double exact) {
    const MarkInfo* info = find_mark(mark);
    if (observed_.marks.*(info->flag)) return;
    observed_.marks.*(info->flag) = true;
    Counterexample c;
    for (const auto& [symbol, value] : environment_) c.sizes[atom(symbol).name] = value;
    for (size_t i = 0; i < rule_.variables.size(); i++) {
      const SampleTensor& t = inputs_.at(static_cast<int>(i));
      const ElementType element = rule_.variables[i].type.element;
      c.inputs[rule_.variables[i].name] =
          Tensor::from_values<double>(element == ElementType::Float32 ? real_ : element, t.dims, t.values);
    }
    char text[48];
    snprintf(text, sizeof text, "exactly %.9g", exact);
    c.what = text;
    c.output = static_cast<int>(output);
    c.position = position;
    c.left = a;
    c.right = b;
    observed_.examples.push_back({info, real_, std::move(c)});
  }

  const RewriteRule& rule_;
  std::mt19937_64 random_;
  SizeSampler sizes_;
  CompiledSide left_, right_;
  std::vector<double> constants_;
  ObservedMarks& observed_;
  ElementType real_ = ElementType::Float32;
  std::vector<ElementType> output_types_;
  Environment environment_;
  SampleInputs inputs_;
};

}  // namespace

void observe_range(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right, const Cond& condition,
                   int samples, uint64_t seed, ObservedMarks& observed) {
  const bool has_reals = std::any_of(rule.variables.begin(), rule.variables.end(),
                                     [](const RuleVariable& v) { return is_floating(v.type.element); });
  if (!has_reals) return;
  const bool shows_rounding = std::all_of(rule.left.outputs().begin(), rule.left.outputs().end(),
                                          [](const auto& o) { return is_floating(o.value.type().element); });
  const bool rounds_alike = shows_rounding && !observed.marks.reassociates && !observed.marks.changes_rounding;
  RangeJudge judge(rule, left, right, condition, seed, observed);
  const auto may_be = [&](ElementType real) { return holds_for(rule, real) && holds_constants(rule.left, real); };
  // The others have single precision's range, or its digits and more: they matter where single precision is not met.
  for (ElementType real : {ElementType::Float32, ElementType::Float16, ElementType::Float64, ElementType::BFloat16}) {
    const bool is_usual = real == ElementType::Float32 || real == ElementType::Float16;
    if (!may_be(real) || (!is_usual && may_be(ElementType::Float32))) continue;
    const auto stated = with_real_type(rule, real);
    if (stated.ok() && !judge.judge(*stated, real, rounds_alike ? samples / 4 : samples)) return;
  }
}

}  // namespace gopt::verifier
