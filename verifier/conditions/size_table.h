// For which sizes a rule holds, by evaluation: the table that a derived condition must reproduce (condition_search.h),
// and against which a rule's condition is checked to be complete.
#pragma once

#include <random>
#include <vector>

#include "rule_evaluator.h"

namespace gopt::verifier {

struct SizeRow {
  Environment sizes;     // the left side is defined
  bool holds = false;    // the right side is defined, has the same shapes and, for every input drawn, the same values
  bool is_full = false;  // no variable and no output is empty
};

struct SizeTable {
  std::vector<SizeRow> rows;
  bool is_exhaustive = false;  // has every assignment of 0 to 4 to the symbols under which the left side is defined
};

struct SizeTableOptions {
  int64_t largest = 4;
  size_t max_assignments = 20'000;  // more are not enumerated but sampled; symbols of attributes go from -2 if they may
  size_t max_rows = 1'500;          // of a sample
  size_t positions = 16;            // beside an output's corners, for each draw of inputs
  uint64_t seed = 1;
};
SizeTable tabulate_sizes(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right,
                         const SizeTableOptions& options = {});

// Rows at larger sizes: every extent `low` to `high`, at most `count`.
std::vector<SizeRow> sample_sizes(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right,
                                  int64_t low, int64_t high, size_t count, uint64_t seed);

// The rows of these sizes, as far as the left side is defined there.
std::vector<SizeRow> rows_at(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right,
                             const std::vector<Environment>& sizes);

// A row at which the condition is not what the table says: it turns away a match for which the rule holds, or accepts
// one for which it does not.
std::optional<SizeRow> find_mismatch(const SizeTable& table, const Cond& condition);

}  // namespace gopt::verifier
