// Makes a pair of equal terms as general as it holds: what both sides share becomes a variable, weights become
// activations where nothing is folded, types lose what they need not have in common.
#pragma once

#include "candidate.h"
#include "kernels.h"

namespace gopt::generator {

class PairGeneralizer {
 public:
  PairGeneralizer(TermStore& terms, Kernels& kernels, uint64_t seed) : terms_(terms), kernels_(kernels), seed_(seed) {}
  TermPair generalised(TermPair pair);

 private:
  std::optional<TermPair> with_part_as_variable(const TermPair& pair);
  TermPair with_activations(const TermPair& pair);
  bool have_equal_values(TermId left, TermId right);
  const Values* value(TermId id);

  TermStore& terms_;
  Kernels& kernels_;
  const uint64_t seed_;
  std::unordered_map<uint32_t, std::optional<Values>> values_;
  Values registers_;
};

// Variables numbered by first occurrence on the left, so that pairs which differ by names are one.
TermPair renamed(TermStore& terms, const TermPair& pair);

// Whether some variable may have leading axes.
bool has_prefix(const TermStore& terms, const std::vector<TermId>& roots);

}  // namespace gopt::generator
