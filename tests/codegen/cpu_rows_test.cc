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

class FewRows : public testing::TestWithParam<std::tuple<int64_t, Element, Element>> {
 protected:
  // What lies before and after the result stays as it is.
  void expect_right(int64_t depth, int64_t columns, bool is_turned, const std::vector<PostKind>& kinds, int threads) {
    const auto [rows, operands, element] = GetParam();
    constexpr int64_t kAround = 64;
    const Numbers x(operands, rows * depth, random_), w(operands, depth * columns, random_),
        row(Element::Float, columns, random_), other(element, rows * columns, random_);
    Numbers y(element, rows * columns + 2 * kAround, random_);
    const Numbers before = y;
    std::vector<Post> posts;
    for (const PostKind kind : kinds) posts.push_back({kind});
    for (Post& post : posts)
      if (post.kind == PostKind::Add) post.dims = {rows, columns}, post.element = element;
    RowsProduct product(rows, depth, columns, posts, threads, operands, element);
    for (size_t i = 0; i < posts.size(); i++)
      if (posts[i].kind == PostKind::Add) product.bind_post(static_cast<int>(i), other.data());
    std::vector<char> packed(product.packed_bytes());
    product.pack(w.data(), is_turned ? 1 : columns, is_turned ? depth : 1, packed.data());
    product.run(x.data(), packed.data(), row.floats.data(),
                static_cast<char*>(y.data()) + kAround * (element == Element::Float ? 4 : 2));
    for (int64_t i = 0; i < kAround; i++) {
      EXPECT_EQ(y.at(i), before.at(i));
      EXPECT_EQ(y.at(kAround + rows * columns + i), before.at(kAround + rows * columns + i));
    }
    for (int64_t r = 0; r < rows; r++)
      for (int64_t c = 0; c < columns; c++) {
        double sum = row.at(c), magnitude = std::fabs(sum);
        for (int64_t k = 0; k < depth; k++) {
          const double term = x.at(r * depth + k) * w.at(is_turned ? c * depth + k : k * columns + c);
          sum += term, magnitude += std::fabs(term);
        }
        for (const PostKind kind : kinds) {
          const double added = kind == PostKind::Sum ? before.at(kAround + r * columns + c) : other.at(r * columns + c);
          if (kind == PostKind::Relu)
            sum = std::max(sum, 0.0);
          else
            sum += added, magnitude += std::fabs(added);
        }
        const double rounding = element == Element::Float ? 0 : std::ldexp(std::fabs(sum), -8);
        ASSERT_NEAR(y.at(kAround + r * columns + c), sum, 1e-6 * magnitude + rounding)
            << "row " << r << ", column " << c << ", depth " << depth << ", columns " << columns;
      }
  }

  std::mt19937 random_{11};
};

TEST_P(FewRows, AgreeWithFloat64) {
  for (const int64_t depth : {1, 3, 4, 33, 700})
    for (const int64_t columns : {1, 15, 64, 131}) expect_right(depth, columns, (depth + columns) % 2 == 0, {}, 1);
}
TEST_P(FewRows, WhatFollowsIsDoneBeforeResultsAreStored) {
  expect_right(50, 77, true, {PostKind::Sum, PostKind::Relu}, 2);
  expect_right(50, 77, false, {PostKind::Add}, 2);
}

INSTANTIATE_TEST_SUITE_P(Rows, FewRows,
                         testing::Combine(testing::Range<int64_t>(1, kMostRows + 1),
                                          testing::Values(Element::Float, Element::BFloat16),
                                          testing::Values(Element::Float, Element::BFloat16)));

}  // namespace
}  // namespace gopt_runtime
