#include "verdict_line.h"

#include <nlohmann/json.hpp>

namespace gopt::cli {
namespace {

std::optional<Verdict> verdict_from(const std::string& text) {
  for (Verdict verdict : {Verdict::Proved, Verdict::Refuted, Verdict::Unknown})
    if (to_string(verdict) == text) return verdict;
  return std::nullopt;
}

// A proof adds a condition, types and marks to the candidate and changes nothing else.
bool is_proof_of(const RewriteRule& rule, const std::string& candidate) {
  if (!rule.proof || rule.proof->definitions != definitions_hash(rule) || rule.proof->rule != rule.content_hash())
    return false;
  RewriteRule bare = rule;
  bare.condition = Cond();
  bare.marks = {};
  bare.real_types.clear();
  return bare.content_hash() == candidate;
}

// The sizes that the counterexample has below zero, at zero or above. Trials draw pads and the like from zero up, so a
// candidate may hold for those alone.
Cond without_negative_sizes(const Counterexample& counterexample) {
  Cond condition;
  for (const auto& [name, value] : counterexample.sizes)
    if (value < 0) condition = condition && at_least(symbol(name), Index(0));
  return condition;
}

}  // namespace

KnownVerdict verdict_on(const RewriteRule& candidate) {
  RewriteRule proved = candidate;
  Verification v = prove_rule(proved);
  double milliseconds = v.milliseconds;
  for (RewriteRule narrowed = candidate; v.verdict == Verdict::Refuted && v.counterexample;) {
    const Cond more = without_negative_sizes(*v.counterexample);
    if (more.is_true()) break;
    narrowed.condition = narrowed.condition && more;
    proved = narrowed;
    Verification again = prove_rule(proved);
    milliseconds += again.milliseconds;
    if (again.verdict == Verdict::Unknown) break;
    v = std::move(again);
  }
  KnownVerdict known{candidate.content_hash(),
                     v.verdict,
                     v.reason,
                     v.counterexample ? to_string(*v.counterexample) : "",
                     {},
                     milliseconds};
  if (v.verdict == Verdict::Proved) known.rule = std::move(proved);
  return known;
}

std::string to_line(const KnownVerdict& known) {
  return nlohmann::json{{"candidate", known.candidate},
                        {"verdict", to_string(known.verdict)},
                        {"reason", known.reason},
                        {"counterexample", known.counterexample},
                        {"milliseconds", known.milliseconds},
                        {"rule", known.rule ? print_rule(*known.rule) : ""}}
      .dump();
}

std::optional<KnownVerdict> parse_verdict_line(const std::string& line, const std::string& where) {
  const auto row = nlohmann::json::parse(line, nullptr, false);
  if (!row.is_object()) return std::nullopt;
  try {
    const auto verdict = verdict_from(row.at("verdict").get<std::string>());
    KnownVerdict known{row.at("candidate").get<std::string>(),
                       verdict.value_or(Verdict::Unknown),
                       row.at("reason").get<std::string>(),
                       row.at("counterexample").get<std::string>(),
                       {},
                       row.at("milliseconds").get<double>()};
    if (!verdict) return std::nullopt;
    if (*verdict != Verdict::Proved) return known;
    auto rules = parse_rules(row.at("rule").get<std::string>(), where);
    if (!rules.ok() || rules->size() != 1 || !is_proof_of(rules->front(), known.candidate)) return std::nullopt;
    known.rule = std::move(rules->front());
    return known;
  } catch (const nlohmann::json::exception&) {  // a member is missing or of another type
    return std::nullopt;
  }
}

}  // namespace gopt::cli
