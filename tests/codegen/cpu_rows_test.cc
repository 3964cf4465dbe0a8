// Products of a few rows by packed weights (gopt_rows.h) against float64: any number of rows, depths that no four parts
// divide, columns that fill no panel, weights in either order, floats and bfloat16.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "gopt_rows.h"
#include "gopt_terms.h"

namespace gopt_runtime {
namespace {

struct Numbers {
  Element element;
  std::vector<float> floats;
  std::vector<uint16_t> halves;

  Numbers(Element kind, int64_t count, std::mt19937& random) : element(kind) {
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < count; i++) {
      const float value = normal(random);
      floats.push_back(value);
      halves.push_back(half_of(value));
    }
  }
  const void* data() const {
    return element == Element::Float ? static_cast<const void*>(floats.data()) : halves.data();
  }
  void* data() { return element == Element::Float ? static_cast<void*>(floats.data()) : halves.data(); }
  double at(int64_t i) const { return value_at(data(), element, i); }
};

struct Case {
  int64_t depth, columns;
  bool is_turned = false, has_bias = true;
  int64_t gap = 0;  // elements between lines of weights
  std::vector<PostKind> posts = {};
  bool adds_a_row = false;  // of an Add; else a tensor of the result's shape
  bool adds_other = false;  // elements of another type than the result's
  int threads = 1;
};

class FewRows : public testing::TestWithParam<std::tuple<int64_t, Element, Element>> {
 protected:
  // What lies before and after the result stays as it is.
  void expect_right(const Case& c) {
    const auto [rows, operands, element] = GetParam();
    constexpr int64_t kAround = 64;
    const Element added_element = (element == Element::Float) == c.adds_other ? Element::BFloat16 : Element::Float;
    const int64_t line = (c.is_turned ? c.depth : c.columns) + c.gap, lines = c.is_turned ? c.columns : c.depth;
    const Numbers x(operands, rows * c.depth, random_), w(operands, lines * line, random_),
        bias(Element::Float, c.columns, random_), added(added_element, rows * c.columns, random_);
    Numbers y(element, rows * c.columns + 2 * kAround, random_);
    const Numbers before = y;
    std::vector<Post> posts;
    for (const PostKind kind : c.posts) {
      posts.push_back({kind});
      if (kind == PostKind::Add) posts.back().dims = {c.adds_a_row ? 1 : rows, c.columns};
      if (kind == PostKind::Add) posts.back().element = added_element;
    }
    RowsProduct product(rows, c.depth, c.columns, posts, c.threads, operands, element);
    for (size_t i = 0; i < posts.size(); i++)
      if (posts[i].kind == PostKind::Add) product.bind_post(static_cast<int>(i), added.data());
    std::vector<char> packed(product.packed_bytes(), 0x3d);
    product.pack(w.data(), c.is_turned ? 1 : line, c.is_turned ? line : 1, packed.data());
    product.run(x.data(), packed.data(), c.has_bias ? bias.floats.data() : nullptr,
                static_cast<char*>(y.data()) + kAround * (element == Element::Float ? 4 : 2));
    for (int64_t i = 0; i < kAround; i++) {
      EXPECT_EQ(y.at(i), before.at(i));
      EXPECT_EQ(y.at(kAround + rows * c.columns + i), before.at(kAround + rows * c.columns + i));
    }
    for (int64_t r = 0; r < rows; r++)
      for (int64_t o = 0; o < c.columns; o++) {
        double sum = c.has_bias ? bias.at(o) : 0, magnitude = std::fabs(sum);
        for (int64_t k = 0; k < c.depth; k++) {
          const double term = x.at(r * c.depth + k) * w.at(c.is_turned ? o * line + k : k * line + o);
          sum += term, magnitude += std::fabs(term);
        }
        for (const PostKind kind : c.posts) {
          const double term = kind == PostKind::Sum ? before.at(kAround + r * c.columns + o)
                                                    : added.at((c.adds_a_row ? 0 : r * c.columns) + o);
          if (kind == PostKind::Relu)
            sum = std::max(sum, 0.0);
          else
            sum += term, magnitude += std::fabs(term);
        }
        const double rounding = element == Element::Float ? 0 : std::ldexp(std::fabs(sum), -8);
        ASSERT_NEAR(y.at(kAround + r * c.columns + o), sum, 1e-6 * magnitude + rounding)
            << "row " << r << ", column " << o << ", depth " << c.depth << ", columns " << c.columns;
      }
  }

  std::mt19937 random_{11};
};

TEST_P(FewRows, AgreeWithFloat64) {
  for (const int64_t depth : {1, 3, 4, 33, 700})
    for (const int64_t columns : {1, 15, 64, 131})
      expect_right({.depth = depth, .columns = columns, .is_turned = (depth + columns) % 2 == 0});
}
TEST_P(FewRows, LinesOfWeightsMayLieApart) {
  for (const bool is_turned : {false, true})
    expect_right({.depth = 30, .columns = 50, .is_turned = is_turned, .has_bias = false, .gap = 7, .threads = 2});
}
TEST_P(FewRows, WhatFollowsIsDoneBeforeResultsAreStored) {
  expect_right({.depth = 50, .columns = 77, .posts = {PostKind::Sum, PostKind::Relu}, .threads = 2});
  for (const bool adds_a_row : {false, true})
    for (const bool adds_other : {false, true})
      expect_right({.depth = 50,
                    .columns = 77,
                    .posts = {PostKind::Add},
                    .adds_a_row = adds_a_row,
                    .adds_other = adds_other,
                    .threads = 2});
}

INSTANTIATE_TEST_SUITE_P(Rows, FewRows,
                         testing::Combine(testing::Range<int64_t>(1, kMostRows + 1),
                                          testing::Values(Element::Float, Element::BFloat16),
                                          testing::Values(Element::Float, Element::BFloat16)));

}  // namespace
}  // namespace gopt_runtime
