#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <stdexcept>

#include "broadcast.h"
#include "gopt/verifier.h"
#include "normal_form.h"
#include "rule_verifier.h"
#include "verify_scheme.h"

namespace gopt {

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

namespace {

RuleMarks united(const RuleMarks& a, const RuleMarks& b) {
  return {a.finite_only || b.finite_only, a.reassociates || b.reassociates, a.changes_rounding || b.changes_rounding};
}

}  // namespace

void add_proof(Verification& v, const Verification& other) {
  v.marks = united(v.marks, other.marks);
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
  v.marks = united(v.marks, w.marks);
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
  Verification v = candidate.scheme        ? verify_scheme(candidate, options)
                   : has_prefix(candidate) ? verify_prefixed(candidate, options)
                                           : verify_with_broadcasts(candidate, options);
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

}  // namespace gopt
