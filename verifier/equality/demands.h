// Where the right side of a rule applies a partial function (a quotient, a root, a logarithm), the left side must apply
// it to the same value, at every size: over an empty axis nothing is divided. What the left side alone applies leaves
// it without a value in some places. Where it is applied to an element as it is, these are known, and samples look at
// them; anything else that it alone applies is not proved. proof_state.h collects what is applied where.
#pragma once

#include <optional>
#include <string>

#include "solver/proof_state.h"

namespace gopt::verifier {

struct UnmetDemand {
  std::string what;
  Cond missing;  // would be enough (never, where nothing known would)
  bool is_of_left;
};

// The first demand of a side that those of the other do not cover, if there is one.
std::optional<UnmetDemand> find_unmet_demand(ProofState& state);
// Whether the left side makes a demand that the right side makes nowhere, so that more samples must agree.
bool left_demands_more(ProofState& state);

// Whether both sides apply `function` to the value wherever `context` holds.
bool is_demanded_by_both(const std::string& function, const NormalForm& argument, const Cond& context,
                         ProofState& state);

// Whether the value is not 0 wherever `context` holds, by what both sides demand. Precondition: they meet each other's
// demands.
bool is_demanded_not_zero(const NormalForm& value, const Cond& context, ProofState& state);

}  // namespace gopt::verifier
