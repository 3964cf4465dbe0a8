// What each operator's definition promises, proved once an operator (tests/verifier/definitions_test.cc): wherever its
// requirements hold, every read lies within its input, no maximum is over nothing and no size that divides is 0. A
// rule's sides are compositions of definitions, so that reads inside a rule are in bounds wherever its requirements
// hold (docs/verifier.md).
#pragma once

#include "gopt/definition.h"
#include "solver/solver.h"

namespace gopt::verifier {

// What is not proved of the element at symbols 0 <= i < extent, in words; empty if nothing.
std::string find_ill_formed(const TensorExpr& output, const std::vector<TensorType>& inputs, const Cond& context,
                            Solver& solver);

}  // namespace gopt::verifier
