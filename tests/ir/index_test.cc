// Index arithmetic against plain integers: what an Index says, evaluated, is what the same arithmetic gives on numbers.
#include "gopt/index.h"

#include <gtest/gtest.h>

#include <random>

#include "gopt/text_reader.h"

namespace gopt {
namespace {

int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// A random polynomial together with its value under an environment, computed apart.
struct Sample {
  Index index;
  int64_t value = 0;
};

class RandomIndexes {
 public:
  explicit RandomIndexes(uint64_t seed) : random_(seed) {
    for (const char* name : {"p", "q", "r", "s"}) symbols_.push_back(symbol_atom(name));
    for (AtomId id : symbols_) environment[id] = uniform(-9, 9);
  }

  int64_t uniform(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

  Sample sample(int depth, bool divisions) {
    if (depth == 0 || uniform(0, 5) == 0) return leaf();
    const Sample a = sample(depth - 1, divisions);
    if (divisions && uniform(0, 3) == 0) return divided(a, positive());
    const Sample b = sample(depth - 1, divisions);
    switch (uniform(0, 2)) {
      case 0: return {a.index + b.index, a.value + b.value};
      case 1: return {a.index - b.index, a.value - b.value};
      default: return {a.index * b.index, a.value * b.value};
    }
  }

  // Divisors that are at least 1: numbers, and squares of symbols plus one.
  Sample positive() {
    if (uniform(0, 1) == 0) {
      const int64_t divisor = uniform(1, 7);
      return {Index(divisor), divisor};
    }
    const Sample s = leaf();
    return {s.index * s.index + Index(1), s.value * s.value + 1};
  }

  Environment environment;

 private:
  Sample leaf() {
    if (uniform(0, 2) == 0) {
      const int64_t value = uniform(-8, 8);
      return {Index(value), value};
    }
    const AtomId id = symbols_[static_cast<size_t>(uniform(0, static_cast<int64_t>(symbols_.size()) - 1))];
    return {Index::from_atom(id), environment.at(id)};
  }

  Sample divided(const Sample& a, const Sample& b) {
    const int64_t quotient = floor_quotient(a.value, b.value);
    switch (uniform(0, 2)) {
      case 0: return {floor_div(a.index, b.index), quotient};
      case 1: return {modulo(a.index, b.index), a.value - b.value * quotient};
      default: return {ceil_div(a.index, b.index), -floor_quotient(-a.value, b.value)};
    }
  }

  std::mt19937_64 random_;
  std::vector<AtomId> symbols_;
};

TEST(Index, EvaluatesAsNumbersDo) {
  for (uint64_t seed = 0; seed < 4000; seed++) {
    RandomIndexes random(seed);
    const Sample s = random.sample(4, true);
    EXPECT_EQ(evaluate(s.index, random.environment), s.value) << "seed " << seed << ": " << to_string(s.index);
  }
}

TEST(Index, PolynomialsHaveOneForm) {
  for (uint64_t seed = 0; seed < 500; seed++) {
    RandomIndexes random(seed);
    const Index a = random.sample(3, true).index, b = random.sample(3, true).index, c = random.sample(3, true).index;
    EXPECT_EQ(a + b, b + a);
    EXPECT_EQ(a * b, b * a);
    EXPECT_EQ((a + b) + c, a + (b + c));
    EXPECT_EQ((a * b) * c, a * (b * c));
    EXPECT_EQ(a * (b + c), a * b + a * c);
    EXPECT_EQ(a - a, Index(0));
    EXPECT_EQ(-(-a), a);
  }
}

TEST(Index, DivisionSplitsOffMultiples) {
  const Index n = symbol("n"), m = symbol("m"), i = symbol("i");
  EXPECT_EQ(floor_div(n * m, n), m);
  EXPECT_EQ(floor_div(Index(4) * n + Index(7), Index(4)), n + Index(1));
  EXPECT_EQ(modulo(Index(4) * n + Index(7), Index(4)), Index(3));
  EXPECT_EQ(floor_div(n * i + m, n), i + floor_div(m, n));
  EXPECT_EQ(floor_div(Index(-7), Index(2)), Index(-4));
  EXPECT_EQ(modulo(Index(-7), Index(2)), Index(1));
  EXPECT_EQ(ceil_div(Index(-7), Index(2)), Index(-3));
  EXPECT_EQ(floor_div(Index(7), Index(-2)), Index(-4));
}

TEST(Index, DivisionBySumsIsExactWhereNothingIsLeft) {
  const Index f = symbol("f"), g = symbol("g"), o = symbol("o");
  EXPECT_EQ(floor_div(f * o + g * o, f + g), o);
  EXPECT_EQ(floor_div(f * f - g * g, f - g), f + g);
  EXPECT_EQ(floor_div(f * f + Index(2) * f * g + g * g + f + g, f + g), f + g + Index(1));
  EXPECT_EQ(floor_div((f + Index(1)) * (g + Index(2)), g + Index(2)), f + Index(1));
  // What leaves a rest stays a division.
  for (const auto& [n, d] : {std::pair{f * o + g, f + g}, std::pair{f * f + g * g, f + g}, std::pair{f, f + g}})
    EXPECT_EQ(evaluate(floor_div(n, d), {{*f.as_atom(), 5}, {*g.as_atom(), 3}, {*o.as_atom(), 7}}),
              *evaluate(n, {{*f.as_atom(), 5}, {*g.as_atom(), 3}, {*o.as_atom(), 7}}) / 8);
}

TEST(Index, SubstituteThenEvaluateIsEvaluateWithTheValues) {
  for (uint64_t seed = 0; seed < 2000; seed++) {
    RandomIndexes random(seed);
    const Index index = random.sample(4, true).index;
    Substitution substitution;
    Environment direct = random.environment;
    for (const auto& [id, value] : random.environment) {
      const Sample replacement = random.sample(2, false);
      substitution[id] = replacement.index;
      direct[id] = replacement.value;
    }
    EXPECT_EQ(evaluate(substitute(index, substitution), random.environment), evaluate(index, direct))
        << "seed " << seed << ": " << to_string(index);
  }
}

TEST(Index, SimplifyKeepsValuesWithinTheRanges) {
  for (uint64_t seed = 0; seed < 1000; seed++) {
    RandomIndexes random(seed);
    const Index index = random.sample(4, true).index;
    Ranges ranges;
    for (const auto& [id, value] : random.environment) {
      if (random.uniform(0, 4) == 0) continue;  // not every symbol has a range
      const int64_t low = random.uniform(-6, 6);
      ranges[id] = {low, low + random.uniform(0, 5)};
    }
    const Index simple = simplify(index, ranges);
    const auto range = range_of(index, ranges);
    for (int k = 0; k < 20; k++) {
      Environment at = random.environment;
      for (const auto& [id, r] : ranges) at[id] = random.uniform(r.low, r.high);
      const auto value = evaluate(index, at);
      ASSERT_TRUE(value.has_value());
      EXPECT_EQ(evaluate(simple, at), value)
          << "seed " << seed << ": " << to_string(index) << " became " << to_string(simple);
      if (range) {
        EXPECT_LE(range->low, *value) << to_string(index);
        EXPECT_GE(range->high, *value) << to_string(index);
      }
    }
  }
}

TEST(Index, SimplifyDecidesDivisionsByRanges) {
  const AtomId i = symbol_atom("i");
  const Index at = Index::from_atom(i);
  EXPECT_EQ(simplify(floor_div(at, Index(8)), {{i, {0, 7}}}), Index(0));
  EXPECT_EQ(simplify(modulo(at, Index(8)), {{i, {0, 7}}}), at);
  EXPECT_EQ(simplify(floor_div(at, Index(8)), {{i, {0, 8}}}), floor_div(at, Index(8)));
  EXPECT_EQ(simplify(floor_div(at, Index(8)), {{i, {-8, -1}}}), Index(-1));
}

TEST(Index, PrintsAndParsesToItself) {
  for (uint64_t seed = 0; seed < 2000; seed++) {
    RandomIndexes random(seed);
    const Index index = random.sample(4, true).index;
    const std::string text = to_string(index);
    TextReader reader(text);
    EXPECT_EQ(reader.index(), index) << text;
    EXPECT_TRUE(reader.at_end()) << text;
  }
}

TEST(Index, UnknownSymbolsAndZeroDivisorsHaveNoValue) {
  const Index n = symbol("n");
  EXPECT_EQ(evaluate(n, {}), std::nullopt);
  EXPECT_EQ(evaluate(floor_div(Index(7), n), {{symbol_atom("n"), 0}}), std::nullopt);
  EXPECT_EQ(evaluate(floor_div(Index(7), n), {{symbol_atom("n"), 2}}), 3);
}

TEST(Index, LoadsReadTheirTensor) {
  const Index i = symbol("i");
  const Index loaded = load_index(3, {i, Index(2)}) + Index(1);
  EXPECT_TRUE(has_load(loaded));
  EXPECT_EQ(load_index(3, {i, Index(2)}), load_index(3, {i, Index(2)}));
  auto load = [](int input, std::span<const int64_t> at) { return input * 100 + at[0] * 10 + at[1]; };
  EXPECT_EQ(evaluate(substitute(loaded, {{symbol_atom("i"), Index(4)}}), {}, load), 343);
  std::set<AtomId> symbols;
  collect_symbols(loaded, symbols);
  EXPECT_EQ(symbols, std::set<AtomId>{symbol_atom("i")});
}

TEST(Index, FreshSymbolsAreNoOthers) {
  const AtomId a = fresh_symbol(), b = fresh_symbol();
  EXPECT_NE(a, b);
  EXPECT_NE(a, symbol_atom(atom(a).name));
  release_symbol(a);
  release_symbol(b);
}

// ---- conditions ----

struct CondSample {
  Cond cond;
  bool value = false;
};

CondSample random_cond(RandomIndexes& random, int depth) {
  if (depth == 0) {
    const Sample a = random.sample(2, true), b = random.sample(2, true);
    switch (random.uniform(0, 2)) {
      case 0: return {at_least(a.index, b.index), a.value >= b.value};
      case 1: return {less(a.index, b.index), a.value < b.value};
      default: return {equal(a.index, b.index), a.value == b.value};
    }
  }
  const CondSample a = random_cond(random, depth - 1);
  if (random.uniform(0, 3) == 0) return {!a.cond, !a.value};
  const CondSample b = random_cond(random, depth - 1);
  if (random.uniform(0, 1) == 0) return {a.cond && b.cond, a.value && b.value};
  return {a.cond || b.cond, a.value || b.value};
}

TEST(Cond, EvaluatesAsTruthValuesDo) {
  for (uint64_t seed = 0; seed < 3000; seed++) {
    RandomIndexes random(seed);
    const CondSample s = random_cond(random, 3);
    EXPECT_EQ(evaluate(s.cond, random.environment), s.value) << "seed " << seed << ": " << to_string(s.cond);
    EXPECT_EQ(evaluate(!s.cond, random.environment), !s.value) << "seed " << seed << ": " << to_string(s.cond);
  }
}

TEST(Cond, UnknownIsUnknownUnlessAPartDecides) {
  const Cond unknown = at_least(symbol("n"), Index(3));
  EXPECT_EQ(evaluate(unknown, {}), std::nullopt);
  const Cond known = at_least(symbol("m"), Index(0));
  const Environment one{{symbol_atom("m"), 1}}, minus{{symbol_atom("m"), -1}};
  EXPECT_EQ(evaluate(unknown && known, one), std::nullopt);
  EXPECT_EQ(evaluate(unknown && known, minus), false);
  EXPECT_EQ(evaluate(unknown || known, one), true);
  EXPECT_EQ(evaluate(unknown || known, minus), std::nullopt);
}

TEST(Cond, DecidedConditionsAreTrueOrFalseAtOnce) {
  const Index n = symbol("n");
  EXPECT_TRUE(at_least(n + Index(1), n).is_true());
  EXPECT_TRUE(less(n, n).is_false());
  EXPECT_TRUE((Cond() && Cond::never()).is_false());
  EXPECT_TRUE((Cond::never() || Cond()).is_true());
  EXPECT_TRUE(within(Index(3), Index(0), Index(3)).is_false());
  EXPECT_EQ(at_least(n, Index(2)) && at_least(n, Index(2)), at_least(n, Index(2)));
}

TEST(Cond, SimplifyKeepsTruthWithinTheRanges) {
  for (uint64_t seed = 0; seed < 1000; seed++) {
    RandomIndexes random(seed);
    const Cond cond = random_cond(random, 2).cond;
    Ranges ranges;
    for (const auto& [id, value] : random.environment) {
      const int64_t low = random.uniform(-4, 4);
      ranges[id] = {low, low + random.uniform(0, 3)};
    }
    const Cond simple = simplify(cond, ranges);
    for (int k = 0; k < 20; k++) {
      Environment at;
      for (const auto& [id, r] : ranges) at[id] = random.uniform(r.low, r.high);
      EXPECT_EQ(evaluate(simple, at), evaluate(cond, at))
          << "seed " << seed << ": " << to_string(cond) << " became " << to_string(simple);
    }
  }
}

TEST(Cond, PrintsAndParsesToTheSame) {
  for (uint64_t seed = 0; seed < 2000; seed++) {
    RandomIndexes random(seed);
    const Cond cond = random_cond(random, 2).cond;
    const std::string text = to_string(cond);
    TextReader reader(text);
    const Cond parsed = reader.cond();
    EXPECT_TRUE(reader.at_end()) << text;
    EXPECT_EQ(to_string(parsed), text);
    EXPECT_EQ(evaluate(parsed, random.environment), evaluate(cond, random.environment)) << text;
  }
}

}  // namespace
}  // namespace gopt
