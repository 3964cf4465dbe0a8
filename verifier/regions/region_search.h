// Reading a region off samples: along each axis, the places where agreement changes are matched with polynomials of the
// rule's symbols; the boxes between them on which all samples agree are the region. A guess until it is proved.
#pragma once

#include <vector>

#include "gopt/rule.h"
#include "region_table.h"

namespace gopt::verifier {

// Polynomials that a bound on `axis` of an output may be: small constants, extents and symbols of the rule, halves of
// these, an extent without one of them, each moved by up to 4. The plainest come first. Beside seams: sums and
// differences of an extent between and a symbol.
enum class BoundKind { Plain, BesideSeams };
std::vector<Index> bound_candidates(const RewriteRule& rule, size_t output, size_t axis, BoundKind kind);

// The largest boxes, of those with bounds among the candidates, on which all samples agree. Bounds beside seams where
// plain ones give none.
std::vector<Box> find_boxes(const RewriteRule& rule, size_t output, const std::vector<RegionSample>& samples);

// How many there are; 0 where a range is empty or has no number.
int64_t places_in(const Box& box, const Environment& sizes);

// Those that hold most places first, each at those of these sizes that suit it.
std::vector<Box> largest_first(std::vector<Box> boxes, const std::vector<Environment>& sizes);

bool contains(const Box& box, const std::vector<int64_t>& position, const Environment& sizes);
// Whether the boxes hold every position at which a sample agrees, where it does not agree everywhere.
bool covers_agreement(const std::vector<Box>& boxes, const std::vector<RegionSample>& samples);

}  // namespace gopt::verifier
