// At which positions the sides of a rule agree, at small sizes, by evaluation: what a region (region_search.h) is read
// off and checked against.
#pragma once

#include <optional>
#include <vector>

#include "conditions/rule_evaluator.h"

namespace gopt::verifier {

// All positions of one output at one assignment of sizes, row-major.
struct RegionSample {
  Environment sizes;
  std::vector<int64_t> dims;
  std::vector<bool> agrees;
};

std::vector<int64_t> position_at(const RegionSample& sample, size_t flat);

// What the right side needs beyond the left, so that samples are of sizes at which both are defined.
Cond shapes_agree(const SideMeaning& left, const SideMeaning& right);

// What extents are drawn from; one of `larger` now and then.
struct ExtentDraws {
  Range usual;
  std::vector<int64_t> larger;
};

// Samples of one output, both sides defined and of one shape there.
std::vector<RegionSample> sample_region(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right,
                                        size_t output, const ExtentDraws& extents, size_t count, uint64_t seed);

}  // namespace gopt::verifier
