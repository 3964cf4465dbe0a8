#include "gopt/confirm_rule.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <exception>

#include "gopt/verifier.h"

namespace gopt {
namespace {

// Z3 takes Ctrl-C for itself while it is asked something, and gives up: the rule would be called unknown. It waits.
class InterruptWaits {
 public:
  InterruptWaits() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, &before_);
  }
  ~InterruptWaits() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  InterruptWaits(const InterruptWaits&) = delete;
  InterruptWaits& operator=(const InterruptWaits&) = delete;

 private:
  sigset_t before_;
};

// Whether it was said of the rule what keeps it from being applied unasked.
bool is_within(const RuleMarks& own, const RuleMarks& stated) { return may_apply(own, stated); }

// Whether the rule says that it is for no other types than those it was proved for.
bool is_within(const std::vector<ElementType>& stated, const std::vector<ElementType>& own) {
  if (own.empty()) return true;
  return !stated.empty() && std::all_of(stated.begin(), stated.end(), [&](ElementType type) {
    return std::find(own.begin(), own.end(), type) != own.end();
  });
}

std::string why_not_proved(const Verification& v) {
  const std::string verdict = v.verdict == Verdict::Refuted ? "it is false" : "it is not proved here";
  return verdict + ": " + v.reason + (v.counterexample ? ": " + to_string(*v.counterexample) : "");
}

std::string text_without_proof(RewriteRule rule) {
  rule.origin.clear();
  rule.proof.reset();
  return print_rule(rule);
}

}  // namespace

Confirmation confirm_rule(const RewriteRule& rule) {
  Verification v;
  try {
    const InterruptWaits waits;
    v = verify_rule(rule);
  } catch (const std::exception& e) {
    return {std::nullopt, std::string("an internal error, which is a bug: ") + e.what()};
  }
  if (v.verdict != Verdict::Proved) return {std::nullopt, why_not_proved(v)};
  if (!(v.condition == rule.condition))
    return {std::nullopt, "it is proved only when " + to_string(v.condition) + ", and does not say so"};
  if (!is_within(v.marks, rule.marks)) return {std::nullopt, "it lacks marks that its proof gives"};
  if (!is_within(rule.real_types, v.real_types))
    return {std::nullopt, "it is not proved for every element type that it is said to hold for"};
  return {v.proof, ""};
}

bool record_differs(const RewriteRule& rule, const ProofRecord& own) {
  return rule.proof && rule.proof->solver == own.solver &&
         (rule.proof->obligations != own.obligations || rule.proof->digest != own.digest);
}

const Confirmation& RuleConfirmer::confirm(const RewriteRule& rule) {
  const auto [entry, is_new] = known_.try_emplace(text_without_proof(rule));
  if (is_new) entry->second = confirm_rule(rule);
  return entry->second;
}

}  // namespace gopt
