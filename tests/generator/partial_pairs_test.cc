// Pairs that agree on a part of their elements.
#include <gtest/gtest.h>

#include <algorithm>

#include "gopt/generator.h"
#include "gopt/verifier.h"

namespace gopt {
namespace {

// Rows of 2*w cut in two, under a kernel of 3.
constexpr char kSeam[] = R"(
family seam
partial
size b 1 2
size h 2 3 2 4
size w 4 5 3 5
activation 1 [b,1,h,2*w]
weight 1 [1,1,1,3]
max-weight-ops 0
op Conv inputs=2 weights-from=1 strides=[1,1] pads=[0,1,0,1] dilations=[1,1]
op Reshape shape=[b,1,2*h,w]
op Reshape shape=[b,1,h,2*w]
)";

std::vector<RewriteRule> partial_pairs(const std::string& alphabet, int max_ops) {
  GeneratorLimits limits;
  limits.max_ops = max_ops;
  limits.alphabet = alphabet;
  limits.alphabet_name = "test";
  const auto found =
      generate_rules(limits, [](std::vector<RewriteRule>& rules) { return std::vector<bool>(rules.size(), true); });
  EXPECT_TRUE(found.ok()) << found.error().message;
  return found.ok() ? found->partial : std::vector<RewriteRule>{};
}

TEST(PartialPairs, AKernelOverASeam) {
  const auto found = partial_pairs(kSeam, 3);
  const auto seam = std::find_if(found.begin(), found.end(), [](const RewriteRule& rule) {
    return rule.name.substr(0, rule.name.rfind('-')) == "reshape-conv-reshape-to-conv";
  });
  ASSERT_NE(seam, found.end());
  const auto proved = prove_partial(*seam);
  ASSERT_TRUE(proved.ok()) << proved.error().message;
  EXPECT_TRUE(proved->is_exact);
  ASSERT_EQ(proved->rule.regions.size(), 1u);
  // All but the two columns at the seam.
  std::string boxes;
  for (const Box& box : proved->rule.regions[0]) boxes += to_string(box);
  EXPECT_EQ(boxes, "[0:b, 0:1, 0:h, 0:w-1][0:b, 0:1, 0:h, w+1:2*w]");
}

TEST(PartialPairs, OnlyWhereAsked) {
  std::string alphabet = kSeam;
  alphabet.erase(alphabet.find("partial\n"), 8);
  EXPECT_TRUE(partial_pairs(alphabet, 3).empty());
}

TEST(PartialPairs, WhatIsEqualEverywhereIsNone) {
  // No padding: a kernel of one column crosses no seam.
  const auto found = partial_pairs(R"(
family f
partial
size b 1 2
size h 2 3 2 4
size w 4 5 3 5
activation 1 [b,1,h,2*w]
weight 1 [1,1,1,1]
max-weight-ops 0
op Conv inputs=2 weights-from=1 strides=[1,1] pads=[0,0,0,0] dilations=[1,1]
op Reshape shape=[b,1,2*h,w]
op Reshape shape=[b,1,h,2*w]
)",
                                   3);
  EXPECT_TRUE(found.empty());
}

}  // namespace
}  // namespace gopt
