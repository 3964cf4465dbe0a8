#include "rule_verifier.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <memory>
#include <new>
#include <stdexcept>

#include "equality/demands.h"
#include "equality/gathered_indices.h"
#include "equality/match.h"
#include "normal_form/normal_form.h"
#include "normal_form/normalize.h"
#include "normal_form/simplify.h"
#include "output_position.h"
#include "regions/region_search.h"
#include "samples/float_marks.h"
#include "solve_equations.h"

namespace gopt::verifier {
namespace {

bool is_over(const Cond& cond, const std::set<AtomId>& symbols) {
  std::set<AtomId> used;
  collect_symbols(cond, used);
  return std::includes(symbols.begin(), symbols.end(), used.begin(), used.end());
}

// Names made by the proof (of positions and of binders) are no plain names, so that no symbol of a rule is one of them.
bool is_plain_name(const std::string& name) {
  return std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; });
}

// Whether only one side has a value, at a size of 0: what it divides by, say, the other side divides by nowhere there.
// A condition on sizes may exclude that.
bool is_undefined_over_nothing(const Counterexample& c) {
  return std::isfinite(c.left) != std::isfinite(c.right) &&
         std::any_of(c.sizes.begin(), c.sizes.end(), [](const auto& size) { return size.second == 0; });
}

// Whether a node other than one that moves elements or reads shapes has an integer input.
bool computes_with_integers(const Graph& graph) {
  for (const NodePtr& node : graph.nodes()) {
    const OpInfo& info = op_info(node->op);
    if (info.has(kDataMovement) || info.has(kShapeOnly) || node->is(OpKind::Identity)) continue;
    for (const Value& v : node->inputs)
      if (v && is_integer(v.type().element)) return true;
  }
  return false;
}

SizeRow failing_row(const RewriteRule& rule, const Counterexample& counterexample) {
  SizeRow row{{}, false, true};
  for (AtomId symbol : rule_symbols(rule)) row.sizes[symbol] = counterexample.sizes.at(atom(symbol).name);
  return row;
}

// What divides inside: a condition means something only where all of it is positive. Divisors of divisors come first.
void collect_divisors(const Index& index, std::vector<Index>& out) {
  for (const Index::Term& term : index.terms()) {
    for (AtomId id : term.atoms) {
      const Atom& a = atom(id);
      if (a.kind != AtomKind::FloorDiv) continue;
      collect_divisors(a.denominator, out);
      out.push_back(a.denominator);
      collect_divisors(a.numerator, out);
    }
  }
}
void collect_divisors(const Cond& cond, std::vector<Index>& out) {
  collect_divisors(cond.index(), out);
  for (const Cond& part : cond.parts()) collect_divisors(part, out);
}
void collect_divisors(const Expr& e, std::vector<Index>& out) {
  collect_divisors(e->index, out);
  collect_divisors(e->cond, out);
  for (const Index& s : e->subscripts) collect_divisors(s, out);
  for (const Binder& b : e->binders) collect_divisors(b.extent, out);
  for (const Expr& a : e->args) collect_divisors(a, out);
}

// How many sizes a product of the condition has at most.
size_t degree(const Cond& cond) {
  size_t most = 0;
  for (const Index::Term& term : cond.index().terms()) most = std::max(most, term.atoms.size());
  for (const Cond& part : cond.parts()) most = std::max(most, degree(part));
  return most;
}

// Whether nothing that divides becomes 0, which would have no meaning.
bool can_substitute(const std::vector<Index>& divisors, const Substitution& substitution) {
  return std::none_of(divisors.begin(), divisors.end(),
                      [&](const Index& d) { return substitute(d, substitution) == Index(0); });
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

Cond without_nested_divisions(const Cond& cond, const Cond& given, Solver& solver) {
  if (cond.kind() == CondKind::NonNegative)
    return at_least(without_nested_divisions(cond.index(), given, solver), Index(0));
  if (cond.kind() != CondKind::And) return cond;
  Cond all;
  for (const Cond& part : cond.parts()) all = all && without_nested_divisions(part, given, solver);
  return all;
}

// Equalities are one part, not two comparisons.
std::vector<Cond> parts_of(const Cond& condition) {
  std::vector<Cond> literals = conjuncts(condition), parts;
  for (size_t i = 0; i < literals.size(); i++) {
    Cond part = literals[i];
    for (size_t j = i + 1; j < literals.size() && part.kind() == CondKind::NonNegative; j++) {
      if (literals[j].kind() != CondKind::NonNegative || literals[j].index() != -part.index()) continue;
      part = part && literals[j];
      literals.erase(literals.begin() + static_cast<ptrdiff_t>(j));
    }
    parts.push_back(part);
  }
  return parts;
}

constexpr unsigned kShareOfSizes = 64;  // of the limit, for whether any sizes satisfy a condition
constexpr int kTimes = 5;               // as many samples where the proof leaves a part to them

}  // namespace

// Both sides of an output, its subscripts written in one way.
struct RuleVerifier::Attempt {
  ProofLog::Place place;
  Cond given;
  std::unique_ptr<ProofState> state;
  Expr left_value, right_value;
  NormalForm left, right;
  size_t divisions = 0;
};

Verification unknown_verdict(const std::string& reason) {
  Verification v;
  v.reason = reason;
  return v;
}
Verification refuted_verdict(const std::string& reason, const std::optional<Counterexample>& counterexample) {
  Verification v;
  v.verdict = Verdict::Refuted;
  v.reason = reason;
  v.counterexample = counterexample;
  return v;
}

// Samples evaluate whole tensors, which takes minutes where numbers in the rule make one huge at any sizes. Returns
// what to say then, or nothing.
std::string too_large_for_samples(const RewriteRule& rule) {
  constexpr int64_t kMostElements = int64_t{1} << 20;
  Environment least;
  for (AtomId id : rule_symbols(rule)) least[id] = 1;
  for (const Graph* side : {&rule.left, &rule.right}) {
    for (const NodePtr& node : side->nodes()) {
      for (const TensorType& type : node->outputs) {
        int64_t count = 1;
        for (const Index& extent : *type.shape) {
          const auto value = evaluate(extent, least);
          if (!value || *value <= 0) break;
          if (*value > kMostElements / count)
            return (node->is(OpKind::Input) ? "the variable " + quoted(node->name)
                                            : "what " + op_info(node->op).name + " gives") +
                   " has more than the " + std::to_string(kMostElements) +
                   " elements that samples evaluate; with symbols for its sizes the rule says more";
          count *= *value;
        }
      }
    }
  }
  return "";
}

RuleVerifier::RuleVerifier(const RewriteRule& rule, const VerifyOptions& options)
    : rule_(rule),
      options_(options),
      solver_({options.rlimit, options.keep_obligations, options.keep_log ? &log_ : nullptr}) {
  if (options.keep_log) log_.begin(rule.name);
}

Verification RuleVerifier::run() {
  if (Status status = check_rule(rule_); !status) return unknown_verdict(status.error().message);
  for (AtomId id : rule_symbols(rule_))
    if (!is_plain_name(atom(id).name))
      return unknown_verdict("the symbol " + quoted(atom(id).name) + " is no plain name");
  if (const std::string why = too_large_for_samples(rule_); !why.empty()) return unknown_verdict(why);
  if (const std::string indices = gathered_on_right_alone(rule_); !indices.empty())
    return unknown_verdict("the right side may gather at elements of " + quoted(indices) +
                           " at which the left side does not, and which may lie outside");
  auto left = meaning_of(rule_.left), right = meaning_of(rule_.right);
  if (!left || !right) return unknown_verdict((left ? right : left).error().message);
  left_ = *std::move(left);
  right_ = *std::move(right);
  for (size_t i = 0; i < rule_.variables.size(); i++) {
    is_integral_ = is_integral_ && !is_floating(rule_.variables[i].type.element);
    if (rule_.variables[i].type.element == ElementType::Bool) booleans_.insert(static_cast<int>(i));
  }
  if (options_.keep_log)
    for (int input : booleans_) log_.boolean(input);
  try {
    if (computes_with_integers(rule_.left) || computes_with_integers(rule_.right)) return judge_integers();
    return rule_.is_partial() ? decide_partial() : decide();
  } catch (const ProofLimit& e) {
    return unknown_verdict(e.what());
  } catch (const std::overflow_error& e) {
    return unknown_verdict(e.what());
  } catch (const std::bad_alloc&) {
    return unknown_verdict("it needs more memory than there is");
  }
}

// A rule that never applies is refuted; but extents that are broadcast are taken to be equal here, and one of them may
// be 1.
Verification RuleVerifier::never_applies(const std::string& why, const std::optional<Counterexample>& example) {
  for (const SideMeaning* side : {&left_, &right_})
    for (const Requirement& r : side->requirements)
      if (r.from_broadcast && !solver_.entails(variable_domain(rule_) && rule_.condition, r.cond))
        return unknown_verdict(why + ", where extents that are broadcast are equal; for one that is 1, write 1");
  return refuted_verdict(why, example);
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
  if (auto verdict = judge_left_side()) return *verdict;
  if (auto verdict = require_what_is_missing()) return *verdict;
  if (!condition_.is_true())
    if (auto verdict = judge_condition()) return *verdict;
  if (!(rule_.condition == condition_)) {
    Judgement second = judge_samples(options_.samples);
    if (second.verdict) return *second.verdict;
    if (second.counterexample) return prove_conditionally(*second.counterexample);
    prefer_plain_condition();
  }
  return prove_outputs(unless_excluded);
}

Verification RuleVerifier::decide_partial() {
  constexpr size_t kSamples = 20;
  condition_ = rule_.condition;
  for (size_t o = 0; o < left_.outputs.size(); o++) {
    for (const RegionSample& sample : sample_region(rule_, left_, right_, o, 0, 5, kSamples, options_.seed + 7)) {
      const auto outside = std::find_if(rule_.regions[o].begin(), rule_.regions[o].end(),
                                        [&](const Box& box) { return !agrees_on(box, sample); });
      if (!rule_.regions[o].empty() && outside == rule_.regions[o].end()) continue;
      if (rule_.regions[o].empty() && agrees_on(Box(), sample)) continue;
      return refuted_verdict("the sides differ inside the region", example_of(sample, o));
    }
  }
  if (auto verdict = require_what_is_missing()) return *verdict;
  if (auto verdict = judge_condition()) return *verdict;
  for (size_t o = 0; o < left_.outputs.size(); o++) {
    const std::vector<Box> whole{Box()};
    for (const Box& box : rule_.regions[o].empty() ? whole : rule_.regions[o])
      if (!prove_box(o, condition_, box, condition_ == rule_.condition ? Substitution{} : solve_equations(condition_)))
        return unknown_verdict("output " + std::to_string(o) + ": no proof was found on " +
                               (box.empty() ? "all of it" : to_string(box)));
  }
  if (left_demands_more_) return unknown_verdict("the left side alone divides, or applies a partial function");
  return proved();
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
  samples_ = sample_rule(rule_, left_, right_, condition_, count, options_.seed);
  if (samples_.difference) return {std::nullopt, samples_.difference};
  if (samples_.has_elements && !samples_.left_is_finite_somewhere && samples_.never_finite)
    return {refuted_verdict("the left side has no finite value", samples_.never_finite), std::nullopt};
  return {};
}

// Of a rule whose left side no sample was found for: that it never applies is said where it is shown.
std::optional<Verification> RuleVerifier::judge_left_side() {
  if (samples_.left_valid > 0) return std::nullopt;
  solver_.set_topic("the left side is defined somewhere");
  solver_.set_share(kShareOfSizes);
  const bool is_defined = solver_.is_satisfiable(context(condition_));
  const bool is_never = !is_defined && solver_.is_infeasible(context(condition_));
  const std::string why = is_never ? why_never_defined() : "";
  solver_.set_share(1);
  if (is_defined) return std::nullopt;
  if (is_never) return never_applies("the left side is never defined: " + why, std::nullopt);
  return unknown_verdict("no sizes were found that satisfy the condition and what the left side requires");
}

// The first requirement of the left side that the condition and those before it leave no sizes for.
std::string RuleVerifier::why_never_defined() {
  Cond all = variable_domain(rule_) && condition_;
  if (solver_.is_infeasible(all)) return "no sizes satisfy the condition";
  for (const Requirement& r : left_.requirements) {
    all = all && r.cond;
    if (solver_.is_infeasible(all)) return "it requires that " + r.what;
  }
  return "no sizes satisfy what it requires";
}

// A rule that says nothing but of empty tensors is refuted, where that is shown. One whose own condition makes a
// variable empty may have outputs that are not: a product over nothing is 0.
std::optional<Verification> RuleVerifier::judge_condition() {
  const bool is_its_own = rule_.condition == condition_;
  solver_.set_topic("some tensors have elements");
  solver_.set_share(kShareOfSizes);
  bool is_met = solver_.is_satisfiable(context(condition_) && interior());
  Cond wanted = interior();
  if (!is_met && (is_its_own || solver_.is_infeasible(context(rule_.condition) && interior()))) {
    wanted = some_output_has_elements();
    is_met = solver_.is_satisfiable(context(condition_) && wanted);
  }
  const bool is_never = !is_met && solver_.is_infeasible(context(condition_) && wanted);
  solver_.set_share(1);
  if (is_met) return std::nullopt;
  if (!is_never)
    return unknown_verdict("no sizes were found that satisfy the condition and leave tensors with elements");
  if (is_its_own) return refuted_verdict("the condition leaves nothing but empty tensors", samples_.never_finite);
  return never_applies("the right side is undefined, or of another shape, wherever the left side has elements",
                       samples_.right_undefined);
}

// Where the right side needs more than the left, few of the left side's samples look at both; these all do, so that
// what is false is seen to be before the solver is asked.
RuleVerifier::Judgement RuleVerifier::judge_where_right_is_defined() {
  if (options_.samples == 0 || 2 * samples_.both_valid > samples_.left_valid) return {};
  Cond both = condition_;
  for (const Requirement& r : right_.requirements) both = both && r.cond;
  for (size_t o = 0; o < left_.outputs.size(); o++)
    for (size_t axis = 0; axis < left_.outputs[o].shape.size(); axis++)
      both = both && equal(left_.outputs[o].shape[axis], right_.outputs[o].shape[axis]);
  return {std::nullopt, sample_rule(rule_, left_, right_, both, options_.samples, options_.seed).difference};
}

// Requirements that round say what an atom of the language may say more plainly: (a+b)//2 == a is a == b or
// a == b + 1. Taken where the solver agrees that it is the same.
void RuleVerifier::prefer_plain_condition() {
  std::vector<Index> divisors;
  collect_divisors(condition_, divisors);
  if (divisors.empty() || options_.samples == 0) return;
  const auto derived = derive_condition(rule_, left_, right_, {}, options_.seed);
  if (!derived) return;
  const Cond plain = rule_.condition && derived->condition();
  divisors.clear();
  collect_divisors(plain, divisors);
  for (const Index& divisor : divisors)
    if (!divisor.is_constant()) return;
  solver_.set_topic("the condition in plainer words");
  // A product of more sizes is no plainer, and no equation to be solved.
  if (to_string(plain).size() < to_string(condition_).size() && degree(plain) <= degree(condition_) &&
      solver_.entails(context(plain), condition_) && solver_.entails(context(condition_), plain)) {
    // What is required is looked for part by part.
    if (options_.keep_log)
      for (const Cond& part : parts_of(condition_)) log_.entailed("a part of that", context(plain), part);
    condition_ = plain;
  }
}

// What the right side needs and the left does not give becomes the condition.
std::optional<Verification> RuleVerifier::require_what_is_missing() {
  for (const Requirement& r : left_.requirements)
    if (r.from_broadcast && !solver_.entails(variable_domain(rule_) && condition_, r.cond))
      condition_ = condition_ && r.cond;
  for (const Requirement& r : right_.requirements) {
    solver_.set_topic("the right side is defined: " + r.what);
    if (auto verdict = require(r.cond, r.what)) return verdict;
  }
  for (size_t o = 0; o < left_.outputs.size(); o++) {
    for (size_t axis = 0; axis < left_.outputs[o].shape.size(); axis++) {
      const std::string what = "shapes of output " + std::to_string(o) + " agree on axis " + std::to_string(axis);
      solver_.set_topic(what);
      if (auto verdict = require(equal(left_.outputs[o].shape[axis], right_.outputs[o].shape[axis]), what))
        return verdict;
    }
  }
  return std::nullopt;
}

std::optional<Verification> RuleVerifier::require(const Cond& cond, const std::string& what) {
  if (follows(context(condition_), cond)) return std::nullopt;
  if (cond.is_false()) return refuted_verdict(what + ": never", samples_.right_undefined);
  const std::vector<AtomId> symbols = rule_symbols(rule_);
  if (!is_over(cond, {symbols.begin(), symbols.end()}))
    return unknown_verdict(what + ": " + to_string(cond) + " cannot be a condition");
  Cond possible;
  for (const Cond& part : conjuncts(with_products_solved(cond))) {
    Cond any = Cond::never();
    for (const Cond& choice : part.kind() == CondKind::Or ? part.parts() : std::vector<Cond>{part})
      if (part.kind() != CondKind::Or || !solver_.is_infeasible(context(condition_) && choice)) any = any || choice;
    possible = possible && any;
  }
  condition_ = condition_ && possible;
  return std::nullopt;
}

bool RuleVerifier::follows(const Cond& given, const Cond& cond) {
  if (!cond.is_true() && without_nested_divisions(cond, given, solver_).is_true()) {
    if (options_.keep_log) log_.entailed("divisions within divisions are one", given, cond);
    return true;
  }
  return solver_.entails(given, cond);
}

Verification RuleVerifier::prove_outputs(const std::optional<Verification>& unless_excluded) {
  constexpr int kMaxConditions = 8;
  const Cond given = condition_;
  int added = 0;
  for (size_t o = 0; o < left_.outputs.size();) {
    missing_.reset();
    if (prove_output(o, condition_)) {
      o++;
      continue;
    }
    if (missing_ && added++ < kMaxConditions) {
      condition_ = condition_ && *missing_;
      continue;
    }
    if (unless_excluded) return *unless_excluded;
    const std::string reason = reason_.empty() ? "output " + std::to_string(o) + ": no proof was found" : reason_;
    if (options_.samples == 0) return unknown_verdict(reason);
    // Rare sizes may stand in the way, which the first samples have missed.
    constexpr int kMoreSamples = 20;
    samples_ = sample_rule(rule_, left_, right_, condition_, kMoreSamples * options_.samples, options_.seed + 2);
    if (samples_.difference) return prove_conditionally(*samples_.difference);
    constexpr int kFarSamples = 240;
    const auto far = sample_far(rule_, left_, right_, condition_, solver_.recent_models(), kFarSamples,
                                options_.seed + 3, left_alone_is_partial_);
    return far ? prove_conditionally(*far) : unknown_verdict(reason);
  }
  if (unless_excluded && condition_ == rule_.condition) return *unless_excluded;
  // Where the left side alone has no value, only samples tell what arithmetic makes of it.
  if (left_demands_more_ && options_.samples == 0)
    return unknown_verdict("the left side alone divides, or applies a partial function; samples would tell more");
  if (left_demands_more_ || unless_excluded || !(given == condition_)) {
    const Judgement last = judge_samples(left_demands_more_ ? kTimes * options_.samples : options_.samples);
    if (last.verdict) return *last.verdict;
    if (last.counterexample) return prove_conditionally(*last.counterexample);
  }
  return proved();
}

Verification RuleVerifier::prove_conditionally(Counterexample counterexample) {
  constexpr int kRounds = 3;
  std::vector<SizeRow> wrong{failing_row(rule_, counterexample)};
  bool holds_elsewhere = false;
  std::string reason = "the sides differ";
  for (int round = 0; round < kRounds; round++) {
    auto derived = derive_condition(rule_, left_, right_, wrong, options_.seed, &holds_elsewhere);
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
    if (left_demands_more_ && judge_samples(kTimes * options_.samples).counterexample) break;
    return proved();
  }
  return refuted_verdict(reason, counterexample);
}

// Whether the rule is proved where the clauses hold. Of the cases of empty tensors those are kept that are proved, too.
bool RuleVerifier::holds_under(DerivedCondition& derived) {
  std::vector<Index> divisors;
  collect_divisors(derived.condition(), divisors);
  solver_.set_topic("the condition is defined");
  for (const Index& divisor : divisors)
    if (!solver_.entails(context(rule_.condition), at_least(divisor, Index(1)))) return false;
  for (const Cond& part : derived.cases)
    if (!holds_in(part)) return false;
  Cond defined;
  for (const Requirement& r : right_.requirements) defined = defined && r.cond;
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
  const Cond assumed = context(rule_.condition && part);
  for (const Requirement& r : left_.requirements) {
    solver_.set_topic("the broadcast is one: " + r.what);
    if (r.from_broadcast && !solver_.entails(variable_domain(rule_) && rule_.condition && part, r.cond)) return false;
  }
  for (const Requirement& r : right_.requirements) {
    solver_.set_topic("the right side is defined: " + r.what);
    if (!solver_.entails(assumed, r.cond)) return false;
  }
  for (size_t o = 0; o < left_.outputs.size(); o++) {
    for (size_t axis = 0; axis < left_.outputs[o].shape.size(); axis++) {
      solver_.set_topic("shapes of output " + std::to_string(o) + " agree on axis " + std::to_string(axis));
      if (!solver_.entails(assumed, equal(left_.outputs[o].shape[axis], right_.outputs[o].shape[axis]))) return false;
    }
    if (!prove_output(o, rule_.condition && part)) return false;
  }
  return true;
}

// What the right side requires, and that the outputs' extents are equal.
std::vector<std::pair<std::string, Cond>> RuleVerifier::requirements() const {
  std::vector<std::pair<std::string, Cond>> all;
  for (const Requirement& r : right_.requirements) all.emplace_back(r.what, r.cond);
  for (size_t o = 0; o < left_.outputs.size(); o++)
    for (size_t axis = 0; axis < left_.outputs[o].shape.size(); axis++)
      all.emplace_back("shapes agree", equal(left_.outputs[o].shape[axis], right_.outputs[o].shape[axis]));
  return all;
}

void RuleVerifier::log_requirements() {
  for (const auto& [what, cond] : requirements()) log_.required(what, context(condition_), cond);
}

// They follow from the condition as it came to be stated, which was put together and shortened since they were asked
// for. Nothing rests on it but the record.
void RuleVerifier::state_requirements() {
  constexpr unsigned kShare = 4;
  const Cond given = context(condition_);
  const std::vector<Cond> said = conjuncts(given);
  solver_.set_share(kShare);
  try {
    for (const auto& [what, cond] : requirements()) {
      const std::vector<Cond> parts = conjuncts(cond);
      if (std::all_of(parts.begin(), parts.end(),
                      [&](const Cond& part) { return std::find(said.begin(), said.end(), part) != said.end(); }))
        continue;
      solver_.set_topic("under the condition as it is stated: " + what);
      follows(given, cond);
    }
  } catch (const std::overflow_error&) {
    // The record says less; the proof stands.
  }
  solver_.set_share(1);
}

// Without parts that follow from the others and from what is given wherever the rule may be applied, longest first.
// What the rule itself states stays as it is written.
Cond RuleVerifier::without_implied_parts(const Cond& condition) {
  constexpr unsigned kShare = 16;
  Cond given = variable_domain(rule_) && rule_.condition;
  for (const Requirement& r : left_.requirements)
    if (!r.from_broadcast) given = given && r.cond;
  std::vector<Cond> parts = parts_of(condition);
  const std::vector<Cond> own = parts_of(rule_.condition);
  std::erase_if(parts, [&](const Cond& part) { return std::find(own.begin(), own.end(), part) != own.end(); });
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Cond& a, const Cond& b) { return to_string(a).size() > to_string(b).size(); });
  solver_.set_topic("a part of the condition is implied");
  solver_.set_share(kShare);
  for (size_t i = 0; i < parts.size();) {
    Cond others;
    for (size_t j = 0; j < parts.size(); j++)
      if (j != i) others = others && parts[j];
    if (solver_.entails(given && others, parts[i]))
      parts.erase(parts.begin() + static_cast<ptrdiff_t>(i));
    else
      i++;
  }
  solver_.set_share(1);
  Cond r = rule_.condition;
  for (const Cond& part : parts) r = r && part;
  return r;
}

Verification RuleVerifier::proved() {
  if (!(condition_ == rule_.condition)) {
    condition_ = without_implied_parts(condition_);
    state_requirements();
  }
  if (options_.keep_log) log_requirements();
  Verification v;
  v.verdict = Verdict::Proved;
  v.condition = condition_;
  v.conditions = conjuncts(condition_);
  ObservedMarks observed = observed_marks(rule_, left_, right_, condition_, options_.seed + 1);
  // The sides of a partial rule differ by more than rounding.
  if (!rule_.is_partial())
    observe_range(rule_, left_, right_, condition_, options_.mark_samples, options_.seed + 5, observed);
  v.marks = observed.marks;
  v.mark_examples = std::move(observed.examples);
  return v;
}

Cond RuleVerifier::context(const Cond& condition) const {
  Cond all = variable_domain(rule_) && condition;
  for (const Requirement& r : left_.requirements) all = all && r.cond;
  return all;
}

// No variable is empty but by its own numbers: a condition that leaves only empty tensors is none.
Cond RuleVerifier::interior() const {
  Cond all;
  for (const RuleVariable& v : rule_.variables)
    for (const Index& extent : *v.type.shape)
      if (!extent.is_constant()) all = all && at_least(extent, Index(1));
  return all;
}

Cond RuleVerifier::some_output_has_elements() const {
  Cond any = Cond::never();
  for (const TensorExpr& output : left_.outputs) {
    Cond all;
    for (const Index& extent : output.shape) all = all && at_least(extent, Index(1));
    any = any || all;
  }
  return any;
}

bool RuleVerifier::prove_output(size_t output, const Cond& part) {
  // Case by case first: equations are solved, which an "or" does not let them be.
  if (const std::vector<Cond> cases = cases_of_equations(part); cases.size() > 1)
    return std::all_of(cases.begin(), cases.end(), [&](const Cond& c) { return prove_output_in(output, c); }) ||
           prove_output_in(output, part);
  if (prove_output_in(output, part)) return true;
  const std::set<AtomId> extents = extent_symbols(rule_);
  Cond full = part;
  for (AtomId s : extents) full = full && at_least(Index::from_atom(s), Index(1));
  try {
    // Where a direct proof fails with all extents positive, emptiness is not what stands in the way.
    if (!prove_output_in(output, full)) return false;
    return std::all_of(extents.begin(), extents.end(),
                       [&](AtomId s) { return prove_output_in(output, part && equal(Index::from_atom(s), Index(0))); });
  } catch (const ProofLimit&) {
    return false;
  }
}

bool RuleVerifier::prove_output_in(size_t output, const Cond& part) {
  const Substitution solved = solve_equations(part);
  // What the rule itself states is a hypothesis like the left side's; its equations are solved where that is not
  // enough, or at once where fewer divisions are left then.
  if (!(part == rule_.condition)) return prove_box(output, part, {}, solved);
  if (solved.empty()) return prove_box(output, part, {}, {});
  if (divisions_left(output, solved) < divisions_left(output, {}))
    return prove_box(output, part, {}, solved) || prove_box(output, part, {}, {});
  return prove_box(output, part, {}, {}) || prove_box(output, part, {}, solved);
}

// In both sides' expressions, with equations solved.
size_t RuleVerifier::divisions_left(size_t output, const Substitution& solved) const {
  std::vector<Index> subscripts, divisors;
  for (size_t axis = 0; axis < left_.outputs[output].shape.size(); axis++)
    subscripts.push_back(symbol("%o" + std::to_string(output) + "_" + std::to_string(axis)));
  for (const SideMeaning* side : {&left_, &right_})
    collect_divisors(substitute(side->outputs[output].at(subscripts), solved), divisors);
  return divisors.size();
}

// The same for the positions of a box; of all where it has no ranges.
bool RuleVerifier::prove_box(size_t output, const Cond& part, const Box& box, const Substitution& solved) {
  if (!solved.empty()) {
    std::vector<Index> divisors, subscripts;
    collect_divisors(context(part), divisors);
    for (const Index& extent : left_.outputs[output].shape) {
      collect_divisors(extent, divisors);
      subscripts.push_back(symbol("%o" + std::to_string(output) + "_" + std::to_string(subscripts.size())));
    }
    for (const SideMeaning* side : {&left_, &right_}) collect_divisors(side->outputs[output].at(subscripts), divisors);
    if (!can_substitute(divisors, solved)) return prove_box(output, part, box, {});
  }
  solver_.set_topic("output " + std::to_string(output) + " is equal");
  const Cond assumed = substitute(context(part), solved);
  Shape shape = left_.outputs[output].shape;
  for (Index& extent : shape) extent = substitute(extent, solved);
  std::vector<Attempt> later;
  for (int choice = factor_choices(shape) - 1; choice >= -1; choice--) {
    const OutputPosition position = position_of(shape, output, choice);
    if (!are_sizes(position.factors, assumed)) continue;
    Attempt a{{output, position.subscripts, solved}, assumed && position.range, nullptr, {}, {}, {}, {}};
    for (size_t axis = 0; axis < box.size(); axis++)
      a.given = a.given && within(position.subscripts[axis], substitute(box[axis].low, solved),
                                  substitute(box[axis].high, solved));
    if (solver_.is_infeasible(a.given)) {
      if (options_.keep_log) log_.empty(a.place, a.given);
      return true;
    }
    a.state = std::make_unique<ProofState>(
        ProofState{solver_, {}, {}, booleans_, is_integral_, false, options_.keep_log ? &log_ : nullptr, a.given});
    a.left_value = substitute(left_.outputs[output].at(position.subscripts), solved);
    a.right_value = substitute(right_.outputs[output].at(position.subscripts), solved);
    a.left = normalize(a.left_value, a.given, *a.state);
    a.state->domains.start_right_side();
    a.right = normalize(a.right_value, a.given, *a.state);
    a.divisions = count_divisions(a.left) + count_divisions(a.right);
    if (a.divisions > 0) {
      later.push_back(std::move(a));
    } else if (conclude(a, part)) {
      return true;
    }
  }
  // The fewer divisions are left, the more is understood.
  std::stable_sort(later.begin(), later.end(),
                   [](const Attempt& a, const Attempt& b) { return a.divisions < b.divisions; });
  return std::any_of(later.begin(), later.end(), [&](Attempt& a) { return conclude(a, part); });
}

bool RuleVerifier::are_sizes(const std::vector<Index>& factors, const Cond& assumed) {
  const std::vector<Cond> said = conjuncts(assumed);
  return std::all_of(factors.begin(), factors.end(), [&](const Index& factor) {
    const Cond is_size = at_least(factor, Index(0));
    return is_size.is_true() || std::find(said.begin(), said.end(), is_size) != said.end() ||
           solver_.entails(assumed, is_size);
  });
}

bool RuleVerifier::conclude(Attempt& attempt, const Cond& part) {
  if (!meets_demands(*attempt.state, part)) return false;
  attempt.state->sides_are_defined = true;
  if (!are_equal(attempt.left, attempt.right, attempt.given, *attempt.state)) return false;
  left_demands_more_ = left_demands_more_ || left_demands_more(*attempt.state);
  if (options_.keep_log)
    log_.output(attempt.place, attempt.given, attempt.left_value, attempt.left, attempt.right_value, attempt.right);
  return true;
}

// Whether the sides apply partial functions to the same values (demands.h). Where that is so under a condition on the
// rule's symbols, the condition is kept.
bool RuleVerifier::meets_demands(ProofState& state, const Cond& part) {
  const auto unmet = find_unmet_demand(state);
  if (!unmet) return true;
  const std::vector<AtomId> symbols = rule_symbols(rule_);
  const bool is_condition = !unmet->missing.is_false() && is_over(unmet->missing, {symbols.begin(), symbols.end()}) &&
                            solver_.is_satisfiable(context(part) && interior() && unmet->missing);
  if (is_condition) {
    missing_ = unmet->missing;
  } else {
    reason_ = unmet->what;
    left_alone_is_partial_ = unmet->is_of_left;
  }
  return false;
}

}  // namespace gopt::verifier
