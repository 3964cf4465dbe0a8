#include "region_table.h"

#include "samples/size_sampler.h"

namespace gopt::verifier {

std::vector<int64_t> position_at(const RegionSample& sample, size_t flat) {
  std::vector<int64_t> position(sample.dims.size());
  for (size_t axis = sample.dims.size(); axis-- > 0;) {
    const auto extent = static_cast<size_t>(sample.dims[axis]);
    position[axis] = static_cast<int64_t>(flat % extent);
    flat /= extent;
  }
  return position;
}

Cond shapes_agree(const SideMeaning& left, const SideMeaning& right) {
  Cond all;
  for (const Requirement& r : right.requirements) all = all && r.cond;
  for (size_t o = 0; o < left.outputs.size(); o++)
    for (size_t axis = 0; axis < left.outputs[o].shape.size(); axis++)
      all = all && equal(left.outputs[o].shape[axis], right.outputs[o].shape[axis]);
  return all;
}

std::vector<RegionSample> sample_region(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right,
                                        size_t output, const ExtentDraws& extents, size_t count, uint64_t seed) {
  constexpr int64_t kMaxPositions = 400;
  constexpr size_t kDraws = 40;  // for each sample wanted
  constexpr int kRounds = 2;
  SizeSampler sampler(rule_symbols(rule), extent_symbols(rule), left_condition(rule, left));
  sampler.set_extents(extents.usual);
  sampler.set_pool(extents.larger);
  RuleEvaluator evaluator(rule, left, right);
  std::mt19937_64 random(seed);
  std::vector<RegionSample> samples;
  for (size_t draw = 0; draw < kDraws * count && samples.size() < count; draw++) {
    RegionSample sample;
    if (!sampler.draw(random, sample.sizes)) break;
    evaluator.set_sizes(sample.sizes);
    if (!evaluator.is_left_defined() || !evaluator.is_right_defined()) continue;
    sample.dims = *evaluator.dims(output);
    const int64_t positions = element_count(sample.dims);
    if (positions == 0 || positions > kMaxPositions) continue;
    sample.agrees.assign(static_cast<size_t>(positions), true);
    for (int round = 0; round < kRounds; round++) {
      evaluator.draw_inputs(random, round);
      for (size_t flat = 0; flat < sample.agrees.size(); flat++)
        if (sample.agrees[flat]) sample.agrees[flat] = evaluator.agree_at(output, position_at(sample, flat));
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace gopt::verifier
