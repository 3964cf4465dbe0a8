// If, Loop and Scan without bodies: both branches and a choice, or one copy of the body for each step. Optionals that
// are tensors.
#include <algorithm>
#include <limits>

#include "lowering.h"

namespace gopt::ir {
namespace {

constexpr int64_t kMostSteps = 1024;

Value as_scalar(Lowering& l, const Value& condition) {
  Lowering::require(type_of(condition) == ElementType::Bool);
  return l.reshape(condition, {});
}
Value truth(Lowering& l, bool value) { return l.scalar(ElementType::Bool, value ? 1 : 0); }
std::optional<bool> known_truth(const Value& condition) {
  if (!condition.node->is(OpKind::Constant) || condition.node->tensor.count() != 1) return std::nullopt;
  return condition.node->tensor.to_ints()[0] != 0;
}

// Values of one type: `a` where the condition holds.
Values chosen(Lowering& l, const Value& condition, const Values& a, const Values& b) {
  Lowering::require(a.size() == b.size());
  Values values;
  for (size_t k = 0; k < a.size(); k++) {
    Lowering::require(a[k] && b[k] && a[k].type() == b[k].type() && is_computable(type_of(a[k])));
    values.push_back(a[k] == b[k] ? a[k] : l.where(condition, a[k], b[k]));
  }
  return values;
}

Values lower_if(Lowering& l) {
  const Value condition = as_scalar(l, l.input(0));
  return chosen(l, condition, l.body("then_branch", {}), l.body("else_branch", {}));
}

Value squeezed(Lowering& l, const Value& x, int64_t axis) {
  return l.op(OpKind::Squeeze, {x}, {{"axes", std::vector<Index>{Index(axis)}}});
}
// One step's values stacked along a new axis.
Value stacked(Lowering& l, const Values& steps, int64_t axis) {
  Lowering::require(!steps.empty());
  Values parts;
  for (const Value& value : steps) {
    parts.push_back(l.unsqueeze(value, l.axis(axis, rank_of(value) + 1)));
    Lowering::require(parts.back().type() == parts[0].type());
  }
  return parts.size() == 1 ? parts[0] : l.concat(parts, l.axis(axis, rank_of(parts[0])));
}

// A condition that is computed ends nothing: from where it is false on, values stay as they are. What is collected of
// each step then has no known length.
Values lower_loop(Lowering& l) {
  int64_t trips = std::numeric_limits<int64_t>::max();
  if (l.has(0)) {
    const std::vector<int64_t> given = l.numbers(0);
    Lowering::require(given.size() == 1);
    trips = given[0];
  }
  Values values;
  const size_t outputs = static_cast<size_t>(l.output_count());
  for (size_t k = 2; l.has(k); k++) values.push_back(l.input(k));
  const size_t carried = values.size();
  Lowering::require(outputs >= carried);
  std::vector<Values> collected(outputs - carried);
  Value condition = l.has(1) ? as_scalar(l, l.input(1)) : truth(l, true);
  for (int64_t step = 0; step < trips; step++) {
    const std::optional<bool> goes_on = known_truth(condition);
    if (goes_on && !*goes_on) break;
    Lowering::require(step < kMostSteps);
    Values given{l.scalar(ElementType::Int64, static_cast<double>(step)), condition};
    given.insert(given.end(), values.begin(), values.end());
    Values results = l.body("body", given);
    Lowering::require(results.size() == 1 + outputs);
    for (size_t k = 0; k < collected.size(); k++) collected[k].push_back(results[1 + carried + k]);
    const Values next(results.begin() + 1, results.begin() + 1 + static_cast<int64_t>(carried));
    values = goes_on ? next : chosen(l, condition, next, values);
    const Value still = as_scalar(l, results[0]);
    condition = goes_on ? still : l.op(OpKind::And, {condition, still});
    Lowering::require(goes_on || collected.empty());
  }
  for (size_t k = 0; k < collected.size(); k++)
    values.push_back(collected[k].empty() ? Value{} : stacked(l, collected[k], 0));
  return values;
}

// ---- Scan ----

struct ScanForm {
  size_t states = 0;
  std::vector<int64_t> input_axes, input_directions, output_axes, output_directions;
};

Values scanned(Lowering& l, Values states, const Values& sequences, const ScanForm& form) {
  Lowering::require(!sequences.empty());
  int64_t steps = -1;
  for (size_t k = 0; k < sequences.size(); k++) {
    const int64_t extent = extent_of(sequences[k], l.axis(form.input_axes[k], rank_of(sequences[k])));
    Lowering::require(steps < 0 || steps == extent);
    steps = extent;
  }
  Lowering::require(steps > 0 && steps <= kMostSteps);
  std::vector<Values> collected(form.output_axes.size());
  for (int64_t step = 0; step < steps; step++) {
    Values given = states;
    for (size_t k = 0; k < sequences.size(); k++) {
      const int64_t axis = l.axis(form.input_axes[k], rank_of(sequences[k])),
                    at = form.input_directions[k] != 0 ? steps - 1 - step : step;
      given.push_back(squeezed(l, l.slice(sequences[k], axis, at, at + 1), axis));
    }
    const Values results = l.body("body", given);
    Lowering::require(results.size() == states.size() + collected.size());
    states.assign(results.begin(), results.begin() + static_cast<int64_t>(form.states));
    for (size_t k = 0; k < collected.size(); k++) collected[k].push_back(results[form.states + k]);
  }
  for (size_t k = 0; k < collected.size(); k++) {
    if (form.output_directions[k] != 0) std::reverse(collected[k].begin(), collected[k].end());
    states.push_back(stacked(l, collected[k], form.output_axes[k]));
  }
  return states;
}

// Before opset 9: lengths of sequences first, and a batch of them, one after another here.
Values lower_batched_scan(Lowering& l, const ScanForm& form, size_t sequences) {
  Lowering::require(!l.has(0));
  const int64_t batch = extent_of(l.input(1), 0);
  std::vector<Values> results(form.states + form.output_axes.size());
  for (int64_t b = 0; b < batch; b++) {
    Values states, parts;
    for (size_t k = 0; k < form.states + sequences; k++)
      (k < form.states ? states : parts).push_back(squeezed(l, l.slice(l.input(1 + k), 0, b, b + 1), 0));
    const Values one = scanned(l, states, parts, form);
    for (size_t k = 0; k < results.size(); k++) results[k].push_back(one.at(k));
  }
  Values joined;
  for (const Values& each : results) joined.push_back(stacked(l, each, 0));
  return joined;
}

Values lower_scan(Lowering& l) {
  const bool batched = l.opset() < 9;
  const auto sequences = static_cast<size_t>(l.integer("num_scan_inputs", 0));
  const size_t inputs = static_cast<size_t>(l.input_count()) - (batched ? 1 : 0),
               outputs = static_cast<size_t>(l.output_count());
  Lowering::require(sequences > 0 && inputs >= sequences && outputs >= inputs - sequences);
  ScanForm form;
  form.states = inputs - sequences;
  const std::vector<int64_t> plain(sequences, 0), plain_outputs(outputs - form.states, 0);
  form.input_axes = l.integers("scan_input_axes", plain);
  form.input_directions = l.integers(batched ? "directions" : "scan_input_directions", plain);
  form.output_axes = l.integers("scan_output_axes", plain_outputs);
  form.output_directions = l.integers("scan_output_directions", plain_outputs);
  Lowering::require(form.input_axes.size() == sequences && form.input_directions.size() == sequences &&
                    form.output_axes.size() == plain_outputs.size() &&
                    form.output_directions.size() == plain_outputs.size());
  if (batched) return lower_batched_scan(l, form, sequences);
  Values states, parts;
  for (size_t k = 0; k < inputs; k++) (k < form.states ? states : parts).push_back(l.input(k));
  return scanned(l, states, parts, form);
}

// Of a tensor, which since opset 18 may stand where an optional does, and of nothing.
Values lower_optional_has_element(Lowering& l) {
  if (l.has(0)) (void)l.input(0);  // a tensor
  return {truth(l, l.has(0))};
}
Values lower_optional_get_element(Lowering& l) { return {l.input(0)}; }

constexpr LoweredOperator kControl[] = {{"If", lower_if},
                                        {"Loop", lower_loop},
                                        {"Scan", lower_scan},
                                        {"OptionalHasElement", lower_optional_has_element},
                                        {"OptionalGetElement", lower_optional_get_element}};

}  // namespace

std::span<const LoweredOperator> lowered_control() { return kControl; }

}  // namespace gopt::ir
