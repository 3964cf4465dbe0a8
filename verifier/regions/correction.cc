// From a partial rule to a full one: the right side on the region, the left side on the rest, put together.
#include <algorithm>
#include <random>

#include "gopt/verifier.h"
#include "region_search.h"
#include "restriction.h"
#include "rules/rule_verifier.h"
#include "samples/size_sampler.h"

namespace gopt::verifier {
namespace {

constexpr size_t kSamples = 60;
constexpr int64_t kLargestExtent = 12;
constexpr uint64_t kSeed = 1;

// Sizes at which both sides are defined, of one shape, and each box of the region has at least `least` places along
// each axis that it does not fill.
std::vector<Environment> sizes_of_regions(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right,
                                          int64_t least) {
  SizeSampler sampler(rule_symbols(rule), extent_symbols(rule),
                      left_condition(rule, left) && rule.condition && shapes_agree(left, right));
  sampler.set_extents({1, kLargestExtent});
  const auto is_wide = [&](const Environment& sizes) {
    for (size_t o = 0; o < rule.regions.size(); o++)
      for (const Box& box : rule.regions[o])
        for (size_t axis = 0; axis < box.size(); axis++) {
          const auto width = evaluate(box[axis].high - box[axis].low, sizes),
                     extent = evaluate(left.outputs[o].shape[axis], sizes);
          if (!width || !extent || (*width < least && *width < *extent)) return false;
        }
    return true;
  };
  std::mt19937_64 random(kSeed);
  std::vector<Environment> found;
  for (size_t draw = 0; draw < 40 * kSamples && found.size() < kSamples; draw++) {
    Environment sizes;
    if (!sampler.draw(random, sizes)) break;
    if (is_wide(sizes)) found.push_back(std::move(sizes));
  }
  return found;
}

// One output, cut into boxes that lie in a box of the region or outside all of them.
class CorrectedOutput {
 public:
  CorrectedOutput(GraphBuilder& builder, const std::map<std::string, Value>& inputs, const SizeSigns& signs, Value left,
                  Value right, const std::vector<Box>& region)
      : builder_(builder),
        signs_(signs),
        parts_(builder, inputs, signs),
        left_(std::move(left)),
        right_(std::move(right)),
        region_(region) {}

  Result<Value> run() {
    const Box all = whole_of(*left_.type().shape);
    return region_.empty() ? parts_.part(right_, all) : in(all);
  }

 private:
  bool lies_in(const AxisRange& inner, const AxisRange& outer) const {
    return signs_.is_never_below(inner.low, outer.low) && signs_.is_never_below(outer.high, inner.high);
  }
  bool lies_in(const Box& inner, const Box& outer) const {
    for (size_t axis = 0; axis < inner.size(); axis++)
      if (!lies_in(inner[axis], outer[axis])) return false;
    return true;
  }
  bool meets(const Box& a, const Box& b) const {
    for (size_t axis = 0; axis < a.size(); axis++)
      if (signs_.is_never_below(a[axis].low, b[axis].high) || signs_.is_never_below(b[axis].low, a[axis].high))
        return false;
    return true;
  }

  // Where the region has several boxes, what they are cut from is computed once: two images that were joined to be
  // convolved together stay together.
  Result<Value> of_right(const Box& box) {
    return region_.size() == 1 ? parts_.part(right_, box) : parts_.cut(right_, box);
  }

  Result<Value> in(const Box& box) {
    bool is_outside = true;
    for (const Box& equal : region_) {
      if (lies_in(box, equal)) return of_right(box);
      is_outside = is_outside && !meets(box, equal);
    }
    if (is_outside) return parts_.part(left_, box);
    for (size_t axis = 0; axis < box.size(); axis++) {
      GOPT_ASSIGN_OR_RETURN(const std::vector<AxisRange> ranges, cut(box, axis));
      if (ranges.size() < 2) continue;
      std::vector<Value> pieces;
      for (const AxisRange& range : ranges) {
        Box piece = box;
        piece[axis] = range;
        GOPT_ASSIGN_OR_RETURN(pieces.emplace_back(), in(piece));
      }
      return builder_.apply(OpKind::Concat, pieces, {{"axis", Index(static_cast<int64_t>(axis))}});
    }
    return Error{"the boxes of the region overlap in ways that depend on the sizes"};
  }

  // Along the axis, at the bounds of the region's boxes that it meets; ranges that meet the same of them are one.
  Result<std::vector<AxisRange>> cut(const Box& box, size_t axis) const {
    std::vector<const Box*> met;
    std::vector<Index> bounds{box[axis].low};
    for (const Box& equal : region_)
      if (meets(box, equal)) met.push_back(&equal);
    std::vector<Index> inner;
    for (const Box* equal : met)
      for (const Index& bound : {(*equal)[axis].low, (*equal)[axis].high})
        if (signs_.is_ever_below(box[axis].low, bound) && signs_.is_ever_below(bound, box[axis].high))
          inner.push_back(bound);
    for (const Index& a : inner)
      for (const Index& b : inner)
        if (!signs_.smaller(a, b)) return Error{"which of two bounds is the smaller one depends on the sizes"};
    std::sort(inner.begin(), inner.end(), [&](const Index& a, const Index& b) { return signs_.is_ever_below(a, b); });
    for (const Index& bound : inner)
      if (!signs_.is_same(bound, bounds.back())) bounds.push_back(bound);
    bounds.push_back(box[axis].high);
    std::vector<AxisRange> ranges;
    std::vector<const Box*> before;
    for (size_t k = 0; k + 1 < bounds.size(); k++) {
      const AxisRange range{bounds[k], bounds[k + 1]};
      std::vector<const Box*> own;
      for (const Box* equal : met)
        if (lies_in(range, (*equal)[axis])) own.push_back(equal);
      if (!ranges.empty() && own == before)
        ranges.back().high = range.high;
      else
        ranges.push_back(range);
      before = own;
    }
    return ranges;
  }

  GraphBuilder& builder_;
  const SizeSigns& signs_;
  Restriction parts_;
  Value left_, right_;
  const std::vector<Box>& region_;
};

// What is computed twice is then no border: the region has to hold a quarter of each output at some of the larger
// sizes.
Status check_part(const RewriteRule& partial, const SideMeaning& left, const std::vector<Environment>& sizes) {
  constexpr int64_t kLeastPart = 4;  // the whole is at most so many times it
  for (size_t o = 0; o < partial.regions.size() && !sizes.empty(); o++) {
    if (partial.regions[o].empty()) continue;
    const Box all = whole_of(left.outputs[o].shape);
    std::vector<int64_t> wholes;
    for (const Environment& own : sizes) wholes.push_back(places_in(all, own));
    std::vector<int64_t> ordered = wholes;
    std::ranges::nth_element(ordered, ordered.begin() + static_cast<ptrdiff_t>(ordered.size() / 2));
    const int64_t median = ordered[ordered.size() / 2];
    bool is_enough = false;
    for (size_t i = 0; i < sizes.size() && !is_enough; i++) {
      int64_t inside = 0;
      for (const Box& box : partial.regions[o]) inside += places_in(box, sizes[i]);
      is_enough = wholes[i] >= median && kLeastPart * inside >= wholes[i];
    }
    if (!is_enough) return Error{"rule `" + partial.name + "`: its region holds less than a quarter of the output"};
  }
  return Unit{};
}

Result<RewriteRule> corrected_on(const RewriteRule& partial, const SizeSigns& signs) {
  GraphBuilder builder;
  std::map<std::string, Value> inputs;
  for (const RuleVariable& variable : partial.variables)
    inputs[variable.name] = builder.input(variable.name, variable.type);
  for (size_t o = 0; o < partial.regions.size(); o++) {
    CorrectedOutput output(builder, inputs, signs, partial.left.outputs()[o].value, partial.right.outputs()[o].value,
                           partial.regions[o]);
    auto value = output.run();
    if (!value) return Error{"rule `" + partial.name + "`: " + value.error().message};
    builder.output(partial.left.outputs()[o].name, *value);
  }
  RewriteRule full = partial;
  full.right = builder.build();
  full.regions.clear();
  full.name += "-corrected";
  full.marks = {};
  full.real_types.clear();
  full.proof.reset();
  GOPT_RETURN_IF_ERROR(check_rule(full));
  return full;
}

}  // namespace
}  // namespace gopt::verifier

namespace gopt {

using namespace verifier;

Result<RewriteRule> corrected(const RewriteRule& partial) {
  if (!partial.is_partial()) return Error{"rule `" + partial.name + "` has no region: there is nothing to correct"};
  GOPT_RETURN_IF_ERROR(check_rule(partial));
  GOPT_ASSIGN_OR_RETURN(const SideMeaning left, meaning_of(partial.left));
  GOPT_ASSIGN_OR_RETURN(const SideMeaning right, meaning_of(partial.right));
  constexpr int64_t kWide = 4;
  std::vector<Environment> any = sizes_of_regions(partial, left, right, 1);
  GOPT_RETURN_IF_ERROR(check_part(partial, left, any));
  std::vector<Environment> sizes = sizes_of_regions(partial, left, right, kWide);
  if (sizes.empty()) sizes = std::move(any);
  if (sizes.empty())
    return Error{"rule `" + partial.name + "`: no small sizes were found at which its region has places"};
  RewriteRule of_largest = partial;
  bool has_several = false;
  for (std::vector<Box>& boxes : of_largest.regions) {
    has_several = has_several || boxes.size() > 1;
    if (boxes.size() > 1) boxes = {largest_first(boxes, sizes).front()};
  }
  const SizeSigns signs(std::move(sizes));
  auto full = corrected_on(partial, signs);
  // Boxes whose order depends on the sizes: the largest one alone is cut out.
  return full || !has_several ? full : corrected_on(of_largest, signs);
}

}  // namespace gopt
