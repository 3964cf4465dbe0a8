#include "rule_verifier.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <stdexcept>

#include "applicability.h"
#include "conditions/condition_parts.h"
#include "proved_verdict.h"
#include "regions/region_search.h"
#include "required_condition.h"
#include "solve_equations.h"
#include "solver/proof_state.h"

namespace gopt::verifier {
namespace {

// Whether only one side has a value, at a size of 0: what it divides by, say, the other side divides by nowhere there.
// A condition on sizes may exclude that.
bool is_undefined_over_nothing(const Counterexample& c) {
  return std::isfinite(c.left) != std::isfinite(c.right) &&
         std::any_of(c.sizes.begin(), c.sizes.end(), [](const auto& size) { return size.second == 0; });
}

SizeRow failing_row(const RewriteRule& rule, const Counterexample& counterexample) {
  SizeRow row{{}, false, true};
  for (AtomId symbol : rule_symbols(rule)) row.sizes[symbol] = counterexample.sizes.at(atom(symbol).name);
  return row;
}

// Whether the sample agrees at all positions of the box (of the output, where it has no ranges).
bool agrees_on(const Box& box, const RegionSample& sample) {
  for (size_t flat = 0; flat < sample.agrees.size(); flat++)
    if (!sample.agrees[flat] && (box.empty() || contains(box, position_at(sample, flat), sample.sizes))) return false;
  return true;
}

Counterexample example_of(const RegionSample& sample, size_t output) {
  Counterexample c;
  for (const auto& [symbol, value] : sample.sizes) c.sizes[atom(symbol).name] = value;
  c.output = static_cast<int>(output);
  c.what = "a position of output " + std::to_string(output) + " in its region differs";
  return c;
}

}  // namespace

RuleVerifier::RuleVerifier(const RewriteRule& rule, const VerifyOptions& options, const ProofLimits& limits)
    : rule_(rule),
      options_(options),
      solver_({options.rlimit, options.keep_obligations, options.keep_log ? &log_ : nullptr, limits}),
      task_{rule_, options_, solver_, log_},
      outputs_(task_) {
  if (options.keep_log) log_.begin(rule.name);
}

Verification RuleVerifier::run() {
  if (auto objection = objection_to(rule_)) return *std::move(objection);
  auto left = meaning_of(rule_.left), right = meaning_of(rule_.right);
  if (!left || !right) return unknown_verdict((left ? right : left).error().message);
  task_.left = *std::move(left);
  task_.right = *std::move(right);
  for (size_t i = 0; i < rule_.variables.size(); i++) {
    task_.is_integral = task_.is_integral && !is_floating(rule_.variables[i].type.element);
    if (rule_.variables[i].type.element == ElementType::Bool) task_.booleans.insert(static_cast<int>(i));
  }
  if (options_.keep_log)
    for (int input : task_.booleans) log_.boolean(input);
  try {
    if (computes_with_integers(rule_.left) || computes_with_integers(rule_.right)) return judge_integers();
    return rule_.is_partial() ? decide_partial() : decide();
  } catch (const NotExpressible& e) {
    return unknown_verdict(e.what());
  } catch (const std::overflow_error& e) {
    return unknown_verdict(e.what());
  } catch (const std::bad_alloc&) {
    return unknown_verdict("it needs more memory than there is");
  }
}

Verification RuleVerifier::decide() {
  condition_ = rule_.condition;
  Judgement first = judge_samples(options_.samples);
  if (first.verdict) return *first.verdict;
  if (!first.counterexample) first = judge_where_right_is_defined();
  std::optional<Verification> unless_excluded;
  if (first.counterexample) {
    Verification v = prove_conditionally(*first.counterexample);
    if (v.verdict == Verdict::Proved || !is_undefined_over_nothing(*first.counterexample)) return v;
    unless_excluded = std::move(v);
    condition_ = rule_.condition;
  }
  if (auto verdict = judge_left_side(task_, condition_, samples_)) return *verdict;
  if (auto verdict = require_what_is_missing()) return *verdict;
  if (!condition_.is_true())
    if (auto verdict = judge_condition(task_, condition_, samples_)) return *verdict;
  if (!(rule_.condition == condition_)) {
    Judgement second = judge_samples(options_.samples);
    if (second.verdict) return *second.verdict;
    if (second.counterexample) return prove_conditionally(*second.counterexample);
    condition_ = in_plainer_words(task_, condition_);
  }
  return prove_outputs(unless_excluded);
}

Verification RuleVerifier::decide_partial() {
  condition_ = rule_.condition;
  for (size_t o = 0; o < task_.left.outputs.size(); o++)
    if (const auto example = differs_in_region(o))
      return refuted_verdict("the sides differ inside the region", *example);
  if (auto verdict = require_what_is_missing()) return *verdict;
  if (auto verdict = judge_condition(task_, condition_, samples_)) return *verdict;
  for (size_t o = 0; o < task_.left.outputs.size(); o++) {
    const std::vector<Box> whole{Box()};
    for (const Box& box : rule_.regions[o].empty() ? whole : rule_.regions[o])
      if (!outputs_.prove_box(o, condition_, box,
                              condition_ == rule_.condition ? Substitution{} : solve_equations(condition_)))
        return unknown_verdict("output " + std::to_string(o) + ": no proof was found on " +
                               (box.empty() ? "all of it" : to_string(box)));
  }
  if (outputs_.left_demands_more())
    return unknown_verdict("the left side alone divides, or applies a partial function");
  return proved_under(task_, condition_);
}

std::optional<Counterexample> RuleVerifier::differs_in_region(size_t output) const {
  const std::vector<Box>& boxes = rule_.regions[output];
  const auto samples = sample_region(rule_, task_.left, task_.right, output, {{0, 5}, {}},
                                     solver_.limits().rule.region_samples, options_.seed + 7);
  for (const RegionSample& sample : samples) {
    const bool agrees =
        boxes.empty() ? agrees_on(Box(), sample)
                      : std::all_of(boxes.begin(), boxes.end(), [&](const Box& box) { return agrees_on(box, sample); });
    if (!agrees) return example_of(sample, output);
  }
  return std::nullopt;
}

// Small numbers do not wrap around: where the sides differ at them, they do.
Verification RuleVerifier::judge_integers() {
  condition_ = rule_.condition;
  if (!rule_.is_partial())
    if (const Judgement samples = judge_samples(options_.samples); samples.counterexample)
      return refuted_verdict("the sides differ", samples.counterexample);
  return unknown_verdict(
      "it computes with integers, which wrap around at their width; the proof is over unbounded numbers");
}

RuleVerifier::Judgement RuleVerifier::judge_samples(int count) {
  samples_ = sample_rule(rule_, task_.left, task_.right, condition_, count, options_.seed);
  if (samples_.difference) return {std::nullopt, samples_.difference};
  if (samples_.has_elements && !samples_.left_is_finite_somewhere && samples_.never_finite)
    return {refuted_verdict("the left side has no finite value", samples_.never_finite), std::nullopt};
  return {};
}

// Where the right side needs more than the left, few of the left side's samples look at both; these all do, so that
// what is false is seen to be before the solver is asked.
RuleVerifier::Judgement RuleVerifier::judge_where_right_is_defined() {
  if (options_.samples == 0 || 2 * samples_.both_valid > samples_.left_valid) return {};
  Cond both = condition_;
  for (const Requirement& r : task_.right.requirements) both = both && r.cond;
  for (size_t o = 0; o < task_.left.outputs.size(); o++)
    for (size_t axis = 0; axis < task_.left.outputs[o].shape.size(); axis++)
      both = both && equal(task_.left.outputs[o].shape[axis], task_.right.outputs[o].shape[axis]);
  return {std::nullopt, sample_rule(rule_, task_.left, task_.right, both, options_.samples, options_.seed).difference};
}

std::optional<Verification> RuleVerifier::require_what_is_missing() {
  RequiredCondition required = verifier::require_what_is_missing(task_, condition_, samples_);
  condition_ = std::move(required.condition);
  return required.verdict;
}

Verification RuleVerifier::prove_outputs(const std::optional<Verification>& unless_excluded) {
  const Cond given = condition_;
  int added = 0;
  for (size_t o = 0; o < task_.left.outputs.size();) {
    outputs_.forget_missing();
    if (outputs_.prove(o, condition_)) {
      o++;
      continue;
    }
    if (outputs_.missing() && added++ < solver_.limits().rule.added_conditions) {
      condition_ = condition_ && *outputs_.missing();
      continue;
    }
    if (unless_excluded) return *unless_excluded;
    return without_a_proof(o);
  }
  if (unless_excluded && condition_ == rule_.condition) return *unless_excluded;
  // Where the left side alone has no value, only samples tell what arithmetic makes of it.
  if (outputs_.left_demands_more() && options_.samples == 0)
    return unknown_verdict("the left side alone divides, or applies a partial function; samples would tell more");
  if (outputs_.left_demands_more() || unless_excluded || !(given == condition_)) {
    const Judgement last =
        judge_samples(outputs_.left_demands_more() ? solver_.limits().rule.more_samples_of_partial * options_.samples
                                                   : options_.samples);
    if (last.verdict) return *last.verdict;
    if (last.counterexample) return prove_conditionally(*last.counterexample);
  }
  return proved_under(task_, condition_);
}

Verification RuleVerifier::without_a_proof(size_t output) {
  const std::string reason =
      outputs_.reason().empty() ? "output " + std::to_string(output) + ": no proof was found" : outputs_.reason();
  if (options_.samples == 0) return unknown_verdict(reason);
  // Rare sizes may stand in the way, which the first samples have missed.
  samples_ = sample_rule(rule_, task_.left, task_.right, condition_,
                         solver_.limits().rule.more_samples_of_unproved * options_.samples, options_.seed + 2);
  if (samples_.difference) return prove_conditionally(*samples_.difference);
  const auto far = sample_far(rule_, task_.left, task_.right, condition_, solver_.recent_models(),
                              solver_.limits().rule.far_samples, options_.seed + 3, outputs_.left_alone_is_partial());
  return far ? prove_conditionally(*far) : unknown_verdict(reason);
}

Verification RuleVerifier::prove_conditionally(Counterexample counterexample) {
  std::vector<SizeRow> wrong{failing_row(rule_, counterexample)};
  bool holds_elsewhere = false;
  std::string reason = "the sides differ";
  for (int round = 0; round < solver_.limits().rule.rounds_of_conditions; round++) {
    auto derived = derive_condition(rule_, task_.left, task_.right, wrong, options_.seed, &holds_elsewhere);
    if (!derived) {
      if (holds_elsewhere)
        reason += "; at other sizes no difference was seen, and no condition of the language says at which they agree";
      break;
    }
    condition_ = rule_.condition && derived->condition();
    Judgement judgement = judge_samples(options_.samples);
    if (judgement.verdict) break;
    if (judgement.counterexample) {
      wrong.push_back(failing_row(rule_, *judgement.counterexample));
      continue;
    }
    if (const std::string where = to_string(derived->condition()); !holds_under(*derived)) {
      reason += "; no proof was found where " + where + ", as small sizes suggest";
      break;
    }
    condition_ = rule_.condition && derived->condition();
    if (outputs_.left_demands_more() &&
        judge_samples(solver_.limits().rule.more_samples_of_partial * options_.samples).counterexample)
      break;
    return proved_under(task_, condition_);
  }
  return refuted_verdict(reason, counterexample);
}

// Whether the rule is proved where the clauses hold. Of the cases of empty tensors those are kept that are proved, too.
bool RuleVerifier::holds_under(DerivedCondition& derived) {
  std::vector<Index> divisors;
  collect_divisors(derived.condition(), divisors);
  solver_.set_topic("the condition is defined");
  for (const Index& divisor : divisors)
    if (!solver_.entails(task_.context(rule_.condition), at_least(divisor, Index(1)))) return false;
  for (const Cond& part : derived.cases)
    if (!holds_in(part)) return false;
  Cond defined;
  for (const Requirement& r : task_.right.requirements) defined = defined && r.cond;
  std::vector<Cond> proved_empty;
  for (const Cond& part : derived.empty) {
    if (holds_in(part))
      proved_empty.push_back(part);
    else if (holds_in(part && defined))
      proved_empty.push_back(part && defined);
  }
  derived.empty = std::move(proved_empty);
  return true;
}

bool RuleVerifier::holds_in(const Cond& part) {
  const Cond assumed = task_.context(rule_.condition && part);
  for (const Requirement& r : task_.left.requirements) {
    solver_.set_topic("the broadcast is one: " + r.what);
    if (r.from_broadcast && !solver_.entails(variable_domain(rule_) && rule_.condition && part, r.cond)) return false;
  }
  for (const Requirement& r : task_.right.requirements) {
    solver_.set_topic("the right side is defined: " + r.what);
    if (!solver_.entails(assumed, r.cond)) return false;
  }
  for (size_t o = 0; o < task_.left.outputs.size(); o++) {
    for (size_t axis = 0; axis < task_.left.outputs[o].shape.size(); axis++) {
      solver_.set_topic("shapes of output " + std::to_string(o) + " agree on axis " + std::to_string(axis));
      if (!solver_.entails(assumed, equal(task_.left.outputs[o].shape[axis], task_.right.outputs[o].shape[axis])))
        return false;
    }
    if (!outputs_.prove(o, rule_.condition && part)) return false;
  }
  return true;
}

}  // namespace gopt::verifier
