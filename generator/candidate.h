// From a pair of terms to a rewrite rule: named variables, symbolic types, both sides as graphs; and the test of a pair
// in fresh worlds.
#pragma once

#include "term.h"
#include "world.h"

namespace gopt::generator {

// As many outputs on both sides.
struct TermPair {
  std::vector<TermId> left, right;
  friend auto operator<=>(const TermPair&, const TermPair&) = default;
};

// Variables of several terms in order of first occurrence.
std::vector<std::pair<int, int>> variables_of(const TermStore& terms, const std::vector<TermId>& roots);

// Whether the sides are equal for `trials` random sizes and values; `with_prefix` puts random leading axes before
// variables whose class allows it. False also where too few random sizes fit.
bool holds_in_fresh_worlds(const TermStore& terms, const TermPair& pair, bool with_prefix, uint64_t seed,
                           TapeCache& tapes, int trials = 4);

// Errors: sides that a graph does not allow, which the caller takes as no candidate.
Result<RewriteRule> make_candidate(const TermStore& terms, const TermPair& pair, bool with_prefix,
                                   const std::string& origin);

// Ends the rule's name in the content that it stands for, so that names are distinct.
void complete_name(RewriteRule& rule);

}  // namespace gopt::generator
