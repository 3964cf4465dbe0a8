// Partial equivalence: the region is read off samples, then proved as a rule is, with the region as a hypothesis.
#include <algorithm>
#include <random>

#include "gopt/verifier.h"
#include "regions/region_search.h"
#include "rule_verifier.h"
#include "samples/size_sampler.h"

namespace gopt::verifier {
namespace {

constexpr size_t kSamples = 36;
constexpr size_t kBoxesAlone = 4;  // that are tried where all together are not proved
constexpr int64_t kLargestExtent = 6, kBeyond = 5;

bool agrees_everywhere(const std::vector<RegionSample>& samples) {
  return std::all_of(samples.begin(), samples.end(), [](const RegionSample& s) {
    return std::find(s.agrees.begin(), s.agrees.end(), false) == s.agrees.end();
  });
}

// Extents that samples have: up to 6, and where a kernel is as large as that, some beyond it.
ExtentDraws extents_of(const RewriteRule& rule) {
  int64_t largest = 0;
  for (const RuleVariable& variable : rule.variables)
    for (const Index& extent : *variable.type.shape)
      if (extent.is_constant()) largest = std::max(largest, extent.constant());
  ExtentDraws draws{{1, kLargestExtent}, {}};
  if (largest + 2 <= kLargestExtent) return draws;
  draws.usual = {1, 3};
  for (int64_t extent = largest; extent < largest + kBeyond; extent++) draws.larger.push_back(extent);
  return draws;
}

struct Region {
  std::vector<std::vector<Box>> boxes;  // by output; none where it is equal everywhere
  bool is_exact = true;
  // By output, the largest first, where there are several: what samples of few images or rows make of a pattern is
  // wrong elsewhere, one box that most places agree on may be right.
  std::vector<std::vector<Box>> alone;
};

// The region of the rule under its condition; nothing where some output has none, or no sample differs.
std::optional<Region> find_region(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right,
                                  uint64_t seed) {
  Region region;
  bool differs = false, has_several = false;
  for (size_t o = 0; o < left.outputs.size(); o++) {
    const auto samples = sample_region(rule, left, right, o, extents_of(rule), kSamples, seed + o);
    if (samples.empty()) return std::nullopt;
    region.boxes.emplace_back();
    if (agrees_everywhere(samples)) continue;
    differs = true;
    region.boxes.back() = find_boxes(rule, o, samples);
    if (region.boxes.back().empty()) return std::nullopt;
    std::vector<Environment> sizes;
    for (const RegionSample& sample : samples) sizes.push_back(sample.sizes);
    region.alone.resize(o + 1);
    region.alone.back() = largest_first(region.boxes.back(), sizes);
    has_several = has_several || region.boxes.back().size() > 1;
    region.is_exact = region.is_exact && covers_agreement(region.boxes.back(), samples);
  }
  if (!differs) return std::nullopt;
  region.alone.resize(has_several ? left.outputs.size() : 0);
  return region;
}

// Of each output the box of that number alone, or the last one; false where no output has one more.
bool take_box(size_t number, Region& region, RewriteRule& rule) {
  bool is_new = false;
  for (size_t o = 0; o < region.alone.size(); o++) {
    const std::vector<Box>& boxes = region.alone[o];
    is_new = is_new || number < boxes.size();
    rule.regions[o].clear();
    if (!boxes.empty()) rule.regions[o].push_back(boxes[std::min(number, boxes.size() - 1)]);
  }
  if (is_new) region.is_exact = false;
  return is_new;
}

bool has_division(const Index& index) {
  return std::any_of(index.terms().begin(), index.terms().end(), [](const Index::Term& term) {
    return std::any_of(term.atoms.begin(), term.atoms.end(),
                       [](AtomId id) { return atom(id).kind == AtomKind::FloorDiv; });
  });
}

bool has_division(const Graph& side) {
  for (const NodePtr& node : side.nodes())
    for (const TensorType& type : node->outputs)
      if (type.shape &&
          std::any_of(type.shape->begin(), type.shape->end(), [](const Index& extent) { return has_division(extent); }))
        return true;
  return false;
}

// The rule as it stands, and under each parity of each symbol where a stride rounds an extent: then sides may agree for
// some sizes only.
std::vector<RewriteRule> variants(const RewriteRule& rule) {
  std::vector<RewriteRule> all{rule};
  if (!has_division(rule.left) && !has_division(rule.right)) return all;
  for (AtomId id : rule_symbols(rule)) {
    for (int64_t residue : {0, 1}) {
      RewriteRule under = rule;
      under.condition = rule.condition && equal(modulo(Index::from_atom(id), Index(2)), Index(residue));
      all.push_back(std::move(under));
    }
  }
  return all;
}

// Of many sizes, those that the condition admits: of two conditions, the one that admits more is taken.
size_t count_admitted(const RewriteRule& rule, const SideMeaning& left, const Cond& condition, uint64_t seed) {
  constexpr int kDraws = 300;
  const SizeSampler sampler(rule_symbols(rule), extent_symbols(rule), left_condition(rule, left));
  std::mt19937_64 random(seed);
  size_t admitted = 0;
  for (int draw = 0; draw < kDraws; draw++) {
    Environment sizes;
    if (!sampler.draw(random, sizes)) break;
    admitted += evaluate(condition, sizes) == true;
  }
  return admitted;
}

}  // namespace

}  // namespace gopt::verifier

namespace gopt {

using namespace verifier;

Result<PartialVerification> prove_partial(const RewriteRule& candidate, const VerifyOptions& options) {
  GOPT_ASSIGN_OR_RETURN(RewriteRule rule, with_prefix(candidate, {}));
  rule.regions.clear();
  GOPT_RETURN_IF_ERROR(check_rule(rule));
  GOPT_ASSIGN_OR_RETURN(const SideMeaning left, meaning_of(rule.left));
  GOPT_ASSIGN_OR_RETURN(const SideMeaning right, meaning_of(rule.right));
  if (shapes_agree(left, right).is_false()) return Error{"the sides never have the same shapes"};
  std::string reason;
  std::optional<PartialVerification> best;
  size_t most = 0;
  for (RewriteRule& variant : variants(rule)) {
    auto region = find_region(variant, left, right, options.seed);
    if (!region || (best && !region->is_exact)) continue;
    variant.regions = region->boxes;
    Verification v = verify_rule(variant, options);
    for (size_t k = 0; v.verdict != Verdict::Proved && k < kBoxesAlone && !best && take_box(k, *region, variant); k++)
      v = verify_rule(variant, options);
    if (v.verdict != Verdict::Proved) {
      if (reason.empty()) reason = "the region is not proved: " + v.reason;
      continue;
    }
    const size_t admitted = count_admitted(rule, left, v.condition, options.seed);
    if (best && best->is_exact && admitted <= most) continue;
    most = admitted;
    const bool is_plain = variant.condition == rule.condition;
    variant.condition = v.condition;
    variant.marks = v.marks;
    variant.real_types = v.real_types;
    variant.proof = v.proof;
    best = PartialVerification{std::move(variant), std::move(v), region->is_exact};
    if (best->is_exact && is_plain) break;
  }
  if (!best) return Error{reason.empty() ? "no region was found on which the sides agree" : reason};
  return *best;
}

}  // namespace gopt
