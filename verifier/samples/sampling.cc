#include "sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "compiled_side.h"
#include "equality/gathered_indices.h"
#include "gopt/interpreter.h"
#include "size_sampler.h"

namespace gopt::verifier {
namespace {

constexpr size_t kMaxPositions = 6;
constexpr double kTolerance = 1e-7;
// Where nothing else decides, and bounds on rounding say which differences are real ones.
constexpr double kFineTolerance = 1e-13;
constexpr int64_t kMostElements = int64_t{1} << 20;  // of a tensor in a sample

bool is_integral_rule(const RewriteRule& rule) {
  return std::none_of(rule.variables.begin(), rule.variables.end(),
                      [](const RuleVariable& v) { return is_floating(v.type.element); });
}

// Finite values agree within rounding; where one side has no finite value, neither has the other.
bool agree(double a, double b, double tolerance = kTolerance) {
  if (!std::isfinite(a) || !std::isfinite(b)) return std::isfinite(a) == std::isfinite(b);
  return std::fabs(a - b) <= tolerance * std::max({1.0, std::fabs(a), std::fabs(b)});
}

// Numbers that occur in a rule.
struct FarConstants {
  std::vector<double> values;
  std::vector<int64_t> sizes;
};

void collect_constants(const Index& index, std::set<int64_t>& out) {
  out.insert(index.constant());
  for (const Index::Term& term : index.terms()) {
    if (term.coefficient > 1) out.insert(term.coefficient);
    for (AtomId id : term.atoms) {
      const Atom& a = atom(id);
      if (a.kind != AtomKind::FloorDiv) continue;
      collect_constants(a.numerator, out);
      collect_constants(a.denominator, out);
    }
  }
}
void collect_constants(const Cond& cond, std::set<int64_t>& out) {
  collect_constants(cond.index(), out);
  for (const Cond& part : cond.parts()) collect_constants(part, out);
}
void collect_constants(const Expr& e, std::set<double>& values, std::set<int64_t>& sizes) {
  if (e->kind == ExprKind::Constant && std::isfinite(e->value)) values.insert(e->value);
  collect_constants(e->index, sizes);
  collect_constants(e->cond, sizes);
  for (const Index& s : e->subscripts) collect_constants(s, sizes);
  for (const Binder& b : e->binders) collect_constants(b.extent, sizes);
  for (const Expr& a : e->args) collect_constants(a, values, sizes);
}
FarConstants constants_of(const SideMeaning& left, const SideMeaning& right) {
  constexpr int64_t kLargestSize = 40;
  std::set<double> values;
  std::set<int64_t> numbers, sizes;
  for (const SideMeaning* side : {&left, &right}) {
    for (const Requirement& r : side->requirements) collect_constants(r.cond, numbers);
    for (size_t o = 0; o < side->outputs.size(); o++) {
      for (const Index& extent : side->outputs[o].shape) collect_constants(extent, numbers);
      collect_constants(side->outputs[o].at(output_subscripts(o, side->outputs[o].shape.size())), values, numbers);
    }
  }
  for (int64_t n : numbers)
    for (int64_t near : {n - 1, n, n + 1, 2 * n})
      if (n >= -kLargestSize && n <= kLargestSize && near > 4 && near <= kLargestSize) sizes.insert(near);
  for (int64_t larger = 5; larger <= 9; larger++) sizes.insert(larger);
  return {{values.begin(), values.end()}, {sizes.begin(), sizes.end()}};
}

// How inputs are drawn.
enum class Values { Mixed, Positive, Zeros, Rough, WithInfinities, Far, Small };

bool saturates(Function function) {
  return function == Function::Exp || function == Function::Sinh || function == Function::Cosh ||
         function == Function::Pow || function == Function::Tanh || function == Function::Erf;
}
// Whether a side applies a function that, at numbers that are not large, exceeds all doubles or is 0 or 1 in them,
// although it is not over the reals.
bool saturates(const Expr& e) {
  if (e->kind == ExprKind::Call && saturates(e->function)) return true;
  return std::any_of(e->args.begin(), e->args.end(), [](const Expr& a) { return saturates(a); });
}
bool saturates(const SideMeaning& side) {
  for (size_t o = 0; o < side.outputs.size(); o++) {
    if (saturates(side.outputs[o].at(output_subscripts(o, side.outputs[o].shape.size())))) return true;
  }
  return false;
}

class Sampler {
 public:
  Sampler(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right, const Cond& condition,
          uint64_t seed)
      : rule_(rule),
        left_(left),
        right_(right),
        random_(seed),
        floats_(float_variables(rule).size()),
        sizes_(rule_symbols(rule), extent_symbols(rule), left_condition(rule, left, condition)),
        left_side_(compile_side(left)),
        right_side_(compile_side(right)),
        index_extents_(index_extents(rule)),
        bound_(saturates(left) || saturates(right) ? kSaturating : INFINITY) {}

  bool draw_sizes() { return sizes_.draw(random_, environment_); }
  // Whether sizes that are given can be taken; those of other symbols stay as they were drawn.
  bool take_sizes(const Environment& given) {
    Environment next = environment_;
    for (auto& [symbol, value] : next)
      if (auto it = given.find(symbol); it != given.end()) value = it->second;
    if (!sizes_.admits(next)) return false;
    environment_ = std::move(next);
    return true;
  }
  void use_constants(const FarConstants& constants) {
    far_values_ = constants.values;
    sizes_.set_pool(constants.sizes);
  }
  void use_larger_sizes() { sizes_.set_pool({5, 6, 7, 8}); }
  // Whether no tensor of either side has more elements.
  bool has_at_most(int64_t elements) const {
    for (const Graph* side : {&rule_.left, &rule_.right}) {
      for (const NodePtr& node : side->nodes()) {
        for (const TensorType& type : node->outputs) {
          int64_t count = 1;
          for (const Index& extent : *type.shape) {
            const auto value = evaluate(extent, environment_);
            if (!value || *value > elements) return false;
            count *= std::max<int64_t>(*value, 1);
            if (count > elements) return false;
          }
        }
      }
    }
    return true;
  }

  void draw_values(Values kind) {
    static constexpr double kScales[] = {1, 1, 4, 16};
    if (kind == Values::WithInfinities) special_one_in_ = kOneIn[random_() % std::size(kOneIn)];
    const double scale = kind == Values::Mixed ? kScales[random_() % 4] : 1;
    for (size_t i = 0; i < rule_.variables.size(); i++) {
      const RuleVariable& variable = rule_.variables[i];
      SampleTensor tensor{*numbers(*variable.type.shape, environment_), {}};
      const bool special = kind == Values::WithInfinities && variable.kind == VariableKind::Activation;
      const bool zero = kind == Values::Zeros && random_() % 2 == 0;
      // Beside infinite activations, weights are as trained ones are: finite, and no function of them is infinite.
      const Values own = kind == Values::WithInfinities && !special ? Values::Positive : kind;
      if (kind == Values::Far) {
        far_base_ = draw_far();
        is_far_together_ = random_() % 2 == 0;
      }
      const auto index = index_extents_.find(variable.name);
      for (int64_t k = element_count(tensor.dims); k > 0; k--)
        tensor.values.push_back(zero ? 0
                                : index != index_extents_.end()
                                    ? draw_index(index->second)
                                    : draw_value(variable.type.element, own, scale, special));
      inputs_[static_cast<int>(i)] = std::move(tensor);
    }
    for (size_t k = 0; k < floats_; k++)
      inputs_[kFirstFloatSlot + static_cast<int>(k)] = {
          {},
          {draw_value(ElementType::Float32, kind == Values::WithInfinities ? Values::Positive : kind, scale, false)}};
  }

  // Of the activations that were drawn some become infinite or no number; weights stay as they are.
  void add_infinities() {
    special_one_in_ = kOneIn[random_() % std::size(kOneIn)];
    for (size_t i = 0; i < rule_.variables.size(); i++) {
      const RuleVariable& variable = rule_.variables[i];
      if (variable.kind != VariableKind::Activation || !is_floating(variable.type.element)) continue;
      if (index_extents_.contains(variable.name)) continue;
      for (double& value : inputs_.at(static_cast<int>(i)).values)
        if (random_() % special_one_in_ == 0) value = draw_special();
    }
  }

  bool right_is_defined() const {
    return std::all_of(right_.requirements.begin(), right_.requirements.end(),
                       [&](const Requirement& r) { return evaluate(r.cond, environment_) == true; });
  }
  bool shapes_agree() const {
    for (size_t o = 0; o < left_.outputs.size(); o++)
      if (numbers(left_.outputs[o].shape, environment_) != numbers(right_.outputs[o].shape, environment_)) return false;
    return true;
  }

  // Calls visit(output, position, left, right) at some positions of each output, until it returns false.
  template <class F>
  void visit_positions(const CompiledExpr::Options& options, const F& visit) {
    for (size_t o = 0; o < left_.outputs.size(); o++) {
      const auto dims = numbers(left_.outputs[o].shape, environment_);
      if (!dims) continue;
      const int64_t count = element_count(*dims);
      for (size_t k = 0; k < std::min<size_t>(kMaxPositions, static_cast<size_t>(count)); k++) {
        const int64_t flat = count <= static_cast<int64_t>(kMaxPositions)
                                 ? static_cast<int64_t>(k)
                                 : static_cast<int64_t>(random_() % static_cast<uint64_t>(count));
        const std::vector<int64_t> position = position_of_flat(flat, *dims);
        const auto [a, b] = values_at(o, position, options);
        if (!visit(o, position, a, b)) return;
      }
    }
  }

  // Both sides there.
  std::pair<double, double> values_at(size_t output, const std::vector<int64_t>& position,
                                      const CompiledExpr::Options& options) const {
    const Environment at = at_position(output, position);
    return {left_side_.values[output](at, inputs_, options), right_side_.values[output](at, inputs_, options)};
  }

  // Both sides there, with what rounding may have made of them.
  std::pair<Bounded, Bounded> enclose(size_t output, const std::vector<int64_t>& position,
                                      const CompiledExpr::Options& options) const {
    const Environment at = at_position(output, position);
    return {left_side_.values[output].enclose(at, inputs_, options),
            right_side_.values[output].enclose(at, inputs_, options)};
  }

  Counterexample example(const std::string& what) const {
    Counterexample c;
    for (const auto& [symbol, value] : environment_) c.sizes[atom(symbol).name] = value;
    for (size_t i = 0; i < rule_.variables.size(); i++) c.inputs[rule_.variables[i].name] = tensor_of(i);
    const std::vector<std::string> names = float_variables(rule_);
    for (size_t k = 0; k < floats_; k++)
      c.inputs["$" + names[k]] = Tensor::from_values<double>(ElementType::Float64, {},
                                                             inputs_.at(kFirstFloatSlot + static_cast<int>(k)).values);
    c.what = what;
    return c;
  }

  // The values of both sides at the position by the interpreter, where it runs both with this type of real numbers: a
  // Cast may give Float32 alone.
  std::optional<std::pair<double, double>> replay(size_t output, const std::vector<int64_t>& position,
                                                  ElementType real) const {
    Substitution sizes;
    for (const auto& [symbol, value] : environment_) sizes[symbol] = Index(value);
    std::vector<double> floats;
    for (size_t k = 0; k < floats_; k++) floats.push_back(inputs_.at(kFirstFloatSlot + static_cast<int>(k)).values[0]);
    std::map<std::string, Tensor> inputs;
    for (size_t i = 0; i < rule_.variables.size(); i++) inputs[rule_.variables[i].name] = tensor_of(i, real);
    double values[2];
    int side_number = 0;
    for (const Graph* side : {&rule_.left, &rule_.right}) {
      const auto graph = instantiate(*side, sizes, floats, real);
      if (!graph) return std::nullopt;
      const auto outputs = interpret(*graph, inputs);
      if (!outputs) return std::nullopt;
      const Tensor& tensor = (*outputs)[output];
      int64_t flat = 0;
      for (size_t axis = 0; axis < position.size(); axis++) flat = flat * tensor.dims()[axis] + position[axis];
      values[side_number++] = load_double(tensor.bytes().data(), tensor.type(), flat);
    }
    return std::pair{values[0], values[1]};
  }

 private:
  Environment at_position(size_t output, const std::vector<int64_t>& position) const {
    Environment at = environment_;
    for (size_t axis = 0; axis < position.size(); axis++) at[left_side_.positions[output][axis]] = position[axis];
    return at;
  }

  // A place of all axes that are gathered at it, counted from either end.
  double draw_index(const std::vector<Index>& extents) {
    const int64_t places = places_within(extents, environment_);
    return places == 0
               ? 0
               : static_cast<double>(static_cast<int64_t>(random_() % static_cast<uint64_t>(2 * places)) - places);
  }

  double draw_value(ElementType type, Values kind, double scale, bool special) {
    const double value = draw_unbounded(type, kind, scale, special);
    return std::isfinite(value) && is_floating(type) ? rounded_to(type, std::clamp(value, -bound_, bound_)) : value;
  }

  double draw_unbounded(ElementType type, Values kind, double scale, bool special) {
    if (type == ElementType::Bool) return static_cast<double>(random_() % 2);
    if (is_integer(type)) return static_cast<double>(random_() % 3);
    if (special && random_() % special_one_in_ == 0) return draw_special();
    if (kind == Values::Far) {
      if (!is_far_together_) return draw_far();
      return far_base_ + 0.25 * (static_cast<double>(random_() % 17) - 8);
    }
    if (kind == Values::Rough) {  // of all digits that a float has: x - 1 - 1 is x - 2 where it has few
      constexpr uint64_t kLastDigits = 1 << 17;
      const uint64_t roll = random_();
      return static_cast<double>(static_cast<float>(0.1 + static_cast<double>(roll % 1000003) / 0x1p19 +
                                                    static_cast<double>((roll >> 32) % kLastDigits) / 0x1p36));
    }
    // Within 1, where squares are below what they are of.
    if (kind == Values::Small) return (static_cast<double>(random_() % 127) - 63) / (random_() % 2 == 0 ? 64 : 256);
    if (kind == Values::Positive) return 0.25 * static_cast<double>(1 + random_() % 8);
    return scale * 0.25 * (static_cast<double>(random_() % 17) - 8);
  }

  double draw_special() {
    static constexpr double kSpecial[] = {INFINITY, -INFINITY, NAN};
    return kSpecial[random_() % 3];
  }

  double draw_far() {
    static constexpr double kOffsets[] = {0, 0.25, -0.25, 1, -1};
    const auto roll = random_() % 4;
    if (roll == 0) return 0.25 * (static_cast<double>(random_() % 17) - 8);
    if (roll == 1 || far_values_.empty()) {
      const double power = std::pow(10.0, static_cast<double>(random_() % 6));
      return (random_() % 2 == 0 ? 1 : -1) * power * static_cast<double>(1 + random_() % 9);
    }
    const double near = far_values_[random_() % far_values_.size()];
    static constexpr double kFactors[] = {1, 1, 2, -1, -2, 0.5};
    return near * kFactors[random_() % std::size(kFactors)] + kOffsets[random_() % std::size(kOffsets)];
  }

  Tensor tensor_of(size_t variable, ElementType real = ElementType::Float64) const {
    const ElementType type = rule_.variables[variable].type.element;
    const SampleTensor& t = inputs_.at(static_cast<int>(variable));
    return Tensor::from_values<double>(is_floating(type) ? real : type, t.dims, t.values);
  }

  const RewriteRule& rule_;
  const SideMeaning &left_, &right_;
  std::mt19937_64 random_;
  size_t floats_;
  SizeSampler sizes_;
  CompiledSide left_side_, right_side_;
  Environment environment_;
  SampleInputs inputs_;
  std::map<std::string, std::vector<Index>> index_extents_;
  std::vector<double> far_values_;
  double far_base_ = 0;
  // Of drawn numbers: sigmoid(40) is 1 in doubles, and whether it is less than 1 is not seen.
  static constexpr double kSaturating = 8;
  double bound_;
  bool is_far_together_ = false;
  static constexpr unsigned kOneIn[] = {2, 3, 12};
  uint64_t special_one_in_ = 3;  // elements that are infinite or not a number, where some are
};

// The sample as a counterexample at a position, where the interpreter tells the sides apart, too.
std::optional<Counterexample> confirmed(const Sampler& sampler, size_t output, const std::vector<int64_t>& position,
                                        double tolerance = kTolerance) {
  constexpr double kSingleTolerance = 1e-4;
  auto values = sampler.replay(output, position, ElementType::Float64);
  if (!values) {
    values = sampler.replay(output, position, ElementType::Float32);
    tolerance = kSingleTolerance;
  }
  if (!values || agree(values->first, values->second, tolerance)) return std::nullopt;
  Counterexample c = sampler.example("");
  c.output = static_cast<int>(output);
  c.position = position;
  c.left = values->first;
  c.right = values->second;
  return c;
}

// Looks at one sample's values; returns false when a difference was found.
bool compare_sample(Sampler& sampler, bool truncating, SamplingResult& result) {
  const CompiledExpr::Options options{false, truncating};
  sampler.visit_positions(options, [&](size_t output, const std::vector<int64_t>& position, double a, double b) {
    result.has_elements = true;
    if (std::isfinite(a)) result.left_is_finite_somewhere = true;
    const bool is_same = agree(a, b);
    if (is_same && (std::isfinite(a) || result.left_is_finite_somewhere)) return true;
    const auto [left, right] = sampler.enclose(output, position, options);
    // It may have exceeded all doubles.
    if (!left.is_known()) result.left_is_finite_somewhere = true;
    if (!result.left_is_finite_somewhere && !result.never_finite) {
      result.never_finite = sampler.example("the left side has no finite value");
      result.never_finite->output = static_cast<int>(output);
      result.never_finite->position = position;
      result.never_finite->left = a;
      result.never_finite->right = b;
    }
    if (!is_same && surely_differ(left, right)) result.difference = confirmed(sampler, output, position);
    return !result.difference;
  });
  return !result.difference;
}

}  // namespace

SamplingResult sample_rule(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right,
                           const Cond& condition, int samples, uint64_t seed) {
  SamplingResult result;
  Sampler sampler(rule, left, right, condition, seed);
  const bool truncating = is_integral_rule(rule);
  for (int i = 0; i < samples; i++) {
    if (!sampler.draw_sizes()) {
      if (i > 2 && result.left_valid == 0) break;
      continue;
    }
    if (!sampler.has_at_most(kMostElements)) continue;
    result.left_valid++;
    static constexpr Values kKinds[] = {Values::Mixed, Values::Positive, Values::Mixed, Values::Positive,
                                        Values::Zeros};
    sampler.draw_values(kKinds[i % std::size(kKinds)]);
    const bool defined = sampler.right_is_defined();
    if (!defined || !sampler.shapes_agree()) {
      if (!result.right_undefined)
        result.right_undefined =
            sampler.example(defined ? "the sides have different shapes" : "the right side is not defined");
      continue;
    }
    result.both_valid++;
    if (!compare_sample(sampler, truncating, result)) break;
  }
  return result;
}

std::optional<Counterexample> sample_far(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right,
                                         const Cond& condition, const std::vector<Environment>& sizes, int samples,
                                         uint64_t seed, bool left_may_fail) {
  constexpr int64_t kMaxElements = 20'000;
  Sampler sampler(rule, left, right, condition, seed);
  sampler.use_constants(constants_of(left, right));
  const CompiledExpr::Options options{false, is_integral_rule(rule)};
  std::optional<Counterexample> found;
  for (int i = 0; i < samples && !found; i++) {
    if (!sampler.draw_sizes()) continue;
    if (static_cast<size_t>(i) < 2 * sizes.size()) sampler.take_sizes(sizes[static_cast<size_t>(i) / 2]);
    if (!sampler.has_at_most(kMaxElements) || !sampler.right_is_defined() || !sampler.shapes_agree()) continue;
    static constexpr Values kKinds[] = {Values::Far, Values::Mixed, Values::Far, Values::Small};
    sampler.draw_values(kKinds[i % std::size(kKinds)]);
    sampler.visit_positions(options, [&](size_t output, const std::vector<int64_t>& position, double a, double b) {
      if (agree(a, b, kFineTolerance) || !std::isfinite(b) || (!std::isfinite(a) && !left_may_fail)) return true;
      const auto [on_left, on_right] = sampler.enclose(output, position, options);
      if (surely_differ(on_left, on_right)) found = confirmed(sampler, output, position, kFineTolerance);
      return !found;
    });
  }
  return found;
}

namespace {

// Named functions, division and constants of a side: where they differ, so does rounding, whatever the order of
// operations.
void collect_roundings(const Expr& e, std::set<std::string>& out) {
  if (e->kind == ExprKind::Call) out.insert(std::string(function_text(e->function)));
  if (e->kind == ExprKind::Divide) out.insert("/");
  for (const Expr& a : e->args) collect_roundings(a, out);
}
std::set<std::string> roundings(const SideMeaning& meaning) {
  std::set<std::string> out;
  for (const TensorExpr& t : meaning.outputs) collect_roundings(t.at(output_subscripts(0, t.shape.size())), out);
  return out;
}

// Infinities of one sign, NaN, and numbers as far as rounding lets it be seen.
bool same_special(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::isinf(a) || std::isinf(b) ? a == b : agree(a, b);
}

// Sizes at which both sides are there and of one shape, none of them large.
bool draw_comparable_sizes(Sampler& sampler) {
  return sampler.draw_sizes() && sampler.has_at_most(kMostElements) && sampler.right_is_defined() &&
         sampler.shapes_agree();
}

// Looks for values that differ where activations are infinite or no numbers.
class SpecialValues {
 public:
  SpecialValues(Sampler& sampler, const CompiledExpr::Options& options, ObservedMarks& observed)
      : sampler_(sampler), options_(options), observed_(observed) {}

  // Weights beside them are as trained ones are: finite, above 0 (variances), and no function of them is infinite.
  void among_positive_weights() {
    sampler_.draw_values(Values::WithInfinities);
    sampler_.visit_positions(options_, [&](size_t output, const std::vector<int64_t>& position, double a, double b) {
      if (same_special(a, b)) return true;
      note(output, position, a, b);
      return false;
    });
  }

  // Of any sign, and zeros, where both sides are finite without infinities. What these make of an infinity is NaN in
  // one order of sums and infinite in another: nothing is asked where the left side is NaN.
  void among_any_weights() {
    sampler_.draw_values(Values::Mixed);
    std::vector<std::pair<size_t, std::vector<int64_t>>> finite;
    sampler_.visit_positions(options_, [&](size_t output, const std::vector<int64_t>& position, double a, double b) {
      if (std::isfinite(a) && std::isfinite(b)) finite.emplace_back(output, position);
      return true;
    });
    sampler_.add_infinities();
    for (const auto& [output, position] : finite) {
      const auto [a, b] = sampler_.values_at(output, position, options_);
      if (std::isnan(a) || same_special(a, b)) continue;
      note(output, position, a, b);
      return;
    }
  }

 private:
  void note(size_t output, const std::vector<int64_t>& position, double a, double b) {
    observed_.marks.finite_only = true;
    MarkExample shown{find_mark("finite-only"), ElementType::Float64, sampler_.example("")};
    shown.example.output = static_cast<int>(output);
    shown.example.position = position;
    shown.example.left = a;
    shown.example.right = b;
    observed_.examples.push_back(std::move(shown));
  }

  Sampler& sampler_;
  const CompiledExpr::Options options_;
  ObservedMarks& observed_;
};

}  // namespace

ObservedMarks observed_marks(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right,
                             const Cond& condition, uint64_t seed) {
  constexpr int kSamples = 24, kSpecialSamples = 120;
  ObservedMarks observed;
  Sampler sampler(rule, left, right, condition, seed);
  const bool truncating = is_integral_rule(rule);
  SpecialValues special(sampler, {false, truncating}, observed);
  bool rounds_differently = false;
  for (int i = 0; i < kSpecialSamples; i++) {
    if (i >= kSamples && observed.marks.finite_only) break;
    if (!draw_comparable_sizes(sampler)) continue;
    if (i < kSamples) {
      sampler.draw_values(Values::Rough);
      sampler.visit_positions({true, truncating}, [&](size_t, const std::vector<int64_t>&, double a, double b) {
        rounds_differently |= std::isfinite(a) && std::isfinite(b) && a != b;
        return true;
      });
    }
    if (observed.marks.finite_only) continue;
    special.among_positive_weights();
  }
  // By draws of their own, so that those above are what they were when the shipped marks were observed.
  Sampler other(rule, left, right, condition, ~seed);
  SpecialValues of_any_sign(other, {false, truncating}, observed);
  for (int i = 0; i < kSpecialSamples && !observed.marks.finite_only; i++)
    if (draw_comparable_sizes(other)) of_any_sign.among_any_weights();
  // Whether a window meets an infinity that another one leaves out is seen where several windows lie side by side.
  Sampler larger(rule, left, right, condition, seed + 1);
  larger.use_larger_sizes();
  SpecialValues of_larger(larger, {false, truncating}, observed);
  for (int i = 0; i < kSamples && !observed.marks.finite_only; i++)
    if (draw_comparable_sizes(larger)) of_larger.among_any_weights();
  const bool same_functions = roundings(left) == roundings(right);
  observed.marks.changes_rounding = rounds_differently && !same_functions;
  observed.marks.reassociates = rounds_differently && same_functions;
  return observed;
}

}  // namespace gopt::verifier
