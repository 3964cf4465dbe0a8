#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <stdexcept>

#include "conditions/broadcast.h"
#include "gopt/verifier.h"
#include "normal_form/normal_form.h"
#include "rule_verifier.h"
#include "samples/compiled_side.h"
#include "verify_scheme.h"

namespace gopt::verifier {

void attach_proof(Verification& v, const std::vector<const Solver*>& solvers) {
  std::string digests;
  ProofRecord record{"", 0, Solver::version(), "", ""};
  for (const Solver* s : solvers) {
    record.obligations += s->obligations();
    v.questions += s->questions();
    digests += s->digest();
    v.obligations.insert(v.obligations.end(), s->kept().begin(), s->kept().end());
  }
  record.digest = solvers.size() == 1 ? digests : to_string(hash_bytes(digests)).substr(0, 16);
  if (v.verdict == Verdict::Proved) v.proof = record;
}

namespace {

// Marks that only the other has come with their examples.
void add_marks(Verification& v, const Verification& other) {
  for (const MarkExample& shown : other.mark_examples)
    if (!(v.marks.*(shown.mark->flag))) v.mark_examples.push_back(shown);
  v.marks = v.marks | other.marks;
}

}  // namespace

void add_proof(Verification& v, const Verification& other) {
  add_marks(v, other);
  v.proof->obligations += other.proof->obligations;
  v.proof->digest = to_string(hash_bytes(v.proof->digest + other.proof->digest)).substr(0, 16);
  v.obligations.insert(v.obligations.end(), other.obligations.begin(), other.obligations.end());
  v.log += other.log;
}

namespace {

Verification verify_plain(const RewriteRule& rule, const VerifyOptions& options) {
  RuleVerifier verifier(rule, options);
  Verification v = verifier.run();
  attach_proof(v, {&verifier.solver()});
  if (v.proof) v.log = verifier.log().text();
  return v;
}

// What a proof adds to a rule, but for the record.
void take_findings(RewriteRule& rule, const Verification& v) {
  rule.condition = v.condition;
  rule.marks = v.marks;
  rule.real_types = v.real_types;
}

Cond any_but(const std::vector<Cond>& cases, size_t left_out) {
  Cond any = Cond::never();
  for (size_t i = 0; i < cases.size(); i++)
    if (i != left_out) any = any || cases[i];
  return any;
}

// The case without choices ("or") that the others make superfluous.
Cond shortened(const Cond& own, const Cond& others, const Cond& given, Solver& solver) {
  std::vector<Cond> parts = conjuncts(own);
  for (size_t i = 0; i < parts.size(); i++) {
    if (parts[i].kind() != CondKind::Or) continue;
    Cond rest = given, kept = Cond::never();
    for (size_t j = 0; j < parts.size(); j++)
      if (j != i) rest = rest && parts[j];
    for (const Cond& choice : parts[i].parts())
      if (!solver.entails(rest && choice, others)) kept = kept || choice;
    parts[i] = kept;
  }
  Cond r;
  for (const Cond& part : parts) r = r && part;
  return r;
}

// The rule is proved where extents that its left side broadcasts are equal; it may hold with 1 in their place, too.
void add_broadcast_cases(const RewriteRule& rule, const VerifyOptions& options, Verification& v) {
  Solver solver({options.rlimit, false, nullptr});
  std::vector<Cond> cases{v.condition};
  std::vector<Verification> others;
  for (const BroadcastCase& c : broadcast_cases(rule, v.condition)) {
    Verification own = verify_plain(c.rule, options);
    v.questions += own.questions;
    if (own.verdict != Verdict::Proved) continue;
    if (options.keep_log) own.log = log_case("one", c.ones) + own.log;
    cases.push_back(c.where && own.condition);
    others.push_back(std::move(own));
  }
  if (others.empty()) return;
  for (size_t i = cases.size(); i-- > 1;)
    if (solver.entails(variable_domain(rule) && cases[i], any_but(cases, i)))
      cases.erase(cases.begin() + static_cast<ptrdiff_t>(i));
  for (size_t i = 0; i < cases.size(); i++)
    cases[i] = shortened(cases[i], any_but(cases, i), variable_domain(rule), solver);
  const Cond condition = any_but(cases, cases.size());
  // What the rule says already stays as it is said.
  const bool says_it = solver.entails(variable_domain(rule) && rule.condition, condition);
  v.condition = says_it ? rule.condition : condition;
  v.conditions = conjuncts(v.condition);
  for (const Verification& own : others) add_proof(v, own);
}

Verification verify_with_broadcasts(const RewriteRule& rule, const VerifyOptions& options) {
  Verification v = verify_plain(rule, options);
  if (v.verdict == Verdict::Proved && options.keep_log) v.log = log_case("plain", {}) + v.log;
  if (v.verdict != Verdict::Proved || rule.is_partial()) return v;
  try {
    add_broadcast_cases(rule, options, v);
  } catch (const std::overflow_error&) {
    // What was proved stands without them.
  }
  return v;
}

// Both conditions, without what the first says already.
Cond joined(const Cond& first, const Cond& second, const Cond& given, const VerifyOptions& options) {
  Solver solver({options.rlimit, false, nullptr});
  Cond all = first;
  try {
    for (const Cond& part : conjuncts(second))
      if (!solver.entails(given && all, part)) all = all && part;
  } catch (const std::overflow_error&) {
    return first && second;
  }
  return all;
}

// A condition that implies this one and does not speak of the prefix: alternatives that do are given up (that there are
// no leading elements at all, say, where nothing is left to be shown). Nothing where a part has no other.
std::optional<Cond> without_prefix(const Cond& condition) {
  const auto speaks_of_prefix = [](const Cond& part) {
    std::set<AtomId> symbols;
    collect_symbols(part, symbols);
    return symbols.count(symbol_atom("prefix")) > 0;
  };
  Cond all;
  for (const Cond& part : conjuncts(condition)) {
    if (!speaks_of_prefix(part)) {
      all = all && part;
      continue;
    }
    if (part.kind() != CondKind::Or) return std::nullopt;
    Cond rest = Cond::never();
    for (const Cond& alternative : part.parts())
      if (!speaks_of_prefix(alternative)) rest = rest || alternative;
    if (rest.is_false()) return std::nullopt;
    all = all && rest;
  }
  return all;
}

// Operators that are pointwise in leading axes: what holds under none and under one holds under any number, since
// several leading axes are one, numbered row by row (docs/verifier.md).
Verification verify_prefixed(const RewriteRule& rule, const VerifyOptions& options) {
  const std::vector<AtomId> symbols = rule_symbols(rule);
  if (std::find(symbols.begin(), symbols.end(), symbol_atom("prefix")) != symbols.end())
    return unknown_verdict("the symbol prefix is that of its leading axes; give it another name");
  const auto none = with_prefix(rule, {}), one = with_prefix(rule, {symbol("prefix")});
  if (!none || !one) return unknown_verdict((none ? one : none).error().message);
  RuleVerifier first(*none, options), second(*one, options);
  Verification v = first.run();
  if (v.verdict != Verdict::Proved) return v;
  Verification w = second.run();
  if (w.verdict != Verdict::Proved) {
    w.reason = "under a prefix: " + w.reason;
    return w;
  }
  const auto condition = without_prefix(w.condition);
  if (!condition)
    return unknown_verdict("the condition under a prefix speaks of the prefix: " + to_string(w.condition));
  v.condition = joined(v.condition, *condition, variable_domain(*none), options);
  v.conditions = conjuncts(v.condition);
  add_marks(v, w);
  attach_proof(v, {&first.solver(), &second.solver()});
  if (options.keep_log)
    v.log =
        log_case("prefix", {}) + first.log().text() + log_case("prefix", {symbol_atom("prefix")}) + second.log().text();
  return v;
}

bool has_prefix(const RewriteRule& rule) {
  return std::any_of(rule.variables.begin(), rule.variables.end(), [](const RuleVariable& v) { return v.has_prefix; });
}

Verification verify_once(const RewriteRule& rule, const VerifyOptions& options) {
  return has_prefix(rule) ? verify_prefixed(rule, options) : verify_with_broadcasts(rule, options);
}

// A proof that found a condition on its way is not the one that whoever reads the rule with its condition will make.
// The record is of that one. Where no proof is found of the rule as it is stated, the first stands.
Verification verify_as_stated(const RewriteRule& candidate, const VerifyOptions& options) {
  Verification v = verify_once(candidate, options);
  if (v.verdict != Verdict::Proved || v.condition == candidate.condition) return v;
  RewriteRule stated = candidate;
  stated.condition = v.condition;
  const auto read = parse_rules(print_rule(stated), stated.name);
  if (!read) return v;
  stated.condition = read->front().condition;
  Verification again = verify_once(stated, options);
  again.questions += v.questions;
  const bool is_same = again.verdict == Verdict::Proved && again.condition == stated.condition;
  return is_same || again.verdict == Verdict::Refuted ? again : v;
}

bool speaks_of_reals(const RewriteRule& rule) {
  return std::any_of(rule.left.nodes().begin(), rule.left.nodes().end(), [](const NodePtr& node) {
    const bool is_leaf = node->is(OpKind::Input) || node->is(OpKind::Constant);
    return is_leaf && node->outputs.front().element == ElementType::Float32;
  });
}

// Whether both sides compute, element by element, what they do in the other type, so that one proof is the other's.
bool means_the_same(const RewriteRule& rule, const RewriteRule& other) {
  for (Graph RewriteRule::*side : {&RewriteRule::left, &RewriteRule::right}) {
    const auto a = meaning_of(rule.*side), b = meaning_of(other.*side);
    if (!a || !b || a->outputs.size() != b->outputs.size() || a->requirements.size() != b->requirements.size())
      return false;
    for (size_t r = 0; r < a->requirements.size(); r++)
      if (!(a->requirements[r].cond == b->requirements[r].cond)) return false;
    for (size_t o = 0; o < a->outputs.size(); o++) {
      if (a->outputs[o].shape != b->outputs[o].shape) return false;
      const std::vector<Index> at = output_subscripts(o, a->outputs[o].shape.size());
      if (!(a->outputs[o].at(at) == b->outputs[o].at(at))) return false;
    }
  }
  return true;
}

// Whether the rule, proved for one type, holds for the other under the same condition.
bool holds_in_type(const RewriteRule& rule, const RewriteRule& proved, ElementType real, const VerifyOptions& options,
                   Verification& v) {
  const auto stated = with_real_type(rule, real);
  if (!stated) return false;
  if (means_the_same(proved, *stated)) return true;
  RewriteRule other = *stated;
  other.condition = v.condition;
  const Verification own = verify_once(other, options);
  v.questions += own.questions;
  if (own.verdict != Verdict::Proved || !(own.condition == v.condition)) return false;
  add_proof(v, own);
  return true;
}

}  // namespace

ElementType first_real_type(const RewriteRule& rule) {
  return gopt::holds_for(rule, ElementType::Float32) ? ElementType::Float32 : rule.real_types.front();
}

void find_real_types(const RewriteRule& rule, const VerifyOptions& options, Verification& v) {
  const ElementType first = first_real_type(rule);
  const auto proved = with_real_type(rule, first);
  for (ElementType real : all_real_types())
    if (real == first || (gopt::holds_for(rule, real) && holds_in_type(rule, *proved, real, options, v)))
      v.real_types.push_back(real);
  if (v.real_types.size() == all_real_types().size()) v.real_types.clear();
}

namespace {

// The rule for the first of its types, f32 where that is one; then which others it holds for. A conversion to single
// precision rounds doubles, and does nothing to halves.
Verification verify_in_its_types(const RewriteRule& rule, const VerifyOptions& options) {
  if (!speaks_of_reals(rule)) return verify_as_stated(rule, options);
  const auto stated = with_real_type(rule, first_real_type(rule));
  if (!stated) return unknown_verdict(stated.error().message);
  Verification v = verify_as_stated(*stated, options);
  if (v.verdict == Verdict::Proved) find_real_types(rule, options, v);
  return v;
}

}  // namespace

}  // namespace gopt::verifier

namespace gopt {

using namespace verifier;

Verification verify_rule(const RewriteRule& candidate, const VerifyOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Verification v = candidate.scheme ? verify_scheme(candidate, options) : verify_in_its_types(candidate, options);
  if (v.proof) {
    // What was seen once, with other inputs, stays seen.
    for (const MarkInfo& mark : all_marks())
      if (!mark.is_safe && candidate.marks.*(mark.flag)) v.marks.*(mark.flag) = true;
    RewriteRule proved = candidate;
    take_findings(proved, v);
    v.proof->definitions = definitions_hash(proved);
    v.proof->rule = proved.content_hash();
    proved.proof = v.proof;
    if (options.keep_log) v.log = log_header(proved) + v.log;
  }
  v.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return v;
}

std::optional<Counterexample> find_counterexample(const RewriteRule& candidate, int samples, uint64_t seed) {
  if (candidate.scheme) {
    const auto found = sample_scheme(candidate, samples, seed);
    return found ? std::optional(found->counterexample) : std::nullopt;
  }
  const auto rule = with_prefix(candidate, {});
  if (!rule) return std::nullopt;
  const auto left = meaning_of(rule->left), right = meaning_of(rule->right);
  if (!left || !right) return std::nullopt;
  return sample_rule(*rule, *left, *right, rule->condition, samples, seed).difference;
}

Verification prove_rule(RewriteRule& rule, const VerifyOptions& options) {
  Verification v = verify_rule(rule, options);
  rule.proof = v.proof;
  if (v.verdict == Verdict::Proved) take_findings(rule, v);
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

}  // namespace gopt
