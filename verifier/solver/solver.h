// Questions that the proof asks, in integers and reals, answered by Z3 (solver.cc is the only file that includes it). A
// question is an implication that must hold for all integer values of its symbols; "no" may also mean that the limit
// was reached. Limits are resource counts, so that answers are the same on every machine. Answered questions are kept
// as SMT-LIB text and digest.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gopt/index.h"
#include "gopt/verifier.h"
#include "linear_question.h"
#include "normal_form/rational.h"
#include "proof_limits.h"
#include "proof_log.h"

namespace gopt::verifier {

// A real number made of variables by the operations that stay piecewise polynomial.
struct RealExpr;
using RealExprPtr = std::shared_ptr<const RealExpr>;
struct RealExpr {
  enum class Kind { Constant, Variable, Add, Multiply, Maximum, IsLess, IsEqual, Guarded } kind;
  Rational constant;               // Constant
  std::string variable;            // Variable
  std::vector<RealExprPtr> parts;  // the others; Guarded: parts[0] where cond holds, else 0
  Cond cond;
};

// Of real numbers: how the value compares with 0.
struct RealFact {
  enum class Relation { Zero, NotZero, Positive, NotNegative };
  RealExprPtr value;
  Relation relation;
};

struct SolverOptions {
  unsigned rlimit = 20'000'000;
  bool keep_obligations = false;
  ProofLog* log = nullptr;  // where settled questions are written, if anywhere
  ProofLimits limits{};
};

class Solver {
 public:
  explicit Solver(const SolverOptions& options);
  ~Solver();
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  // What the questions asked next are about, for the obligations' names.
  void set_topic(std::string topic) { topic_ = std::move(topic); }

  // Guesses of how a proof may go on are worth less: each question gets a share of the limit only.
  void set_share(unsigned share) { share_ = share; }
  unsigned share() const { return share_; }
  const ProofLimits& limits() const { return options_.limits; }

  // Counts what is done without a question, a unit for about a microsecond, towards the units that a proof may take in
  // all, so that forms which grow without end are given up, too. Throws BudgetExceeded, as all questions do.
  void work(uint64_t units);

  // Whether `context` implies `goal`.
  bool entails(const Cond& context, const Cond& goal);
  bool is_infeasible(const Cond& context) { return entails(context, Cond::never()); }
  // Whether the counts sum to 0 wherever `context` holds.
  bool sums_to_zero(const Cond& context, const std::vector<GuardedCount>& counts);
  // Whether the real is 0 for all values of its variables that satisfy the facts, wherever `context` holds.
  // Precondition: no maxima or comparisons in the facts.
  bool is_zero(const Cond& context, const RealExprPtr& value, const std::vector<RealFact>& facts = {});
  // Whether no values of the variables, which are real numbers, satisfy all facts. Precondition: no guards.
  bool is_impossible(const std::vector<RealFact>& facts);
  // Whether some values satisfy the condition (true only when such values are at hand).
  bool is_satisfiable(const Cond& cond);

  // Values of symbols that satisfied contexts of the questions asked last: where a proof failed, it may fail there.
  std::vector<Environment> recent_models() const;

  int obligations() const { return obligation_count_; }
  int questions() const;  // asked of Z3, whatever the answer
  const std::vector<Obligation>& kept() const { return kept_; }
  std::string digest() const;
  static std::string version();  // "z3 4.8.12"

 private:
  struct State;
  void record(const Cond& context, const std::string& negated_goal, const std::string& declarations);
  State& state();
  std::unique_ptr<State>
      state_;  // made by the first question: Z3 takes milliseconds to start, most false rules ask none
  SolverOptions options_;
  std::string topic_;
  int obligation_count_ = 0;
  unsigned share_ = 1;  // 1/share_ of the limit
  std::vector<Obligation> kept_;
  std::string digest_state_;
};

}  // namespace gopt::verifier
