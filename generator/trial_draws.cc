#include "trial_draws.h"

#include <cmath>

namespace gopt::generator {
namespace {

// Numbers that follow from what is given, in order.
class Bits {
 public:
  explicit Bits(uint64_t start) : state_(mix(start)) {}
  uint64_t below(uint64_t count) { return (state_ = mix(state_ + 0x9e3779b97f4a7c15ULL)) % count; }
  bool flip() { return below(2) == 1; }
  template <class Choices>
  auto one_of(const Choices& choices) {
    return choices[below(std::size(choices))];
  }

 private:
  uint64_t state_;
};

// Halves and quarters of small integers, so that sums and differences are often 0 and seldom rounded.
enum class Kind { Mixed, Positive, Sparse, Halves, Small, Powers, NotNegative, NotPositive, Constant };
constexpr uint64_t kKinds = 9, kCommonKinds = 4;

// Of one variable in one draw.
struct Style {
  Kind kind;
  uint64_t key;         // of its elements
  double scale, power;  // an element is the number drawn to that power, scaled
};

// In the first draws all variables are of one kind, in the last ones elements are equal, opposite or reciprocal.
Style style_of(uint64_t number, size_t variable, size_t draw) {
  static constexpr double kScales[] = {1, 1, 4, 32};
  constexpr size_t kFirstRelated = 12;
  Bits common(number * kDraws + draw), own(mix(number * kDraws + draw) + variable);
  const double scale = common.one_of(kScales);
  if (draw < kCommonKinds) return {static_cast<Kind>(draw), own.below(~uint64_t{0}), scale, 1};
  if (draw < kFirstRelated) return {static_cast<Kind>(own.below(kKinds)), own.below(~uint64_t{0}), 1, 1};
  static constexpr Kind kRelated[] = {Kind::Small, Kind::Powers, Kind::Powers, Kind::NotNegative};
  const Kind kind = common.one_of(kRelated);
  const uint64_t key = common.below(~uint64_t{0});
  return {kind, key, own.flip() ? -1.0 : 1.0, kind == Kind::Powers && own.flip() ? -1.0 : 1.0};
}

double element(const Style& style, size_t position) {
  static constexpr double kConstants[] = {0, 1, -1, 2, -2};
  Bits bits(style.key + (style.kind == Kind::Constant ? 0 : position * 0x9e3779b97f4a7c15ULL));
  const auto between = [&](int low, int high) {
    return low + static_cast<double>(bits.below(static_cast<uint64_t>(high - low + 1)));
  };
  switch (style.kind) {
    case Kind::Mixed: return 0.25 * style.scale * between(-8, 8);
    case Kind::Positive: return 0.25 * style.scale * between(1, 17);
    case Kind::Sparse: return bits.flip() ? 0 : style.scale * between(-8, 8);
    case Kind::Halves: return 0.5 * between(-4, 4);
    case Kind::Small: return style.scale * between(-2, 2);
    case Kind::Powers: return (bits.flip() ? -style.scale : style.scale) * std::exp2(style.power * between(-2, 2));
    case Kind::NotNegative: return style.scale * between(0, 2);
    case Kind::NotPositive: return -between(0, 2);
    case Kind::Constant: return bits.one_of(kConstants);
  }
  return 0;
}

}  // namespace

uint64_t symbol_key(AtomId symbol, uint64_t draw) {
  uint64_t key = draw;
  for (char letter : atom(symbol).name) key = mix(key ^ static_cast<unsigned char>(letter)) + 1;
  return key;
}

PairSymbols symbols_of(const TermStore& terms, const TermPair& pair) {
  PairSymbols symbols;
  for (const auto& [variable_class, number] : variables_of(terms, pair.left))
    for (const Index& extent : *terms.family().classes[static_cast<size_t>(variable_class)].type.shape)
      collect_symbols(extent, symbols.extents);
  for (const auto* side : {&pair.left, &pair.right})
    for (TermId root : *side) terms.collect_attribute_symbols(root, symbols.attributes);
  return symbols;
}

bool is_long(uint64_t draw) { return draw % 2 == 1; }

Environment drawn_sizes(const PairSymbols& symbols, uint64_t draw) {
  static constexpr int64_t kAttributes[][6] = {
      {1, 1, 1, 2, 0, 3}, {0, 1, 2, 0, 1, 2}, {0, 0, 0, 0, 0, 1}, {0, 1, 2, 3, 1, 2}};
  static constexpr int64_t kAttributesOfLong[][6] = {{2, 2, 2, 2, 1, 1}, {2, 2, 1, 1, 1, 3}, {2, 2, 1, 1, 0, 0}};
  static constexpr int64_t kKernels[] = {1, 2, 2, 2};
  constexpr int64_t kLongest = 10, kLong = 7;
  const auto& attributes = is_long(draw) ? kAttributesOfLong[draw / 2 % std::size(kAttributesOfLong)]
                                         : kAttributes[draw / 2 % std::size(kAttributes)];
  const int64_t largest = 1 + static_cast<int64_t>(Bits(draw).below(3));
  Environment sizes;
  for (AtomId symbol : symbols.attributes) sizes[symbol] = Bits(symbol_key(symbol, draw)).one_of(attributes);
  for (AtomId symbol : symbols.extents) {
    Bits bits(symbol_key(symbol, draw));
    sizes[symbol] = !is_long(draw) ? 1 + static_cast<int64_t>(bits.below(static_cast<uint64_t>(largest)))
                    : symbols.attributes.count(symbol) || bits.flip()
                        ? bits.one_of(kKernels)
                        : kLong + static_cast<int64_t>(bits.below(kLongest - kLong + 1));
  }
  return sizes;
}

// Zeros have no sign, as in the reals.
std::vector<Reals> drawn_values(uint64_t draw, size_t variable, size_t count) {
  std::vector<Reals> values(count);
  for (size_t own = 0; own < kDraws; own++) {
    const Style style = style_of(draw, variable, own);
    for (size_t position = 0; position < count; position++)
      values[position].draws[own] = element(style, position) + 0.0;
  }
  return values;
}

}  // namespace gopt::generator
