// How far a proof goes before it is given up. One value for a whole proof, so that a verdict depends on the rule and on
// these numbers alone; those here are what the shipped rules were proved with, and a test may take others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace gopt::verifier {

// Of a solver; units are Z3's, of about a microsecond.
struct SolverLimits {
  // Units that questions of one proof may take together. The dearest proof of the corpus took 460,000 before they were
  // weighed, those of the database 51,000; one that comes here would only be slow to fail.
  uint64_t units_in_all = 3'000'000;
  uint64_t nonlinear_weight = 4;  // a unit of non-linear arithmetic takes Z3 far longer than another
  uint64_t linear_cost = 50;      // units that a question settled without Z3 counts as
  // Shares of the limit that one question gets, by how it is asked. The dearest that the corpus needs takes 159,000
  // units.
  unsigned linear_share = 8, nonlinear_share = 100, afresh_share = 16, cell_share = 32;
  size_t products = 400;  // of two hypotheses, told to Z3
  size_t models = 24;     // kept of earlier questions
  // A net for what no unit counts: no question that is answered at all takes a tenth of it.
  int milliseconds = 20'000;
};

// Of a piecewise polynomial that is looked at cell by cell.
struct CellLimits {
  int cells = 512;
  size_t monomials = 4000;         // of a product that is multiplied out
  uint64_t nodes_of_a_unit = 128;  // of an expression that is walked
  uint64_t units_of_a_row = 2;     // of a linear system
  size_t product_terms = 16;       // of a product of two rows
  size_t products = 48;            // of rows
  int points = 64;                 // at which a value is tried before anything is proved
};

// Of the comparison of two sums of terms.
struct ComparisonLimits {
  int depth = 8;         // of forms within forms
  size_t changes = 4;    // of binders, kept for a pair of terms
  int alternatives = 6;  // orders of free binders tried
  unsigned share_of_guesses = 16;
  int rearranged_depth = 2;
  int rearrangements = 60, cases = 24, pointwise = 24;  // tried in one comparison
  int combinations = 16;                                // choices of changes tried for a class
  size_t conditions_asked_at_once = 3;                  // more are asked case by case
  int splits = 4;                                       // of such cases
};

// Of sums that are shown to be 0 by what is known of functions.
struct PointwiseLimits {
  int depth = 3;         // of cases inside functions
  size_t arguments = 3;  // of functions whose signs are looked at
  size_t factors = 24;   // that facts are looked for
  size_t instances = 8;
  size_t terms = 12;
};

// Of one rule: shares of the limit of a question, and samples.
struct RuleLimits {
  unsigned share_of_sizes = 64;       // for whether any sizes satisfy a condition
  unsigned share_of_statements = 4;   // for what follows from the condition as it is stated
  unsigned share_of_shortening = 16;  // for which parts of the condition follow from others
  int added_conditions = 8;           // that proofs of outputs ask for
  int rounds_of_conditions = 3;       // derived from counterexamples
  int more_samples_of_partial = 5;    // as many samples where the proof leaves a part to them
  int more_samples_of_unproved = 20;  // as many where no proof was found
  int far_samples = 240;
  size_t region_samples = 20;
};

struct ProofLimits {
  SolverLimits solver;
  CellLimits cells;
  ComparisonLimits comparison;
  PointwiseLimits pointwise;
  RuleLimits rule;
  size_t terms_of_a_form = 96;      // of one that is written in another way
  uint64_t units_of_a_term = 5;     // of a product of two forms
  uint64_t units_of_a_factor = 20;  // of a maximum
};

// A proof or a step of it has taken all that it may. It is an overflow_error: who can go on without an answer whose
// numbers are too large can go on without one that takes too long.
class BudgetExceeded : public std::overflow_error {
 public:
  enum class Budget { Units, Terms };
  BudgetExceeded(Budget budget, uint64_t limit)
      : std::overflow_error(text_of(budget)), budget_(budget), limit_(limit) {}
  Budget budget() const { return budget_; }
  uint64_t limit() const { return limit_; }

 private:
  static const char* text_of(Budget budget) {
    return budget == Budget::Units ? "the proof needs more work than is done for one" : "a form has too many terms";
  }
  Budget budget_;
  uint64_t limit_;
};

}  // namespace gopt::verifier
