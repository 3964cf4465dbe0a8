// Attention on tiles of the CPU, by the code that computes what its matrix unit does and, where there is one, by the
// unit, against float64.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>

#include "gopt_attention_tiles.h"
#include "gopt_terms.h"

namespace gopt_runtime {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Case {
  const char* name;
  int64_t matrices, rows, keys, depth, value_depth;
  bool has_mask = false;
  bool keys_along = false;  // an element of all keys in one piece, as a transposed operand lies
  int threads = 1;
  bool is_shared = false;  // one line of the mask for all, its elements two apart
};
std::ostream& operator<<(std::ostream& os, const Case& c) { return os << c.name; }

const Case kCases[] = {
    {"Bert", 3, 128, 128, 64, 64, true, false, 2},
    {"FewRows", 2, 6, 40, 32, 32, false},
    {"Seventeen", 1, 17, 17, 20, 24, true},
    {"OddDepths", 2, 45, 70, 33, 5, true, false, 3},
    {"KeysAlong", 2, 33, 50, 40, 16, false, true},
    {"SeveralParts", 1, 40, 1200, 64, 80, true, false, 2},
    {"OneKey", 1, 9, 1, 8, 8, false},
    {"Shared", 1, 300, 96, 64, 64, false, false, 4},
    {"OneMask", 2, 50, 70, 64, 64, true, false, 2, true},
};

class AttentionRun {
 public:
  explicit AttentionRun(const Case& c, uint32_t seed) : c_(c) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& v, int64_t count) {
      v.resize(static_cast<size_t>(count));
      for (float& x : v) x = normal(random);
    };
    fill(query, c.matrices * c.rows * c.depth);
    fill(key, c.matrices * c.keys * c.depth);
    fill(value, c.matrices * c.keys * c.value_depth);
    fill(mask, c.rows * c.keys);
  }

  AttentionShape shape(int terms, Element element) const {
    AttentionShape s;
    s.batch[2] = c_.matrices;
    s.rows = c_.rows, s.keys = c_.keys, s.depth = c_.depth, s.value_depth = c_.value_depth;
    s.scale = scale();
    s.query = {0, {0, 0, c_.rows * c_.depth}, c_.depth, 1};
    s.key = {0, {0, 0, c_.keys * c_.depth}, c_.keys_along ? 1 : c_.depth, c_.keys_along ? c_.keys : 1};
    s.value = {0, {0, 0, c_.keys * c_.value_depth}, c_.value_depth, 1};
    s.result = {0, {0, 0, c_.rows * c_.value_depth}, c_.value_depth, 1};
    s.has_mask = c_.has_mask;
    if (c_.has_mask) s.mask = {0, {0, 0, 0}, c_.is_shared ? 0 : c_.keys, c_.is_shared ? 2 : 1};
    s.tile_terms = terms;
    s.operands = s.result_element = element;
    s.nan_is_zero = nan_is_zero;
    return s;
  }

  std::vector<double> exact() const {
    std::vector<double> result;
    for (int64_t m = 0; m < c_.matrices; m++)
      for (int64_t r = 0; r < c_.rows; r++) {
        std::vector<double> scores;
        double largest = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t k = 0; k < c_.keys; k++) {
          double score = 0;
          for (int64_t d = 0; d < c_.depth; d++) {
            const int64_t at = m * c_.keys * c_.depth + (c_.keys_along ? d * c_.keys + k : k * c_.depth + d);
            score += static_cast<double>(query[static_cast<size_t>((m * c_.rows + r) * c_.depth + d)]) *
                     key[static_cast<size_t>(at)];
          }
          score = score * scale() + (c_.has_mask ? mask[mask_place(r, k)] : 0.0f);
          scores.push_back(score);
          largest = std::max(largest, score);
        }
        for (double& s : scores) s = std::exp(s - largest), sum += s;
        for (int64_t d = 0; d < c_.value_depth; d++) {
          double own = 0;
          for (int64_t k = 0; k < c_.keys; k++)
            own += scores[static_cast<size_t>(k)] / sum *
                   value[static_cast<size_t>((m * c_.keys + k) * c_.value_depth + d)];
          result.push_back(own);
        }
      }
    return result;
  }

  std::vector<float> on_tiles(int terms, TileUnit unit = TileUnit::Emulated, bool has_unit = true) const {
    const Element element = terms == 1 ? Element::BFloat16 : Element::Float;
    const AttentionTiles tiles(shape(terms, element), c_.threads, unit, has_unit);
    const auto stored = [&](const std::vector<float>& v) {
      std::vector<char> bytes(v.size() * (terms == 1 ? 2 : 4));
      for (size_t i = 0; i < v.size(); i++) {
        const uint32_t bits = bits_of(v[i]);
        if (terms == 1)
          reinterpret_cast<uint16_t*>(bytes.data())[i] = static_cast<uint16_t>(bits >> 16);
        else
          reinterpret_cast<float*>(bytes.data())[i] = v[i];
      }
      return bytes;
    };
    const auto count = static_cast<size_t>(c_.matrices * c_.rows * c_.value_depth);
    std::vector<char> result(count * 4, 0x3d);
    std::unique_ptr<void, decltype(&std::free)> scratch(std::aligned_alloc(64, (tiles.scratch_bytes() + 63) / 64 * 64),
                                                        &std::free);
    std::memset(scratch.get(), 0xff, tiles.scratch_bytes());
    tiles.run(stored(query).data(), stored(key).data(), stored(value).data(), c_.has_mask ? mask.data() : nullptr,
              result.data(), scratch.get());
    std::vector<float> made;
    for (size_t i = 0; i < count; i++)
      made.push_back(terms == 1
                         ? float_of(static_cast<uint32_t>(reinterpret_cast<const uint16_t*>(result.data())[i]) << 16)
                         : reinterpret_cast<const float*>(result.data())[i]);
    return made;
  }

  void round() {
    for (auto* numbers : {&query, &key, &value})
      for (float& v : *numbers) v = float_of(rounded_to_upper(bits_of(v)));
  }
  size_t mask_place(int64_t row, int64_t key) const {
    return static_cast<size_t>(c_.is_shared ? 2 * key : row * c_.keys + key);
  }
  float scale() const { return 1 / std::sqrt(static_cast<float>(c_.depth)); }

  std::vector<float> query, key, value, mask;
  bool nan_is_zero = false;

 private:
  Case c_;
};

class AttentionOnTiles : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cases, AttentionOnTiles, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(AttentionOnTiles, AgreesWithFloat64) {
  AttentionRun run(GetParam(), std::random_device()());
  const std::vector<double> exact = run.exact();
  for (const auto& [terms, bound] : {std::pair{3, 3e-6}, std::pair{2, 1e-4}}) {
    const std::vector<float> made = run.on_tiles(terms);
    for (size_t i = 0; i < made.size(); i++) ASSERT_NEAR(made[i], exact[i], bound) << terms << " at " << i;
  }
}

TEST_P(AttentionOnTiles, HalvesAreOneTerm) {
  AttentionRun run(GetParam(), std::random_device()());
  run.round();
  const std::vector<double> exact = run.exact();
  const std::vector<float> made = run.on_tiles(1), without = run.on_tiles(1, TileUnit::Emulated, false);
  for (size_t i = 0; i < made.size(); i++) {
    ASSERT_NEAR(made[i], exact[i], 3e-2) << i;
    ASSERT_NEAR(without[i], exact[i], 5e-3 * std::fabs(exact[i]) + 1e-5) << i;
  }
}

TEST_P(AttentionOnTiles, IsTheSameByTheUnit) {
  if (!has_amx()) GTEST_SKIP() << "no AMX here";
  const AttentionRun run(GetParam(), std::random_device()());
  for (const int terms : {1, 2, 3}) EXPECT_EQ(run.on_tiles(terms, TileUnit::Amx), run.on_tiles(terms));
}

// A line that is masked whole has no softmax; one that is masked in part is that of the others.
TEST_P(AttentionOnTiles, MasksAreThoseOfFloats) {
  if (!GetParam().has_mask || GetParam().is_shared) GTEST_SKIP() << "none of each line";
  AttentionRun run(GetParam(), 5);
  const int64_t keys = GetParam().keys;
  for (int64_t k = 0; k < keys; k++) {
    run.mask[static_cast<size_t>(k)] = -kInfinity;
    if (k % 3 != 0) run.mask[static_cast<size_t>(keys + k)] = -kInfinity;
  }
  std::vector<double> exact = run.exact();
  for (const bool nan_is_zero : {false, true}) {
    run.nan_is_zero = nan_is_zero;
    const std::vector<float> made = run.on_tiles(3);
    for (size_t i = 0; i < made.size(); i++)
      if (!std::isnan(exact[i]))
        ASSERT_NEAR(made[i], exact[i], 3e-6) << i;
      else if (nan_is_zero)
        ASSERT_EQ(made[i], 0.0f) << i;
      else
        ASSERT_TRUE(std::isnan(made[i])) << i;
  }
}

// A matrix with numbers that are not finite is computed in floats, the others are not.
TEST_P(AttentionOnTiles, InfinitiesAreThoseOfFloats) {
  AttentionRun run(GetParam(), 6);
  run.query[1] = kInfinity;
  run.value.back() = 3.4e38f;
  const std::vector<float> made = run.on_tiles(3), in_floats = run.on_tiles(3, TileUnit::Emulated, false);
  for (size_t i = 0; i < made.size(); i++)
    if (std::isnan(in_floats[i]))
      ASSERT_TRUE(std::isnan(made[i])) << i;
    else
      ASSERT_NEAR(made[i], in_floats[i], 3e-6 * std::max(1.0f, std::fabs(in_floats[i]))) << i;
}

// Terms' products are beyond the floats on either side where the score is the least there is: its key has no weight.
// And what is weighed may be as large as floats are.
TEST_P(AttentionOnTiles, LargeNumbersAreThoseOfFloats) {
  if (GetParam().keys < 2 || GetParam().keys > 500 || GetParam().keys_along) GTEST_SKIP() << "in one part";
  AttentionRun run(GetParam(), 8);
  const auto depth = static_cast<size_t>(GetParam().depth);
  std::fill(run.query.begin(), run.query.end(), 0.0f);
  std::fill(run.key.begin(), run.key.end(), 0.0f);
  run.query[0] = 1.003e25f;
  run.key[depth] = -1.003e25f;
  const std::vector<double> exact = run.exact();
  for (const int terms : {2, 3}) {
    const std::vector<float> made = run.on_tiles(terms);
    for (size_t i = 0; i < made.size(); i++) ASSERT_NEAR(made[i], exact[i], 1e-4) << i;
  }
  run.query[0] = run.key[depth] = 0;
  for (float& v : run.value) v = 1e38f;
  run.round();
  for (const int terms : {1, 2, 3}) {
    const std::vector<float> made = run.on_tiles(terms);
    for (size_t i = 0; i < made.size(); i++) ASSERT_NEAR(made[i], 1e38f, 1e36f) << i;
  }
}

}  // namespace
}  // namespace gopt_runtime
