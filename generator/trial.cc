#include "trial.h"

#include <algorithm>
#include <cmath>

#include "trial_draws.h"

namespace gopt::generator {
namespace {

constexpr size_t kTrials = 12, kLongTrials = 12, kTries = 1000;
constexpr int64_t kMaxElements = 400;  // of a variable
constexpr double kTolerance = 1e-7;
// What is beyond is taken for infinite: a sum that is 0 but for rounding may have been divided by.
constexpr double kInfinite = 1e13;

class Trials {
 public:
  Trials(const TermStore& terms, const TermPair& pair, bool with_prefix, uint64_t seed, TapeCache& tapes)
      : terms_(terms),
        pair_(pair),
        with_prefix_(with_prefix),
        seed_(seed),
        tapes_(tapes),
        variables_(variables_of(terms, pair.left)),
        symbols_(symbols_of(terms, pair)) {}

  bool run() {
    // Where no attribute speaks of sizes, long tensors tell no more than short ones.
    size_t wanted[] = {kTrials, symbols_.attributes.empty() ? 0 : kLongTrials};
    for (uint64_t number = 0; number < kTries && wanted[0] + wanted[1] > 0; number++) {
      const uint64_t draw = mix(seed_) + number;
      size_t& left = wanted[is_long(draw)];
      const auto agree = left > 0 ? trial(draw) : std::nullopt;
      if (agree && !*agree) return false;
      if (agree) left--;
    }
    return has_finite_ || !has_elements_;
  }

 private:
  using RealWorld = WorldOf<Reals>;

  // Nothing where a side does not fit the sizes drawn.
  std::optional<bool> trial(uint64_t draw) {
    const std::vector<int64_t> prefixes[] = {{}, {2}, {1, 3}};
    const Environment sizes = drawn_sizes(symbols_, draw);
    if (!fits(sizes)) return std::nullopt;
    RealWorld world(terms_, sizes, with_prefix_ ? prefixes[draw % std::size(prefixes)] : prefixes[0], tapes_,
                    [&](const Term& variable, size_t count) {
                      const std::pair name{variable.variable_class, variable.variable_number};
                      const auto place = std::find(variables_.begin(), variables_.end(), name) - variables_.begin();
                      return drawn_values(draw, static_cast<size_t>(place), count);
                    });
    std::vector<std::shared_ptr<const RealWorld::Tensor>> left, right;
    for (size_t i = 0; i < pair_.left.size(); i++) {
      left.push_back(world.value(pair_.left[i], true));
      right.push_back(world.value(pair_.right[i], true));
      if (!left.back() || !right.back()) return std::nullopt;
    }
    bool all_agree = true;
    for (size_t i = 0; i < left.size(); i++) all_agree = all_agree && agree(*left[i], *right[i]);
    return all_agree;
  }

  // Whether all extents are sizes, and small enough to be worth a trial.
  bool fits(const Environment& sizes) const {
    return std::all_of(variables_.begin(), variables_.end(), [&](const auto& name) {
      int64_t count = 1;
      for (const Index& symbolic : *terms_.family().classes[static_cast<size_t>(name.first)].type.shape) {
        const auto extent = evaluate(symbolic, sizes);
        if (!extent || *extent < 0 || *extent > kMaxElements) return false;
        count *= *extent;
      }
      return count <= kMaxElements;
    });
  }

  bool agree(const RealWorld::Tensor& left, const RealWorld::Tensor& right) {
    if (left.dims != right.dims) return true;  // where they may differ is for the verifier to say
    has_elements_ = has_elements_ || !left.values.empty();
    for (size_t i = 0; i < left.values.size(); i++)
      for (size_t draw = 0; draw < kDraws; draw++) {
        const double a = left.values[i].draws[draw], b = right.values[i].draws[draw];
        const bool is_finite = std::fabs(a) < kInfinite;
        has_finite_ = has_finite_ || is_finite;
        if (is_finite != (std::fabs(b) < kInfinite)) return false;
        if (is_finite && !(std::fabs(a - b) <= kTolerance * std::max({1.0, std::fabs(a), std::fabs(b)}))) return false;
      }
    return true;
  }

  const TermStore& terms_;
  const TermPair& pair_;
  const bool with_prefix_;
  const uint64_t seed_;
  TapeCache& tapes_;
  const std::vector<std::pair<int, int>> variables_;
  const PairSymbols symbols_;
  bool has_elements_ = false, has_finite_ = false;
};

}  // namespace

bool survives_trials(const TermStore& terms, const TermPair& pair, bool with_prefix, uint64_t seed, TapeCache& tapes) {
  return Trials(terms, pair, with_prefix, seed, tapes).run();
}

}  // namespace gopt::generator
