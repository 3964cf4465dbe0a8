// The fewest things that make a difference, of tests that are made up.
#include "../../driver/delta_debugging.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace gopt::driver {
namespace {

std::vector<std::string> letters(int count) {
  std::vector<std::string> items;
  for (int k = 0; k < count; k++) items.emplace_back(1, static_cast<char>('a' + k));
  return items;
}

// Fails where all of these are there.
FailsWith fails_with(const std::vector<std::string>& guilty, int* asked = nullptr) {
  return [=](const std::vector<std::string>& some) -> Result<bool> {
    if (asked) ++*asked;
    return std::all_of(guilty.begin(), guilty.end(), [&](const std::string& item) {
      return std::find(some.begin(), some.end(), item) != some.end();
    });
  };
}

struct Row {
  const char* name;
  int count;
  std::vector<std::string> guilty;
};
class DeltaDebugging : public testing::TestWithParam<Row> {};
TEST_P(DeltaDebugging, FindsTheFewestThatFail) {
  int asked = 0;
  const auto found = smallest_failing(letters(GetParam().count), fails_with(GetParam().guilty, &asked), 1000);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->items, GetParam().guilty);
  EXPECT_TRUE(found->is_smallest);
  EXPECT_EQ(found->tests, asked);
}
INSTANTIATE_TEST_SUITE_P(Sets, DeltaDebugging,
                         testing::Values(Row{"TheOnlyOne", 1, {"a"}}, Row{"OneOfTwo", 2, {"b"}},
                                         Row{"OneOfMany", 16, {"k"}}, Row{"TwoFarApart", 16, {"a", "p"}},
                                         Row{"ThreeOfMany", 20, {"b", "j", "t"}}, Row{"All", 5, letters(5)}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(DeltaDebuggingLimits, OneOfManyTakesFewTests) {
  int asked = 0;
  const auto found = smallest_failing(letters(16), fails_with({"c"}, &asked), 1000);
  ASSERT_TRUE(found.ok());
  EXPECT_LE(asked, 8);
}

TEST(DeltaDebuggingLimits, WhereTestsAreUsedUpTheBestSoFarFails) {
  const auto found = smallest_failing(letters(20), fails_with({"b", "j", "t"}), 6);
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(found->is_smallest);
  EXPECT_EQ(found->tests, 6);
  EXPECT_TRUE(*fails_with({"b", "j", "t"})(found->items));
}

TEST(DeltaDebuggingLimits, AnErrorEndsIt) {
  const auto found = smallest_failing(
      letters(4), [](const std::vector<std::string>&) -> Result<bool> { return Error{"it cannot be told"}; }, 100);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().message, "it cannot be told");
}

// Of a test that is not monotone: what is found fails, and none of its items can be left out.
TEST(DeltaDebuggingLimits, WhatIsFoundFailsAndNoneCanBeLeftOut) {
  const FailsWith odd = [](const std::vector<std::string>& some) -> Result<bool> {
    return some.size() % 2 == 1 && std::find(some.begin(), some.end(), "d") != some.end();
  };
  const auto found = smallest_failing(letters(9), odd, 1000);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(*odd(found->items));
  EXPECT_EQ(found->items, std::vector<std::string>{"d"});
}

}  // namespace
}  // namespace gopt::driver
