#include "size_sampler.h"

#include <algorithm>

#include "equality/binder_change.h"
#include "normal_form/normal_form.h"
#include "rules/solve_equations.h"

namespace gopt::verifier {
namespace {

int64_t random_extent(std::mt19937_64& random, int64_t largest) {
  const auto roll = random() % 12;
  return roll == 0 ? 0 : 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(largest));
}
int64_t random_within(std::mt19937_64& random, Range range) {
  return range.low + static_cast<int64_t>(random() % static_cast<uint64_t>(range.high - range.low + 1));
}
int64_t random_attribute(std::mt19937_64& random) {
  static constexpr int64_t kValues[] = {1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0, 0, 3, -1};
  return kValues[random() % std::size(kValues)];
}

}  // namespace

SizeSampler::SizeSampler(std::vector<AtomId> symbols, const std::set<AtomId>& extents, const Cond& condition)
    : symbols_(std::move(symbols)), extents_(extents), condition_(condition) {
  std::set<AtomId> taken;
  for (const Index& zero : equations_of(condition)) {
    const Index equation = without_common_factor(zero);
    for (AtomId symbol : symbols_) {
      const auto split = split_linear(equation, symbol);
      if (taken.count(symbol) || !split || (split->coefficient != 1 && split->coefficient != -1)) continue;
      // Values are taken in order, so what is given may not depend on what is given later.
      std::set<AtomId> needed;
      collect_symbols(split->rest, needed);
      const bool circular = std::any_of(taken.begin(), taken.end(), [&](AtomId t) { return needed.count(t) > 0; });
      if (circular) continue;
      taken.insert(symbol);
      solved_.push_back({symbol, split->coefficient == 1 ? -split->rest : split->rest});
      break;
    }
  }
}

bool SizeSampler::admits(const Environment& sizes) const { return evaluate(condition_, sizes) == true; }

bool SizeSampler::draw(std::mt19937_64& random, Environment& sizes) const {
  constexpr int kTries = 300;
  // What the condition's equations make larger (Slice to 100,000,000 of a padded axis) is not worth a sample.
  constexpr int64_t kLargest = int64_t{1} << 16;
  for (int attempt = 0; attempt < kTries; attempt++) {
    const int64_t largest = 1 + static_cast<int64_t>(random() % 4);
    for (AtomId symbol : symbols_) {
      const bool is_extent = extents_.count(symbol) > 0;
      sizes[symbol] = !is_extent       ? random_attribute(random)
                      : !extent_range_ ? random_extent(random, largest)
                                       : random_within(random, *extent_range_);
      if (!pool_.empty() && is_extent && random() % 3 == 0) sizes[symbol] = pool_[random() % pool_.size()];
    }
    for (const Solved& s : solved_)
      if (auto value = evaluate(s.value, sizes)) sizes[s.symbol] = *value;
    const bool is_small = std::all_of(sizes.begin(), sizes.end(), [](const auto& size) {
      return size.second <= kLargest && size.second >= -kLargest;
    });
    if (is_small && evaluate(condition_, sizes) == true) return true;
  }
  return false;
}

}  // namespace gopt::verifier
