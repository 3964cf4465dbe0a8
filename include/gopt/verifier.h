// Proves rewrite rules from the operators' definitions, for every tensor size (docs/verifier.md). Verdicts depend on
// the rule alone: limits are Z3's rlimit, not seconds.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gopt/rule.h"

namespace gopt {

enum class Verdict { Proved, Refuted, Unknown };
std::string to_string(Verdict verdict);

struct Counterexample {
  std::map<std::string, int64_t> sizes;  // symbol name to value
  std::map<std::string, Tensor> inputs;  // by variable
  int output = 0;                        // output that differs
  std::vector<int64_t> position;         // where
  double left = 0, right = 0;            // the interpreter's values there
  std::string what;                      // for shape or validity differences, in words
};

// Why a rule has a mark: sizes and inputs on which its sides differ, run in that type (docs/floats.md).
struct MarkExample {
  const MarkInfo* mark = nullptr;
  ElementType type = ElementType::Float32;
  Counterexample example;  // `what` says what the exact value is
};
std::string to_string(const MarkExample& example);

struct Obligation {
  std::string what;    // "equal class 2 of output 0"
  std::string smtlib;  // the query, unsatisfiable when it holds
};

struct VerifyOptions {
  unsigned rlimit = 20'000'000;  // Z3 resource units a query
  int samples = 60;              // random size assignments tried before proving
  int mark_samples = 120;        // inputs drawn for each type to see what floats make of a proved rule
  uint64_t seed = 1;
  bool keep_obligations = false;
  bool keep_log = false;  // of the proof's steps, for check_proof_log() (proof_check.h)
};

struct Verification {
  Verdict verdict = Verdict::Unknown;
  Cond condition;                // Proved: under which (at least the rule's own)
  std::vector<Cond> conditions;  // its clauses, for printing: all must hold
  // Observed on the proved rule, by running it; and those that are not safe and that the rule states.
  RuleMarks marks;
  std::vector<MarkExample> mark_examples;        // one for each mark that is not safe
  std::vector<ElementType> real_types;           // Proved: what f32 may stand for; empty: every type
  std::optional<ProofRecord> proof;              // Proved
  std::optional<Counterexample> counterexample;  // Refuted
  std::string reason;                            // Unknown, Refuted
  std::vector<Obligation> obligations;           // where kept
  int questions = 0;                             // asked of the solver; none where samples refute
  std::string log;                               // Proved, where kept
  double milliseconds = 0;                       // for reports; never in a record
};

Verification verify_rule(const RewriteRule& candidate, const VerifyOptions& options = {});

// Verifies the rule and writes into it what was found: the proof, the condition under which it holds and its marks. A
// rule that is not proved loses its proof.
Verification prove_rule(RewriteRule& rule, const VerifyOptions& options = {});

// The most general forms of the rule that are proved: numbers in attributes and extents become symbols, linked where
// they depend on each other, scalar constants become variables, and leading axes are left open, one form for each set
// of variables that may have them (docs/verifier.md). A rule that is not proved comes back alone, without a proof.
std::vector<RewriteRule> generalise(const RewriteRule& rule, const VerifyOptions& options = {});

// Where two sides that are not equal agree: for each output boxes on which they are proved equal.
struct PartialVerification {
  RewriteRule rule;           // with regions, condition, marks and proof
  Verification verification;  // of that
  // Every place at which the sides agreed on all samples lies in a box: then no larger region holds at those sizes.
  bool is_exact = false;
};
// Derives and proves the region of a rule that does not hold everywhere (docs/verifier.md). Errors: no region was
// found, or none was proved; the sides agree everywhere, or have different shapes.
Result<PartialVerification> prove_partial(const RewriteRule& candidate, const VerifyOptions& options = {});

// Random testing alone: a counterexample that the interpreter confirms, if one is found.
std::optional<Counterexample> find_counterexample(const RewriteRule& candidate, int samples, uint64_t seed);

// The partial rule as a full one: the right side on its region, and on the rest the left side, computed from the parts
// of the inputs that the rest reads, all put together by Concat. A guess until prove_rule() says so: it carries no
// proof, and what the pieces need of sizes becomes its condition there. Errors: the rule has no region; how to cut
// depends on the sizes.
Result<RewriteRule> corrected(const RewriteRule& partial);

// A rule that holds everywhere, proved.
struct FullRule {
  RewriteRule rule;
  bool is_whole = false;  // the candidate held as it stands; else it is corrected
};
// Of a candidate as it stands, else of the region on which it is found to hold, corrected; one that says its regions is
// taken at its word, since what comes of wrong ones is not proved. Errors: what could not be found, made or proved.
Result<FullRule> prove_full(const RewriteRule& candidate);

// prove_rule() of each rule in order. `progress` is called after each.
std::vector<Verification> prove_rules(
    std::vector<RewriteRule>& rules, const VerifyOptions& options = {},
    const std::function<void(const RewriteRule&, const Verification&)>& progress = {});

// The rule with one small change of its right side (an operator, an attribute, an input), for audits; most such rules
// are wrong. Nothing where the change that the seed picks cannot be made.
std::optional<RewriteRule> mutate_right_side(const RewriteRule& rule, uint64_t seed);

// A full rule made of a partial one in a wrong way, for audits: by a region with a bound that is moved, or with a side
// that reaches to the end of the output, so that a piece of the rest is left out; or with one change of what is made.
// A region that became smaller still gives a true rule.
std::optional<RewriteRule> mutate_correction(const RewriteRule& partial, uint64_t seed);

// Sizes, inputs and the two values in one line, for reports.
std::string to_string(const Counterexample& counterexample);

}  // namespace gopt
