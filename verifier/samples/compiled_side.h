// The outputs of a side, compiled for evaluation at numbers: what samples, truth tables and marks look at.
#pragma once

#include <optional>
#include <vector>

#include "compiled_expr.h"
#include "rules/rule_meaning.h"

namespace gopt::verifier {

struct CompiledSide {
  std::vector<CompiledExpr> values;
  std::vector<std::vector<AtomId>> positions;  // symbols of each output's subscripts, the same for every side
};
CompiledSide compile_side(const SideMeaning& meaning);

// The subscripts that stand for a position of an output.
std::vector<Index> output_subscripts(size_t output, size_t rank);

// Extents at these sizes; nothing where one is negative or open.
std::optional<std::vector<int64_t>> numbers(const Shape& shape, const Environment& sizes);
// Where element number `flat` is, row by row.
std::vector<int64_t> position_of_flat(int64_t flat, const std::vector<int64_t>& dims);

// What the condition and the left side assume of sizes.
Cond left_condition(const RewriteRule& rule, const SideMeaning& left, const Cond& condition);
Cond left_condition(const RewriteRule& rule, const SideMeaning& left);  // under the rule's own condition
// Symbols of the variables' extents; the rule's other symbols are attributes.
std::set<AtomId> extent_symbols(const RewriteRule& rule);

}  // namespace gopt::verifier
