// Other ways to write a sum of terms that is to be shown to be 0, for match.h to try where the terms do not cancel as
// they are. Each keeps whether the sum is 0 wherever the context holds.
#pragma once

#include <optional>

#include "solver/proof_state.h"

namespace gopt::verifier {

// Multiplied by every divisor that is known not to be 0.
NormalForm without_denominators(NormalForm form, const Cond& context, ProofState& state);
// Factors of products a*b that bound binders: a binder may be written as k * factor + l.
std::vector<Index> range_factors(const NormalForm& form);
void split_ranges(Summand& term, const Index& inner, ProofState& state);
NormalForm with_ranges_split(const NormalForm& form, const Index& inner, const Cond& context, ProofState& state);
// Sums over few elements written out.
NormalForm with_short_sums_expanded(const NormalForm& form, const Cond& context, ProofState& state);
// Sums over ranges of which one or another holds, as sums over ranges that have nothing in common.
NormalForm with_alternatives_apart(const NormalForm& form, const Cond& context, ProofState& state);
// A condition of the guards, free of binders, that the context does not decide.
std::optional<Cond> undecided_guard(const NormalForm& form, const Cond& context, ProofState& state);

}  // namespace gopt::verifier
