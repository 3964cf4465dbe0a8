// A rule as a person writes it: MatMul(MatMul(a, b), c) = MatMul(a, MatMul(b, c)).
#pragma once

#include <string>

#include "gopt/rule.h"

namespace gopt::cli {

// An equation a line for each output, then what is shared ("where t1 = ..."), the variables' types and the condition.
std::string algebra_text(const RewriteRule& rule);
// The outputs of a graph as terms, with what is shared, in one line.
std::string terms_text(const Graph& graph);

}  // namespace gopt::cli
