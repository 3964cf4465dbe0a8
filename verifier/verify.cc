#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <memory>

#include "demands.h"
#include "gopt/verifier.h"
#include "match.h"
#include "normalize.h"
#include "sampling.h"
#include "simplify.h"

namespace gopt {

std::string to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::Proved: return "proved";
    case Verdict::Refuted: return "refuted";
    case Verdict::Unknown: return "unknown";
  }
  return "";
}

namespace {

Verification unknown(const std::string& reason) {
  Verification v;
  v.reason = reason;
  return v;
}
Verification refuted(const std::string& reason, const std::optional<Counterexample>& counterexample) {
  Verification v;
  v.verdict = Verdict::Refuted;
  v.reason = reason;
  v.counterexample = counterexample;
  return v;
}

// One way to write the subscripts of an output: plain symbols, or an axis of extent a*b as q*b + r.
struct Position {
  std::vector<Index> subscripts;
  Cond range;
};

// The factors of an extent that is a product, by name; a number comes first.
std::vector<Index> factors_of(const Index& extent) {
  if (extent.constant() != 0 || extent.terms().size() != 1 || extent.terms()[0].coefficient < 1) return {};
  const Index::Term& monomial = extent.terms()[0];
  std::vector<Index> factors;
  if (monomial.coefficient > 1) factors.emplace_back(monomial.coefficient);
  for (AtomId id : sorted_by_name(monomial.atoms)) factors.push_back(Index::from_atom(id));
  return factors.size() >= 2 ? factors : std::vector<Index>{};
}

// `choice` says which factor of a product axis is the inner one; -1: no axis is split.
Position position_of(const Shape& shape, size_t output, int choice) {
  Position p;
  for (size_t axis = 0; axis < shape.size(); axis++) {
    const std::string name = "%o" + std::to_string(output) + "_" + std::to_string(axis);
    const Index& extent = shape[axis];
    const std::vector<Index> factors = factors_of(extent);
    if (factors.empty() || choice < 0) {
      p.subscripts.push_back(symbol(name));
      p.range = p.range && within(p.subscripts.back(), Index(0), extent);
      continue;
    }
    const size_t chosen = static_cast<size_t>(choice) % factors.size();
    const Index& inner = factors[chosen];
    Index outer(1);
    for (size_t k = 0; k < factors.size(); k++)
      if (k != chosen) outer = outer * factors[k];
    const Index q = symbol(name + "q"), r = symbol(name + "r");
    p.subscripts.push_back(q * inner + r);
    p.range = p.range && within(q, Index(0), outer) && within(r, Index(0), inner);
  }
  return p;
}
int factor_choices(const Shape& shape) {
  size_t choices = 0;
  for (const Index& extent : shape) choices = std::max(choices, factors_of(extent).size());
  return static_cast<int>(choices);
}

bool is_over(const Cond& cond, const std::set<AtomId>& symbols) {
  std::set<AtomId> used;
  collect_symbols(cond, used);
  return std::includes(symbols.begin(), symbols.end(), used.begin(), used.end());
}

// Names made by the proof (of positions and of binders) are no plain names, so that no symbol of a rule is one of them.
bool is_plain_name(const std::string& name) {
  return std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; });
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

// The verification of a rule without a prefix.
class RuleVerifier {
 public:
  RuleVerifier(const RewriteRule& rule, const VerifyOptions& options)
      : rule_(rule),
        options_(options),
        solver_({options.rlimit, options.keep_obligations, options.keep_log ? &log_ : nullptr}) {
    if (options.keep_log) log_.begin(rule.name);
  }

  Verification run() {
    if (Status status = check_rule(rule_); !status) return unknown(status.error().message);
    for (AtomId id : rule_symbols(rule_))
      if (!is_plain_name(atom(id).name)) return unknown("the symbol " + quoted(atom(id).name) + " is no plain name");
    auto left = meaning_of(rule_.left), right = meaning_of(rule_.right);
    if (!left || !right) return unknown((left ? right : left).error().message);
    left_ = *std::move(left);
    right_ = *std::move(right);
    for (const RuleVariable& v : rule_.variables) is_integral_ = is_integral_ && !is_floating(v.type.element);
    if (computes_with_integers(rule_.left) || computes_with_integers(rule_.right))
      return unknown(
          "it computes with integers, which wrap around at their width; the proof is over unbounded numbers");
    try {
      return decide();
    } catch (const ProofLimit& e) {
      return unknown(e.what());
    } catch (const std::overflow_error& e) {
      return unknown(e.what());
    }
  }

  const Solver& solver() const { return solver_; }
  const ProofLog& log() const { return log_; }

 private:
  Verification decide() {
    condition_ = rule_.condition;
    std::optional<Verification> unless_excluded;
    if (auto verdict = judge_samples(options_.samples)) {
      if (!is_undefined_over_nothing(*verdict)) return *verdict;
      unless_excluded = verdict;
    }
    if (auto verdict = judge_where_right_is_defined(options_.samples); verdict && !is_undefined_over_nothing(*verdict))
      return *verdict;
    solver_.set_topic("the left side is defined somewhere");
    if (samples_.left_valid == 0 && !solver_.is_satisfiable(context()))
      return refuted("the left side is never defined", std::nullopt);
    const Cond given = condition_;
    if (auto verdict = require_defined()) return *verdict;
    if (auto verdict = require_shapes()) return *verdict;
    if (!(given == condition_)) {
      if (!solver_.is_satisfiable(context() && interior()))
        return refuted("the right side is undefined, or of another shape, wherever the left side has elements",
                       samples_.right_undefined);
      if (auto verdict = judge_samples(options_.samples)) return *verdict;
    }
    const Cond sampled = unless_excluded ? given : condition_;
    for (size_t o = 0; o < left_.outputs.size(); o++) {
      if (prove_output(o)) continue;
      return unless_excluded
                 ? *unless_excluded
                 : unknown(reason_.empty() ? "output " + std::to_string(o) + ": no proof was found" : reason_);
    }
    if (unless_excluded && given == condition_) return *unless_excluded;
    // Where the left side alone has no value, only samples tell what arithmetic makes of it.
    constexpr int kMoreSamples = 5;
    const int samples = left_demands_more_ ? kMoreSamples * options_.samples : options_.samples;
    if (left_demands_more_ || !(sampled == condition_))
      if (auto verdict = judge_samples(samples)) return *verdict;
    return proved();
  }

  // Whether only one side has a value, at a size of 0: what it divides by, say, the other side divides by nowhere
  // there. A condition on sizes may exclude that.
  static bool is_undefined_over_nothing(const Verification& v) {
    const auto& c = v.counterexample;
    return c && std::isfinite(c->left) != std::isfinite(c->right) &&
           std::any_of(c->sizes.begin(), c->sizes.end(), [](const auto& size) { return size.second == 0; });
  }

  Verification proved() {
    Verification v;
    v.verdict = Verdict::Proved;
    v.condition = condition_;
    if (options_.keep_log) log_requirements();
    v.marks = observed_marks(rule_, left_, right_, condition_, options_.seed + 1);
    return v;
  }

  void log_requirements() {
    for (const Requirement& r : right_.requirements) log_.required(r.what, context(), r.cond);
    for (size_t o = 0; o < left_.outputs.size(); o++)
      for (size_t axis = 0; axis < left_.outputs[o].shape.size(); axis++)
        log_.required("shapes agree", context(), equal(left_.outputs[o].shape[axis], right_.outputs[o].shape[axis]));
  }

  // What the left side and the condition let us assume.
  Cond context() const {
    Cond all = variable_domain(rule_) && condition_;
    for (const Requirement& r : left_.requirements) all = all && r.cond;
    return all;
  }
  // No variable is empty: a condition that leaves only empty tensors is none.
  Cond interior() const {
    Cond all;
    for (const RuleVariable& v : rule_.variables)
      for (const Index& extent : *v.type.shape) all = all && at_least(extent, Index(1));
    return all;
  }

  std::optional<Verification> judge_samples(int count) {
    samples_ = sample_rule(rule_, left_, right_, condition_, count, options_.seed);
    if (samples_.difference) return refuted("the sides differ", samples_.difference);
    if (samples_.has_elements && !samples_.left_is_finite_somewhere && samples_.never_finite)
      return refuted("the left side has no finite value", samples_.never_finite);
    return std::nullopt;
  }

  // Where the right side needs more than the left, few of the left side's samples look at both; these all do, so that
  // what is false is seen to be before the solver is asked.
  std::optional<Verification> judge_where_right_is_defined(int count) {
    if (count == 0 || 2 * samples_.both_valid > samples_.left_valid) return std::nullopt;
    Cond both = condition_;
    for (const Requirement& r : right_.requirements) both = both && r.cond;
    for (size_t o = 0; o < left_.outputs.size(); o++)
      for (size_t axis = 0; axis < left_.outputs[o].shape.size(); axis++)
        both = both && equal(left_.outputs[o].shape[axis], right_.outputs[o].shape[axis]);
    const SamplingResult found = sample_rule(rule_, left_, right_, both, count, options_.seed);
    if (found.difference) return refuted("the sides differ", found.difference);
    return std::nullopt;
  }

  // What the right side needs and the left does not give becomes the condition.
  std::optional<Verification> require_defined() {
    for (const Requirement& r : left_.requirements)
      if (r.from_broadcast && !solver_.entails(variable_domain(rule_) && condition_, r.cond))
        condition_ = condition_ && r.cond;
    for (const Requirement& r : right_.requirements) {
      solver_.set_topic("the right side is defined: " + r.what);
      if (auto verdict = require(r.cond, r.what)) return verdict;
    }
    return std::nullopt;
  }
  std::optional<Verification> require_shapes() {
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
  std::optional<Verification> require(const Cond& cond, const std::string& what) {
    if (solver_.entails(context(), cond)) return std::nullopt;
    if (cond.is_false()) return refuted(what + ": never", samples_.right_undefined);
    const std::vector<AtomId> symbols = rule_symbols(rule_);
    if (!is_over(cond, {symbols.begin(), symbols.end()}))
      return unknown(what + ": " + to_string(cond) + " cannot be a condition");
    condition_ = condition_ && cond;
    return std::nullopt;
  }

  // Both sides of an output, its subscripts written in one way.
  struct Attempt {
    Cond given;
    std::unique_ptr<ProofState> state;
    Expr left_value, right_value;
    NormalForm left, right;
    size_t divisions = 0;
  };

  Attempt attempt(size_t output, int choice) {
    const Position position = position_of(left_.outputs[output].shape, output, choice);
    Attempt a{context() && position.range,
              nullptr,
              left_.outputs[output].at(position.subscripts),
              right_.outputs[output].at(position.subscripts),
              {},
              {}};
    a.state = std::make_unique<ProofState>(
        ProofState{solver_, {}, {}, is_integral_, false, options_.keep_log ? &log_ : nullptr});
    a.left = normalize(a.left_value, a.given, *a.state);
    a.state->domains.start_right_side();
    a.right = normalize(a.right_value, a.given, *a.state);
    a.divisions = count_divisions(a.left) + count_divisions(a.right);
    return a;
  }

  enum class Outcome { Equal, Open, ConditionAdded };
  Outcome conclude(size_t output, Attempt& a) {
    const Cond before = condition_;
    if (!meets_demands(*a.state)) return before == condition_ ? Outcome::Open : Outcome::ConditionAdded;
    a.state->sides_are_defined = true;
    if (!are_equal(a.left, a.right, a.given, *a.state)) return Outcome::Open;
    left_demands_more_ = left_demands_more_ || left_demands_more(*a.state);
    if (options_.keep_log) log_.output(output, a.given, a.left_value, a.left, a.right_value, a.right);
    return Outcome::Equal;
  }

  bool prove_output(size_t output) {
    solver_.set_topic("output " + std::to_string(output) + " is equal");
    std::vector<Attempt> later;
    Outcome outcome = Outcome::Open;
    for (int choice = factor_choices(left_.outputs[output].shape) - 1; choice >= -1 && outcome == Outcome::Open;
         choice--) {
      Attempt a = attempt(output, choice);
      if (a.divisions == 0) {
        outcome = conclude(output, a);
      } else {
        later.push_back(std::move(a));
      }
    }
    // The fewer divisions are left, the more is understood.
    std::stable_sort(later.begin(), later.end(),
                     [](const Attempt& a, const Attempt& b) { return a.divisions < b.divisions; });
    for (size_t k = 0; k < later.size() && outcome == Outcome::Open; k++) outcome = conclude(output, later[k]);
    return outcome == Outcome::ConditionAdded ? prove_output(output) : outcome == Outcome::Equal;
  }

  // Whether the sides apply partial functions to the same values (demands.h). Where that is so under a condition on the
  // rule's symbols, the condition is added.
  bool meets_demands(ProofState& state) {
    const auto unmet = find_unmet_demand(state);
    if (!unmet) return true;
    const std::vector<AtomId> symbols = rule_symbols(rule_);
    const Cond extended = condition_ && unmet->missing;
    const bool is_condition = !unmet->missing.is_false() && is_over(unmet->missing, {symbols.begin(), symbols.end()}) &&
                              solver_.is_satisfiable(context() && interior() && unmet->missing);
    if (is_condition) {
      condition_ = extended;
    } else {
      reason_ = unmet->what;
    }
    return false;
  }

  const RewriteRule& rule_;
  VerifyOptions options_;
  ProofLog log_;
  Solver solver_;
  SideMeaning left_, right_;
  bool is_integral_ = true;
  Cond condition_;
  bool left_demands_more_ = false;
  SamplingResult samples_;
  std::string reason_;
};

void attach_proof(Verification& v, const std::vector<const Solver*>& solvers) {
  std::string digests;
  ProofRecord record{definitions_hash(), 0, Solver::version(), "", ""};
  for (const Solver* s : solvers) {
    record.obligations += s->obligations();
    v.questions += s->questions();
    digests += s->digest();
    v.obligations.insert(v.obligations.end(), s->kept().begin(), s->kept().end());
  }
  record.digest = solvers.size() == 1 ? digests : to_string(hash_bytes(digests)).substr(0, 16);
  if (v.verdict == Verdict::Proved) v.proof = record;
}

Verification verify_plain(const RewriteRule& rule, const VerifyOptions& options) {
  RuleVerifier verifier(rule, options);
  Verification v = verifier.run();
  attach_proof(v, {&verifier.solver()});
  if (v.proof) v.log = verifier.log().text();
  return v;
}

// Operators that are pointwise in leading axes: what holds under none and under one holds under any number, since
// several leading axes are one, numbered row by row (docs/verifier.md).
Verification verify_prefixed(const RewriteRule& rule, const VerifyOptions& options) {
  const auto none = with_prefix(rule, {}), one = with_prefix(rule, {symbol("prefix")});
  if (!none || !one) return unknown((none ? one : none).error().message);
  RuleVerifier first(*none, options), second(*one, options);
  Verification v = first.run();
  if (v.verdict != Verdict::Proved) return v;
  Verification w = second.run();
  if (w.verdict != Verdict::Proved) {
    w.reason = "under a prefix: " + w.reason;
    return w;
  }
  std::set<AtomId> symbols;
  collect_symbols(w.condition, symbols);
  if (symbols.count(symbol_atom("prefix")))
    return unknown("the condition under a prefix speaks of the prefix: " + to_string(w.condition));
  v.condition = v.condition && w.condition;
  v.marks = {v.marks.finite_only || w.marks.finite_only, v.marks.reassociates || w.marks.reassociates,
             v.marks.changes_rounding || w.marks.changes_rounding};
  attach_proof(v, {&first.solver(), &second.solver()});
  v.log = first.log().text() + second.log().text();
  return v;
}

bool has_prefix(const RewriteRule& rule) {
  return std::any_of(rule.variables.begin(), rule.variables.end(), [](const RuleVariable& v) { return v.has_prefix; });
}

}  // namespace

Verification verify_rule(const RewriteRule& candidate, const VerifyOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Verification v = has_prefix(candidate) ? verify_prefixed(candidate, options) : verify_plain(candidate, options);
  if (v.proof) {
    RewriteRule proved = candidate;
    proved.condition = v.condition;
    proved.marks = v.marks;
    v.proof->rule = proved.content_hash();
  }
  v.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return v;
}

std::optional<Counterexample> find_counterexample(const RewriteRule& candidate, int samples, uint64_t seed) {
  const auto rule = with_prefix(candidate, {});
  if (!rule) return std::nullopt;
  const auto left = meaning_of(rule->left), right = meaning_of(rule->right);
  if (!left || !right) return std::nullopt;
  return sample_rule(*rule, *left, *right, rule->condition, samples, seed).difference;
}

Verification prove_rule(RewriteRule& rule, const VerifyOptions& options) {
  Verification v = verify_rule(rule, options);
  rule.proof = v.proof;
  if (v.verdict == Verdict::Proved) {
    rule.condition = v.condition;
    rule.marks = v.marks;
  }
  return v;
}

std::vector<Verification> prove_rules(std::vector<RewriteRule>& rules, const VerifyOptions& options,
                                      const std::function<void(const RewriteRule&, const Verification&)>& progress) {
  std::vector<Verification> results;
  for (RewriteRule& rule : rules) {
    Verification v = prove_rule(rule, options);
    if (progress) progress(rule, v);
    results.push_back(std::move(v));
  }
  return results;
}

std::string to_string(const Counterexample& c) {
  std::string text;
  for (const auto& [name, size] : c.sizes) text += (text.empty() ? "" : " ") + name + "=" + std::to_string(size);
  for (const auto& [name, tensor] : c.inputs) {
    text += (text.empty() ? "" : " ") + name + "=";
    text += tensor.count() <= 16 ? to_string(AttributeValue(tensor)) : to_string(tensor.tensor_type());
  }
  if (!c.what.empty()) text += ": " + c.what;
  if (c.position.empty() && !c.what.empty() && c.left == 0 && c.right == 0) return text;
  text += " at output " + std::to_string(c.output) + "[";
  for (size_t k = 0; k < c.position.size(); k++) text += (k ? "," : "") + std::to_string(c.position[k]);
  char values[80];
  snprintf(values, sizeof values, "]: %.9g against %.9g", c.left, c.right);
  return text + values;
}

}  // namespace gopt
